#include "interfaces/mpi/windows/access.h"

#include "interfaces/mpi/process.h"

namespace hocket::mpi {
namespace {

// Request numbers, and so tags, repeat after this many.
constexpr std::uint32_t kNumbers = 1U << 29;

std::span<const std::byte> bytes_of(const Runs& runs) { return std::as_bytes(std::span(runs)); }

ConstArrayView view_of(std::span<const std::byte> bytes) {
  return {bytes.data(), bytes.size(), DType::kUInt8};
}
ArrayView view_of(std::span<std::byte> bytes) {
  return {bytes.data(), bytes.size(), DType::kUInt8};
}

void receive(Comm& comm, std::span<std::byte> into, int from, int tag) {
  Work work;
  {
    const std::lock_guard lock(comm.starting);
    work = comm.net->recv_async(view_of(into), from, {.tag = tag});
  }
  work.wait();
}

// Sends a request and waits for its answer, whose data go to `into`.
AccessAnswer request(Window& window,
                     int target,
                     AccessRequest asked,
                     const Runs& runs,
                     std::span<const std::byte> data,
                     std::span<std::byte> into) {
  Comm& comm = *window.requests;
  asked.number = static_cast<std::int32_t>(
      window.next_request.fetch_add(1, std::memory_order_relaxed) % kNumbers);
  asked.runs = static_cast<std::int64_t>(runs.size());
  asked.data = static_cast<std::int64_t>(data.size());
  asked.wanted = static_cast<std::int64_t>(into.size());
  std::vector<Work> sent;
  {
    const std::lock_guard lock(comm.starting);
    const auto send = [&](std::span<const std::byte> bytes, int tag) {
      if (!bytes.empty())
        sent.push_back(comm.net->send_async(view_of(bytes), target, {.tag = tag}));
    };
    send(std::as_bytes(std::span(&asked, 1)), kRequestTag);
    send(bytes_of(runs), tag_to_target(asked.number));
    send(data, tag_to_target(asked.number));
  }
  AccessAnswer answer;
  receive(comm, std::as_writable_bytes(std::span(&answer, 1)), target, tag_to_origin(asked.number));
  for (Work& work : sent) work.wait();
  if (answer.refused != MPI_SUCCESS) fail(answer.refused, answer.text.data());
  if (!into.empty()) receive(comm, into, target, tag_to_origin(asked.number));
  return answer;
}

}  // namespace

void read_remote(Window& window, int target, const Runs& runs, std::span<std::byte> to) {
  request(window, target, {.access = Access::kRead}, runs, {}, to);
}

void write_remote(Window& window, int target, const Runs& runs, std::span<const std::byte> from) {
  request(window, target, {.access = Access::kWrite}, runs, from, {});
}

void combine_remote(Window& window,
                    int target,
                    const Runs& runs,
                    std::span<const std::byte> from,
                    MPI_Op op,
                    const Datatype& type,
                    std::span<std::byte> old) {
  const AccessRequest asked{
      .access = Access::kCombine,
      .op = op_of(op).predefined,
      .element = static_cast<std::int32_t>(type.element_kind().value_or(Kind::kByte))};
  request(window, target, asked, runs, from, old);
}

void swap_remote(Window& window,
                 int target,
                 const Runs& runs,
                 std::span<const std::byte> expected,
                 std::span<const std::byte> fresh,
                 std::span<std::byte> old) {
  std::vector<std::byte> both(expected.begin(), expected.end());
  both.insert(both.end(), fresh.begin(), fresh.end());
  request(window, target, {.access = Access::kSwap}, runs, both, old);
}

namespace {

AccessAnswer ask_for_lock(Window& window, int target, Access access, Held kind) {
  return request(
      window, target, {.access = access, .lock = static_cast<std::int32_t>(kind)}, {}, {}, {});
}

}  // namespace

void lock_remote(Window& window, int target, Held kind) {
  ask_for_lock(window, target, Access::kLock, kind);
}
bool try_lock_shared_remote(Window& window, int target) {
  return ask_for_lock(window, target, Access::kTryLockShared, Held::kShared).granted != 0;
}
void unlock_remote(Window& window, int target, Held kind) {
  ask_for_lock(window, target, Access::kUnlock, kind);
}

}  // namespace hocket::mpi
