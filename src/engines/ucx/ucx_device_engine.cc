#include "engines/ucx/ucx_device_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "hocket/error.h"

namespace hocket::engines::ucx {

using base::Deadline;
using movement::gather_values;

namespace {

constexpr auto kLongestIdle = std::chrono::milliseconds(500);

movement::Mover mover_of(const DeviceOptions& options) {
  return {.library = "UCX",
          .rank = options.members.rank,
          .size = static_cast<int>(options.members.world_ranks.size()),
          .always = options.always,
          .interrupted = options.interrupted};
}

}  // namespace

UcxDeviceEngine::UcxDeviceEngine(std::shared_ptr<const cuda::DeviceContext> device,
                                 DeviceOptions options)
    : MovingEngine(std::move(device), mover_of(options)), options_(std::move(options)) {}

UcxDeviceEngine::~UcxDeviceEngine() {
  // What was sent counts as sent, and nobody moves it any more once the thread has ended.
  if (fabric_ && !is_aborted()) fabric_->flush(Deadline::in(std::chrono::seconds(1)));
  closed_ = true;
  wakeup_.notify();
  if (answering_.joinable()) answering_.join();
}

void UcxDeviceEngine::prepare() {
  fabric_ = options_.fabric();
  address_ = fabric_->address();
  if (!fabric_->knows_gpus() && !cuda::is_reached_by_host(device())) {
    throw DeviceError(fmt::format("{} does not know CUDA's memory", fabric_->name()));
  }
}

std::string UcxDeviceEngine::meet(const engine::Introduction& introduction) {
  const auto lengths = gather_values(introduction, address_.size());
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
  std::uint8_t reaches = 1;
  for (std::size_t i = 0; i < members.world_ranks.size(); ++i) {
    const bool is_own = static_cast<int>(i) == members.rank;
    if (!is_own && !fabric_->reaches_gpus(members.world_ranks[i])) reaches = 0;
  }
  const auto all = gather_values(introduction, reaches);
  return std::ranges::find(all, 0) == all.end()
             ? ""
             : "between some ranks it has no lane for their memory";
}

std::unique_ptr<engine::PointToPoint> UcxDeviceEngine::make_messages(
    const std::shared_ptr<movement::Slots>&) {
  return std::make_unique<UcxPointToPoint>(fabric_, options_.members);
}

void UcxDeviceEngine::begin() {
  answering_ = std::thread([this] { answer(); });
}

bool UcxDeviceEngine::is_broken(int peer) noexcept {
  return fabric_->is_broken(options_.members.world_ranks[static_cast<std::size_t>(peer)]);
}

void UcxDeviceEngine::answer() noexcept {
  const cuda::DeviceGuard guard(*device());
  while (!closed_) {
    if (fabric_->progress() || !fabric_->arm()) {
      std::this_thread::yield();
    } else {
      wakeup_.wait({.fd = fabric_->event_fd()}, Deadline::in(kLongestIdle));
    }
  }
}

}  // namespace hocket::engines::ucx
