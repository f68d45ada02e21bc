#include "interfaces/mpi/windows/service.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "interfaces/mpi/collectives/operators.h"
#include "interfaces/mpi/threads.h"

namespace hocket::mpi {
namespace {

// Ranks of this host lock and unlock without a message. So while a rank waits for a lock, the
// service looks again after this time.
constexpr auto kBetweenLooks = std::chrono::microseconds(50);

void read_runs(const Runs& runs, std::byte* to) {
  for (const RemoteRun& run : runs) {
    std::memcpy(to, reinterpret_cast<const void*>(run.place), run.length);
    to += run.length;
  }
}
void write_runs(const Runs& runs, const std::byte* from) {
  for (const RemoteRun& run : runs) {
    std::memcpy(reinterpret_cast<void*>(run.place), from, run.length);
    from += run.length;
  }
}

AccessAnswer refusal_of_caught() noexcept {
  const int code = code_of_caught();
  AccessAnswer refusal{.refused = class_of(code)};
  const std::string text = explanation_of(code);
  text.copy(refusal.text.data(), refusal.text.size() - 1);
  return refusal;
}

}  // namespace

AccessService::AccessService(Window& window)
    : window_(window), thread_(start_thread([this] { run(); })) {}

// Stops the service by a request to this rank itself. If a rank has died, sending may fail, and the
// service has ended already.
AccessService::~AccessService() {
  Comm& comm = *window_.requests;
  const AccessRequest stop{.access = Access::kStop};
  try {
    Work sent;
    {
      const std::lock_guard lock(comm.starting);
      sent = comm.net->send_async(
          ConstArrayView(&stop, sizeof stop, DType::kUInt8), comm.rank, {.tag = kRequestTag});
    }
    sent.wait();
  } catch (const Error&) {
  }
  thread_.join();
}

// Errors end the service without a report: the other ranks learn of a death by their own calls.
void AccessService::run() noexcept {
  try {
    serve();
  } catch (...) {
    code_of_caught();
  }
}

void AccessService::serve() {
  AccessRequest asked;
  for (;;) {
    Work request = receive(asked);
    await_request(request);
    request.wait();
    if (asked.access == Access::kStop) return;
    carry_out(asked, request.received()->source);
  }
}

Work AccessService::receive(AccessRequest& into) {
  Comm& comm = *window_.requests;
  const std::lock_guard lock(comm.starting);
  return comm.net->recv_async(
      ArrayView(&into, sizeof into, DType::kUInt8), kAnySource, {.tag = kRequestTag});
}

void AccessService::await_request(Work& request) {
  request.on_done([this] {
    const std::lock_guard lock(mutex_);
    has_come_ = true;
    changed_.notify_one();
  });
  std::unique_lock lock(mutex_);
  while (!has_come_) {
    if (waiting_.empty()) {
      changed_.wait(lock);
      continue;
    }
    changed_.wait_for(lock, kBetweenLooks);
    lock.unlock();
    grant_locks();
    lock.lock();
  }
  has_come_ = false;
}

void AccessService::carry_out(const AccessRequest& asked, int origin) {
  Comm& comm = *window_.requests;
  Runs runs(static_cast<std::size_t>(asked.runs));
  std::vector<std::byte> data(static_cast<std::size_t>(asked.data));
  std::vector<std::byte> wanted(static_cast<std::size_t>(asked.wanted));
  std::vector<Work> parts;
  const auto fetch = [&](std::span<std::byte> into) {
    if (into.empty()) return;
    const std::lock_guard lock(comm.starting);
    parts.push_back(comm.net->recv_async(ArrayView(into.data(), into.size(), DType::kUInt8),
                                         origin,
                                         {.tag = tag_to_target(asked.number)}));
  };
  fetch(std::as_writable_bytes(std::span(runs)));
  fetch(data);
  for (Work& part : parts) part.wait();
  if (asked.access == Access::kLock) {
    waiting_.push_back({origin, asked.number, static_cast<Held>(asked.lock)});
    return grant_locks();
  }
  AccessAnswer made;
  try {
    made = use_memory(asked, origin, runs, data, wanted);
  } catch (...) {
    made = refusal_of_caught();
    wanted.clear();
  }
  answer(origin, asked.number, made, wanted);
}

AccessAnswer AccessService::use_memory(const AccessRequest& asked,
                                       int origin,
                                       const Runs& runs,
                                       const std::vector<std::byte>& data,
                                       std::vector<std::byte>& wanted) {
  const TargetLocks locks = window_.locks(window_.comm->rank);
  require_attached(runs);
  AccessAnswer made;
  switch (asked.access) {
    case Access::kRead:
      read_runs(runs, wanted.data());
      break;
    case Access::kWrite:
      write_runs(runs, data.data());
      break;
    case Access::kCombine:
      combine(asked, origin, runs, data, wanted);
      break;
    case Access::kSwap: {
      const AccumulateTurn turn(locks, origin, check());
      read_runs(runs, wanted.data());
      const bool is_expected = std::equal(wanted.begin(), wanted.end(), data.begin());
      if (is_expected) write_runs(runs, data.data() + wanted.size());
      break;
    }
    case Access::kTryLockShared:
      made.granted = locks.try_lock_shared(origin);
      break;
    case Access::kUnlock:
      locks.unlock(origin, static_cast<Held>(asked.lock));
      break;
    case Access::kLock:
    case Access::kStop:
      break;
  }
  return made;
}

void AccessService::combine(const AccessRequest& asked,
                            int origin,
                            const Runs& runs,
                            const std::vector<std::byte>& data,
                            std::vector<std::byte>& old) {
  const DatatypePtr type = predefined(static_cast<Kind>(asked.element));
  std::vector<std::byte> values;
  std::size_t bytes = 0;
  for (const RemoteRun& run : runs) bytes += run.length;
  values.resize(bytes);
  const AccumulateTurn turn(window_.locks(window_.comm->rank), origin, check());
  read_runs(runs, values.data());
  if (!old.empty()) old = values;
  if (data.empty()) return;  // MPI_NO_OP
  combine_packed(kNamedOps[asked.op].handle,
                 *type,
                 data.data(),
                 values.data(),
                 static_cast<std::int64_t>(bytes) / type->size());
  write_runs(runs, values.data());
}

void AccessService::require_attached(const Runs& runs) const {
  if (!window_.is_dynamic()) return;
  const int self = window_.comm->rank;
  for (const RemoteRun& run : runs) {
    if (window_.attached(self).holds(run.place, run.place + run.length)) continue;
    fail(MPI_ERR_RMA_RANGE,
         "rank " + std::to_string(self) + " has not attached all of the memory at target_disp");
  }
}

Check AccessService::check() {
  return [this] { check_members(*window_.requests); };
}

void AccessService::grant_locks() {
  std::erase_if(waiting_, [this](Waiting& waiting) {
    if (!try_to_lock(waiting)) return false;
    answer(waiting.origin, waiting.number, {.granted = 1}, {});
    return true;
  });
}

bool AccessService::try_to_lock(Waiting& waiting) {
  const TargetLocks locks = window_.locks(window_.comm->rank);
  if (waiting.kind == Held::kShared) return locks.try_lock_shared(waiting.origin);
  waiting.keeps_out = waiting.keeps_out || locks.try_keep_out(waiting.origin);
  return waiting.keeps_out && !locks.is_shared();
}

void AccessService::answer(int origin,
                           std::int32_t number,
                           const AccessAnswer& answer,
                           std::span<std::byte> data) {
  Comm& comm = *window_.requests;
  std::vector<Work> sent;
  {
    const std::lock_guard lock(comm.starting);
    const MessageOptions tagged{.tag = tag_to_origin(number)};
    sent.push_back(comm.net->send_async(
        ConstArrayView(&answer, sizeof answer, DType::kUInt8), origin, tagged));
    if (!data.empty()) {
      sent.push_back(comm.net->send_async(
          ConstArrayView(data.data(), data.size(), DType::kUInt8), origin, tagged));
    }
  }
  for (Work& work : sent) work.wait();
}

}  // namespace hocket::mpi
