#include "engines/ucx/ucx_device_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "foundation/base/poll.h"
#include "foundation/base/short_text.h"
#include "foundation/base/threads.h"
#include "hocket/error.h"

namespace hocket::engines::ucx {

using base::Deadline;
using engine::gather_values;

namespace {

constexpr auto kLongestIdle = std::chrono::milliseconds(500);
// Limit of the rounds in which the ranks agree on a number. Two rounds are enough, unless groups of
// other GPUs connect at the same time.
constexpr int kMostRounds = 100;

// The connectivity of one rank, which it tells all ranks. A value of fixed size.
struct RankReach {
  bool direct = true;  // it reaches all ranks through lanes for GPUs' memory
  int missing = -1;    // a rank that it cannot reach, for the reason in `why_not`; -1: none
  base::ShortSentence<120> why_not;
};

movement::Mover mover_of(const UcxDeviceOptions& options) {
  return {.library = "UCX",
          .rank = options.members.rank,
          .size = static_cast<int>(options.members.world_ranks.size()),
          .always = options.always,
          .interrupted = options.interrupted};
}

}  // namespace

UcxDeviceEngine::UcxDeviceEngine(std::shared_ptr<const cuda::DeviceContext> device,
                                 UcxDeviceOptions options)
    : MovingEngine(std::move(device), mover_of(options)), options_(std::move(options)) {}

UcxDeviceEngine::~UcxDeviceEngine() {
  // Messages that count as sent may not have left yet. When the thread has ended, nothing would
  // move them any more.
  if (fabric_ && !is_aborted()) fabric_->flush(Deadline::in(std::chrono::seconds(1)));
  closed_ = true;
  wakeup_.notify();
  if (answering_.joinable()) answering_.join();
}

// On some rank, the number that another rank proposes may belong to a different GPU. This rank then
// proposes a larger number. So the ranks repeat until all proposals are equal.
void UcxDeviceEngine::agree(const engine::Introduction& introduction) {
  int least = 0;
  for (int round = 0; round < kMostRounds; ++round) {
    const auto all =
        gather_values(introduction.gather,
                      options_.fabrics->number_for(device(), options_.members.world_ranks, least));
    const auto [smallest, largest] = std::ranges::minmax(all);
    number_ = least = largest;
    if (smallest == largest) return;
  }
  throw DeviceError("other groups took each number of a UCX worker that the ranks would have had");
}

void UcxDeviceEngine::prepare() {
  fabric_ = options_.fabrics->get(device(), number_);
  address_ = fabric_->address();
  if (!fabric_->knows_gpus() && !cuda::is_reached_by_host(device())) {
    throw DeviceError(fmt::format("{} does not know CUDA's memory", fabric_->name()));
  }
}

std::string UcxDeviceEngine::meet(const engine::Introduction& introduction) {
  const auto lengths = gather_values(introduction.gather, address_.size());
  std::vector<std::byte> own = address_;
  own.resize(*std::ranges::max_element(lengths));
  const auto together = introduction.gather(own);
  std::vector<std::vector<std::byte>> addresses;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto* at = together.data() + i * own.size();
    addresses.emplace_back(at, at + lengths[i]);
  }
  const Members& members = options_.members;
  fabric_->introduce(options_.world, members.world_ranks, addresses);
  RankReach own_reach;
  for (std::size_t i = 0; i < members.world_ranks.size(); ++i) {
    if (static_cast<int>(i) == members.rank) continue;
    const int rank = members.world_ranks[i];
    own_reach.direct = fabric_->reaches_gpus(rank) && own_reach.direct;
    const std::string why_not = fabric_->why_unreachable(rank);
    if (why_not.empty()) continue;
    own_reach.missing = static_cast<int>(i);
    own_reach.why_not = why_not;
  }
  const auto all = gather_values(introduction.gather, own_reach);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].missing < 0) continue;
    throw DeviceError(fmt::format("UCX has no way from rank {}'s GPU to rank {}'s: {}",
                                  i,
                                  all[i].missing,
                                  all[i].why_not.view()));
  }
  return std::ranges::all_of(all, &RankReach::direct)
             ? ""
             : "between some ranks it has no lane for their memory";
}

std::unique_ptr<engine::PointToPoint> UcxDeviceEngine::make_messages(
    const std::shared_ptr<movement::Slots>&) {
  return std::make_unique<UcxPointToPoint>(fabric_, options_.members);
}

void UcxDeviceEngine::begin() {
  answering_ = base::start_thread("hocket-ucx", [this] { answer(); });
}

bool UcxDeviceEngine::is_broken(int peer) noexcept {
  return fabric_->is_broken(options_.members.world_ranks[static_cast<std::size_t>(peer)]);
}

// Runs in the thread answering_ until the engine is closed.
void UcxDeviceEngine::answer() noexcept {
  const cuda::DeviceGuard guard(*device());
  const cuda::OutsideCapture outside(device()->driver());
  const auto is_idle = [this] { return closed_ || (!fabric_->progress() && fabric_->arm()); };
  while (!closed_) {
    base::poll_until(is_idle, Deadline::never(), Duration::zero());
    if (!closed_) wakeup_.wait({.fd = fabric_->event_fd()}, Deadline::in(kLongestIdle));
  }
}

}  // namespace hocket::engines::ucx
