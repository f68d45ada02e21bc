// Direct transfers: long messages that UCX moves from array to array.
//
// The receiver posts its memory before it grants a message. So UCX starts to move the bytes as soon
// as the sender sends them. UCX 1.13 can cancel only a receive for which nothing has arrived. The
// fabric must wait for the end of all other transfers.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "engines/ucx/fabric.h"
#include "foundation/base/log.h"
#include "foundation/base/poll.h"

namespace hocket::engines::ucx {

using base::Deadline;

namespace {

// The time limit for a cancelled transfer to end while both ends live.
constexpr auto kPatience = std::chrono::milliseconds(500);

}  // namespace

// --- Which way ----------------------------------------------------------------------------------

// Returns whether the connection has a lane that moves memory of this kind without copies. UCX
// reserves a lane for remote memory access ("rma_bw") if it can move the memory and can cancel the
// access when a peer fails. A lane over TCP does not count, because it is not faster. CUDA's lanes
// move only GPUs' memory. (ucp_ep_query lists the lanes since 1.14, but not their purpose. So this
// reads the text of ucp_ep_print_info.)
bool Fabric::has_lane(Endpoint endpoint, MemoryKind memory) const {
  char* text = nullptr;
  std::size_t length = 0;
  std::FILE* file = ::open_memstream(&text, &length);
  if (file == nullptr) return false;
  library_->ep_print_info(endpoint, file);
  std::fclose(file);
  bool found = false;
  std::string_view rest(text, length);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.find("rma_bw#") == line.npos || line.find(":tcp/") != line.npos) continue;
    found |= memory == MemoryKind::kCuda || line.find(":cuda_") == line.npos;
  }
  std::free(text);
  return found;
}

bool Fabric::moves_directly(int rank, std::size_t bytes) {
  if (bytes < direct_from_) return false;
  if (bulk_ != Bulk::kAuto) return bulk_ == Bulk::kDirect;
  const Endpoint to = endpoint(rank);
  if (to == nullptr) return false;
  auto& direct = peers_[static_cast<std::size_t>(rank)].direct;
  if (!direct) direct = has_lane(to, MemoryKind::kHost);
  return *direct;
}

bool Fabric::reaches_gpus(int rank) {
  const std::lock_guard lock(mutex_);
  const Endpoint to = endpoint(rank);
  return knows_gpus_ && to != nullptr && has_lane(to, MemoryKind::kCuda);
}

// --- Under way ----------------------------------------------------------------------------------

void Fabric::begin(Transfer& transfer, StatusPointer request) noexcept {
  if (request != nullptr && error_in(request) == UcsStatus::kOk) {
    transfer.request = request;
  } else {
    // A receive cannot complete immediately, because no rank knows its tag yet. So a completed
    // receive counts as an error.
    const bool impossible = transfer.receives && request == nullptr;
    end(transfer, impossible ? UcsStatus::kTruncated : error_in(request));
  }
}

void Fabric::end(Transfer& transfer, UcsStatus status) noexcept {
  transfer.state = status == UcsStatus::kOk          ? Transfer::State::kDone
                   : status == UcsStatus::kCancelled ? Transfer::State::kCancelled
                                                     : Transfer::State::kFailed;
  came_ = true;
}

void Fabric::on_moved(void* request, UcsStatus status, void* user_data) noexcept {
  auto& transfer = *static_cast<Transfer*>(user_data);
  Fabric& self = *transfer.fabric;
  self.end(transfer, status);
  self.library_->request_free(request);
}

void Fabric::on_came(void* request,
                     UcsStatus status,
                     const TagReceived* received,
                     void* user_data) noexcept {
  auto& transfer = *static_cast<Transfer*>(user_data);
  Fabric& self = *transfer.fabric;
  const bool whole = status != UcsStatus::kOk || received->length == transfer.bytes;
  self.end(transfer, whole ? status : UcsStatus::kTruncated);
  self.library_->request_free(request);
}

std::unique_ptr<Transfer> Fabric::send_directly(int rank,
                                                std::uint64_t tag,
                                                std::span<const std::byte> bytes,
                                                MemoryKind memory) {
  auto transfer = std::make_unique<Transfer>();
  transfer->rank = rank;
  transfer->fabric = this;
  const Endpoint to = endpoint(rank);
  if (retired_ || to == nullptr) {
    transfer->state = Transfer::State::kFailed;
    return transfer;
  }
  RequestParam param = param_for(memory);
  param.callback.sent = &Fabric::on_moved;
  param.user_data = transfer.get();
  begin(*transfer, library_->tag_send_nbx(to, bytes.data(), bytes.size(), tag, &param));
  return transfer;
}

std::unique_ptr<Transfer> Fabric::receive_directly(int rank,
                                                   std::uint64_t tag,
                                                   std::span<std::byte> bytes,
                                                   MemoryKind memory) {
  auto transfer = std::make_unique<Transfer>();
  transfer->receives = true;
  transfer->rank = rank;
  transfer->tag = tag;
  transfer->bytes = bytes.size();
  transfer->fabric = this;
  if (retired_) {
    transfer->state = Transfer::State::kFailed;
    return transfer;
  }
  RequestParam param = param_for(memory);
  param.callback.received = &Fabric::on_came;
  param.user_data = transfer.get();
  constexpr std::uint64_t kWhole = ~std::uint64_t{0};
  begin(*transfer,
        library_->tag_recv_nbx(worker_, bytes.data(), bytes.size(), tag, kWhole, &param));
  return transfer;
}

// --- Taking back --------------------------------------------------------------------------------

// Waits until `ended()` is true. Returns false after kPatience, or if the peer `rank` is known to
// be lost.
template <typename Condition>
bool Fabric::wait_until(Condition ended, int rank, std::unique_lock<std::mutex>& lock) noexcept {
  bool is_lost = false;
  lock.unlock();
  const auto is_over = [&] {
    const std::lock_guard held(*lock.mutex());
    if (!ended() && !retired_) poll();
    if (ended() || retired_) return true;
    const bool broken = peers_[static_cast<std::size_t>(rank)].broken;
    is_lost = !broken && fate(static_cast<std::size_t>(rank)) != engine::Fate::kHere;
    return is_lost;
  };
  const bool in_time = base::poll_until(is_over, Deadline::in(kPatience), Duration::zero());
  lock.lock();
  return in_time && !is_lost;
}

// Stops using UCX in this process, because UCX keeps memory that it must not write to any more.
void Fabric::give_up() noexcept {
  base::log(
      base::LogLevel::kError,
      "UCX does not give back the memory of a message that was called off. So that nothing is "
      "written there later, this process exchanges no more messages with other hosts: calls "
      "that need them fail");
  retired_ = true;
  unsent_.store(0, std::memory_order_relaxed);  // these messages never leave
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    if (std::exchange(peers_[rank].broken, true)) continue;
    note_broken(rank);
  }
}

// Carries out the three steps of take_back. Returns false if UCX keeps the memory.
template <typename Condition>
bool Fabric::see_to_its_end(Condition ended,
                            int rank,
                            std::unique_lock<std::mutex>& lock) noexcept {
  if (wait_until(ended, rank, lock)) return true;
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (!peer.broken) {
    peer.broken = peer.to_close = closes_ = true;
    note_broken(static_cast<std::size_t>(rank));
  }
  if (wait_until(ended, rank, lock)) return true;
  give_up();
  return false;
}

void Fabric::take_back(std::unique_ptr<Transfer> transfer,
                       std::unique_lock<std::mutex>& lock) noexcept {
  using State = Transfer::State;
  if (transfer->state == State::kUnderWay && transfer->receives && !retired_) {
    library_->request_cancel(worker_, transfer->request);
    // The sender may have started the transfer, and must be able to complete it.
    const bool reachable = !peers_[static_cast<std::size_t>(transfer->rank)].broken;
    if (transfer->state == State::kCancelled && reachable) drain(transfer->tag);
  }
  const auto ended = [&transfer] { return transfer->state != State::kUnderWay; };
  see_to_its_end(ended, transfer->rank, lock);
  if (!ended()) static_cast<void>(transfer.release());  // UCX refers to it
}

void Fabric::take_back(int rank, const Count& left, std::unique_lock<std::mutex>& lock) noexcept {
  see_to_its_end([&left] { return *left == 0; }, rank, lock);
}

void Fabric::on_drained(void* request, UcsStatus, const TagReceived*, void* user_data) noexcept {
  auto& self = *static_cast<Fabric*>(user_data);
  self.drains_.erase(request);
  self.library_->request_free(request);
}

// Receives a cancelled message without storing any byte, so that its send succeeds on the sender.
void Fabric::drain(std::uint64_t tag) noexcept {
  RequestParam param = param_for(MemoryKind::kHost);
  param.callback.received = &Fabric::on_drained;
  param.user_data = this;
  const StatusPointer request =
      library_->tag_recv_nbx(worker_, nullptr, 0, tag, ~std::uint64_t{0}, &param);
  if (request != nullptr && error_in(request) == UcsStatus::kOk) drains_.insert(request);
}

}  // namespace hocket::engines::ucx
