#include "engines/nccl/nccl_engine.h"

#include <fmt/format.h>

#include "foundation/base/poll.h"
#include "foundation/base/threads.h"
#include "hocket/error.h"

namespace hocket::engines::nccl {

using base::Deadline;
using engine::Call;
using engine::Kind;
using engine::Signature;

namespace {

// The minimum time of a call in microseconds, and the bandwidth, measured on four H200s. They are
// used only to compare this engine with other engines.
constexpr double kLatency = 10;
constexpr double kBytesPerMicrosecond = 250'000;

// The time limit of a clean end of the communicator. After it the communicator is aborted.
constexpr auto kPatience = std::chrono::seconds(2);
// The number of polls without a pause at the beginning of a wait, because most waits are short.
constexpr int kEagerPolls = 1000;
// The additional time that a launch may take on the host, beyond the time limit of the call.
constexpr auto kLaunchGrace = std::chrono::seconds(2);

bool is_floating(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32 ||
         dtype == DType::kFloat64;
}
bool is_complex(DType dtype) { return dtype == DType::kComplex64 || dtype == DType::kComplex128; }

// Returns whether NCCL carries this reduction with hocket's results; see NcclEngine.
bool reduces(DType dtype, ReduceOp op) {
  switch (dtype) {
    case DType::kInt16:
    case DType::kUInt16:
    case DType::kFloat8E4M3:
    case DType::kFloat8E5M2:
      return false;
    case DType::kBool:
    case DType::kInt8:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUInt8:
    case DType::kUInt32:
    case DType::kUInt64:
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kComplex64:
    case DType::kComplex128:
      break;
  }
  switch (op) {
    case ReduceOp::kSum:
      return true;
    case ReduceOp::kAvg:
      return is_floating(dtype) || is_complex(dtype);
    case ReduceOp::kProduct:
      return !is_complex(dtype);
    case ReduceOp::kMin:
    case ReduceOp::kMax:
      return !is_floating(dtype) && !is_complex(dtype);
    case ReduceOp::kBitAnd:
    case ReduceOp::kBitOr:
    case ReduceOp::kBitXor:
      break;
  }
  return false;
}

}  // namespace

NcclEngine::NcclEngine(std::shared_ptr<const NcclLibrary> library,
                       std::shared_ptr<const cuda::DeviceContext> device,
                       const engine::GroupFacts& facts)
    : library_(std::move(library)), device_(std::move(device)), facts_(facts) {}

NcclEngine::~NcclEngine() {
  destroy();
  if (aborting_.joinable()) aborting_.join();
}

std::optional<engine::Score> NcclEngine::score(const Signature& s) const noexcept {
  if (!kCarries.has(s.kind)) return std::nullopt;
  if (is_reduction(s.kind) && !reduces(s.dtype, s.op)) return std::nullopt;
  return engine::Score{kLatency + static_cast<double>(bytes_of(s)) / kBytesPerMicrosecond};
}

void NcclEngine::connect(const engine::Introduction& introduction) {
  NcclUniqueId id{};
  if (facts_.rank == 0) check(library_->get_unique_id(&id));
  id = engine::gather_values(introduction.gather, id).front();
  CommConfig config{.blocking = 0};
  const std::lock_guard lock(mutex_);
  check(library_->comm_init_rank_config(&comm_, facts_.size, id, facts_.rank, &config));
  wait_until_started(introduction.deadline, introduction.look);
}

// In nonblocking mode each NCCL call returns immediately. NCCL starts the work in its own thread.
void NcclEngine::wait_until_started(Deadline deadline, const std::function<void()>& look) {
  const auto has_started = [&, polls = 0]() mutable {
    NcclResult state = NcclResult::kSuccess;
    const NcclResult asked = library_->comm_get_async_error(comm_, &state);
    if (asked != NcclResult::kSuccess) check(asked);
    if (state == NcclResult::kSuccess) return true;
    if (state != NcclResult::kInProgress) check(state);
    if (aborted_.load(std::memory_order_acquire)) throw DeviceError("NCCL was told to abort");
    if (look && polls++ % 64 == 0) look();
    return false;
  };
  if (base::poll_until(has_started, deadline, std::chrono::microseconds(100), kEagerPolls)) return;
  throw DeviceError("NCCL did not get ready in time: a rank is missing, or cannot be reached");
}

void NcclEngine::wait_for_call() {
  wait_until_started(allowed_ == kForever ? Deadline::never()
                                          : Deadline::in(allowed_ + kLaunchGrace));
}

void NcclEngine::check(NcclResult status) {
  if (status == NcclResult::kSuccess || status == NcclResult::kInProgress) return;
  const char* last = comm_ == nullptr ? nullptr : library_->get_last_error(comm_);
  throw engine::MaybeLoss(fmt::format("NCCL {}: {}{}{}",
                                      library_->version_text(),
                                      library_->get_error_string(status),
                                      last == nullptr || *last == '\0' ? "" : ": ",
                                      last == nullptr ? "" : last));
}

void NcclEngine::enqueue(const Call& call, StreamRef stream) {
  const std::lock_guard lock(mutex_);
  if (comm_ == nullptr) throw DeviceError("NCCL's communicator has been aborted");
  put(call, stream.handle());
  wait_for_call();
}

void NcclEngine::exchange(std::span<const engine::DeviceMessage> messages, StreamRef stream) {
  const std::lock_guard lock(mutex_);
  if (comm_ == nullptr) throw DeviceError("NCCL's communicator has been aborted");
  put(messages, stream.handle());
  wait_for_call();
}

// Returns nothing while a launch holds the lock. A launch is long only while NCCL makes its first
// connections.
std::optional<engine::DeviceProblem> NcclEngine::problem() noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || comm_ == nullptr) return std::nullopt;
  NcclResult state = NcclResult::kSuccess;
  if (library_->comm_get_async_error(comm_, &state) != NcclResult::kSuccess ||
      state == NcclResult::kSuccess || state == NcclResult::kInProgress) {
    return std::nullopt;
  }
  const char* last = library_->get_last_error(comm_);
  return engine::DeviceProblem{.maybe_loss = true,
                               .text = fmt::format("NCCL {}: {}: {}",
                                                   library_->version_text(),
                                                   library_->get_error_string(state),
                                                   last == nullptr ? "" : last)};
}

// Aborts in a separate thread if possible, because ncclCommAbort waits until NCCL's kernels and
// threads end.
void NcclEngine::abort() noexcept {
  if (aborted_.exchange(true)) return;
  const auto abort_now = [this] {
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr) return;
    const cuda::DeviceGuard guard(*device_);
    library_->comm_abort(std::exchange(comm_, nullptr));
  };
  try {
    aborting_ = base::start_thread("hocket-nccl", abort_now);
  } catch (const std::exception&) {  // no thread available
    abort_now();
  }
}

void NcclEngine::destroy() noexcept {
  const std::lock_guard lock(mutex_);
  if (comm_ == nullptr) return;
  try {
    const cuda::DeviceGuard guard(*device_);
    check(library_->comm_finalize(comm_));
    wait_until_started(Deadline::in(kPatience));
    library_->comm_destroy(std::exchange(comm_, nullptr));
  } catch (...) {
    library_->comm_abort(std::exchange(comm_, nullptr));
  }
}

}  // namespace hocket::engines::nccl
