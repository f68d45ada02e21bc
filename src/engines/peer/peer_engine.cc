#include "engines/peer/peer_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "foundation/base/log.h"
#include "foundation/base/short_text.h"
#include "foundation/cuda/exchange.h"
#include "foundation/cuda/idle.h"
#include "foundation/cuda/memory_pattern.h"
#include "foundation/cuda/nvlink.h"
#include "hocket/error.h"

namespace hocket::engines::peer {

using engine::Call;
using engine::DeviceMessage;
using engine::Kind;

std::string PeerEngine::why_not(const engine::GroupFacts& facts) {
  if (facts.size == 1) return "";  // a single rank only needs copies
  if (facts.size > kMaxRanks) {
    return fmt::format("{} ranks, the kernels serve up to {}", facts.size, kMaxRanks);
  }
  if (!facts.one_host) return "the ranks are on several hosts";
  return PeerKernels::why_not();
}

PeerEngine::PeerEngine(std::shared_ptr<const cuda::DeviceContext> device,
                       const engine::GroupFacts& facts,
                       const PeerTuning& tuning,
                       int ranks_a_gpu)
    : device_(std::move(device)),
      tuning_(tuning),
      rank_(facts.rank),
      size_(facts.size),
      ranks_a_gpu_(ranks_a_gpu) {}

namespace {

// The time limit of the destructor's wait for this GPU's work.
constexpr auto kPatience = std::chrono::seconds(10);

}  // namespace

PeerEngine::~PeerEngine() {
  abort();
  if (!kernels_) return;
  // Kernels in progress still use this memory. They end soon after an abort, but kernels of the
  // program may delay them.
  struct Used {
    std::vector<cuda::Mapping> mappings;
    std::unique_ptr<PeerKernels> kernels;
    std::shared_ptr<cuda::HostBuffer> words;
  };
  const std::shared_ptr<Used> used(
      new Used{std::move(mappings_), std::move(kernels_), std::move(words_)});
  cuda::release_when_idle(device_, used, base::Deadline::in(kPatience));
}

namespace {

// The assumed costs on GPUs without measured costs: microseconds of latency, and bandwidth.
constexpr double kLatency = 4;
constexpr double kBytesPerMicrosecond = 200'000;

}  // namespace

std::optional<engine::Score> PeerEngine::score(const engine::Signature& signature) const noexcept {
  if (!kCarries.has(signature.kind)) return std::nullopt;
  return engine::Score{kLatency +
                       static_cast<double>(engine::bytes_of(signature)) / kBytesPerMicrosecond};
}

template <typename Stage>
void PeerEngine::together(const engine::Introduction& introduction, const Stage& stage) {
  std::string error;
  try {
    stage();
  } catch (const Error& e) {
    error = e.what();
  }
  const auto failed = engine::gather_values(introduction.gather, std::byte{!error.empty()});
  if (!error.empty()) throw DeviceError(error);
  for (std::size_t rank = 0; rank < failed.size(); ++rank) {
    if (failed[rank] != std::byte{0}) throw DeviceError(fmt::format("rank {} cannot", rank));
  }
}

void PeerEngine::connect(const engine::Introduction& introduction) {
  if (size_ == 1) return;
  os::Fd shared;
  together(introduction, [&] {
    allocate();
    shared = mappings_.front().share();
  });
  const std::vector<cuda::Handed> handed = cuda::exchange_descriptors(
      rank_, size_, shared, mappings_.front().bytes(), introduction.gather, introduction.deadline);
  together(introduction, [&] {
    mappings_.reserve(static_cast<std::size_t>(size_));
    for (std::size_t rank = 0; rank < handed.size(); ++rank) {
      if (static_cast<int>(rank) == rank_) continue;
      if (handed[rank].bytes < Layout::bytes(size_)) {
        throw DeviceError(fmt::format("rank {} shares too little memory", rank));
      }
      mappings_.push_back(cuda::Mapping::import(device_, handed[rank].fd, handed[rank].bytes));
      staging_[rank] = reinterpret_cast<std::byte*>(mappings_.back().address());
    }
    write_patterns(introduction.deadline);
  });
  std::uint32_t own_room = 0;
  together(introduction, [&] {
    read_patterns(introduction.deadline);
    own_room = std::min(static_cast<std::uint32_t>(kernels_->blocks_at_once() / ranks_a_gpu_),
                        tuning_.blocks);
  });
  const auto room = std::ranges::min(engine::gather_values(introduction.gather, own_room));
  if (room < kWithResults) {
    throw DeviceError(fmt::format(
        "{} ranks share a GPU, which runs {} blocks of each at a time; the kernels need {}",
        ranks_a_gpu_,
        room,
        kWithResults));
  }
  member_ =
      make_member(rank_, size_, staging_, reinterpret_cast<HostWords*>(words_->device_address()));
  tuning_ = with_room(tuning_, room);
  tuning_.lines = has_nvlink(introduction) && tuning_.lines;
  limit(allowed_);
}

// Returns whether NVLink connects all GPUs of the group. All ranks get the same answer.
bool PeerEngine::has_nvlink(const engine::Introduction& introduction) const {
  const std::string bus_id = device_->bus_id();
  base::ShortText<32> own;
  own = bus_id;
  std::vector<std::string> others;
  for (const auto& other : engine::gather_values(introduction.gather, own)) {
    others.emplace_back(other.view());
  }
  const std::string why_not = cuda::why_no_nvlink(bus_id, others);
  if (!why_not.empty()) {
    base::log(base::LogLevel::kDebug,
              fmt::format("GPU engine peer does without whole lines: {}", why_not));
  }
  const auto lacks = engine::gather_values(introduction.gather, std::byte{!why_not.empty()});
  return std::ranges::all_of(lacks, [](std::byte one) { return one == std::byte{0}; });
}

void PeerEngine::allocate() {
  if (const std::string why = PeerKernels::why_not(); !why.empty()) throw DeviceError(why);
  kernels_ = std::make_unique<PeerKernels>(device_, size_);
  words_ = std::make_shared<cuda::HostBuffer>(device_, sizeof(HostWords));
  mappings_.push_back(cuda::Mapping::create(device_, Layout::bytes(size_)));
  staging_[rank_] = reinterpret_cast<std::byte*>(mappings_.front().address());
}

// Each rank writes a test pattern into the staging area of every peer. It lies in the memory of the
// chunks, which need not be zero.
void PeerEngine::write_patterns(base::Deadline deadline) {
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    const auto at = reinterpret_cast<cuda::DevicePtr>(staging_[peer]) +
                    Layout::zeroed_bytes(size_) +
                    static_cast<std::size_t>(rank_) * cuda::kPatternBytes;
    const std::string why =
        cuda::write_pattern(device_, at, static_cast<std::uint32_t>(rank_), deadline);
    if (!why.empty()) throw DeviceError(fmt::format("rank {}'s memory: {}", peer, why));
  }
}
// Each rank waits for the test patterns of all peers in its own staging area.
void PeerEngine::read_patterns(base::Deadline deadline) {
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    const auto at = reinterpret_cast<cuda::DevicePtr>(staging_[rank_]) +
                    Layout::zeroed_bytes(size_) +
                    static_cast<std::size_t>(peer) * cuda::kPatternBytes;
    const std::string why =
        cuda::read_pattern(device_, at, static_cast<std::uint32_t>(peer), deadline);
    if (!why.empty()) {
      throw DeviceError(fmt::format("what rank {} wrote did not arrive: {}", peer, why));
    }
  }
}

void PeerEngine::launch(std::span<Step> steps, cuda::Stream stream) const {
  for (Step& step : steps) {
    if (step.copy_bytes > 0) {
      cuda::copy(device_->driver(), step.copy_to, step.copy_from, step.copy_bytes, stream);
    } else {
      step.lane().call = next_;
      kernels_->launch(step, stream);
    }
  }
}

// The plan of a repeated call. A step contains the time limit, so the call is planned again after
// the limit has changed.
class PeerEngine::Steps final : public engine::DeviceSteps {
 public:
  Steps(const PeerEngine& engine, const Call& call, PeerOuts outs)
      : engine_(engine), call_(call), outs_(outs.begin(), outs.end()) {}

  void enqueue(StreamRef stream) override {
    if (planned_at_ != engine_.limits_) {
      steps_ = plan(call_, engine_.member_, engine_.tuning_, outs_);
      planned_at_ = engine_.limits_;
    }
    engine_.launch(steps_, stream.handle());
  }

 private:
  const PeerEngine& engine_;
  const Call call_;
  const std::vector<std::byte*> outs_;
  std::vector<Step> steps_;
  std::optional<std::uint64_t> planned_at_;  // the value of engine_.limits_ when it was planned
};

// The plan of a v-form is not kept, because its parts are stored in the caller's arrays and may
// change.
std::unique_ptr<engine::DeviceSteps> PeerEngine::steps_of(const Call& call, PeerOuts outs) {
  if (is_listed(call.signature.kind)) return nullptr;
  return std::make_unique<Steps>(*this, call, outs);
}

void PeerEngine::enqueue(const Call& call, StreamRef stream) {
  std::vector<Step> steps = plan(call, member_, tuning_, {});
  launch(steps, stream.handle());
}

// A launch carries at most one message in each direction with each peer. All ranks take messages in
// the order of their lists, so that the messages between two ranks match.
void PeerEngine::exchange(std::span<const DeviceMessage> messages, StreamRef stream) {
  std::vector<DeviceMessage> left(messages.begin(), messages.end());
  while (!left.empty()) {
    PeerMessage now[kMaxRanks];
    std::vector<DeviceMessage> later;
    for (const DeviceMessage& message : left) {
      PeerMessage& pair = now[message.peer];
      pair.peer = message.peer;
      const bool sends = message.way == DeviceMessage::Way::kSend;
      if ((sends ? pair.send_bytes : pair.receive_bytes) > 0) {
        later.push_back(message);
      } else if (sends) {
        pair.send = message.data;
        pair.send_bytes = message.bytes;
      } else {
        pair.receive = message.data;
        pair.receive_bytes = message.bytes;
      }
    }
    std::vector<Step> steps = plan_messages(now, member_, tuning_);
    launch(steps, stream.handle());
    left = std::move(later);
  }
}

bool PeerEngine::keeps_time(Duration allowed, std::uint64_t sequence) noexcept {
  limit(allowed);
  next_ = static_cast<std::uint32_t>(sequence);
  return true;
}

void PeerEngine::limit(Duration allowed) noexcept {
  allowed_ = allowed;
  const auto limit = allowed == kForever ? 0 : static_cast<std::uint64_t>(allowed.count());
  if (member_.lanes[0].limit_ns == limit) return;
  for (LaneParams& lane : member_.lanes) lane.limit_ns = limit;
  ++limits_;
}

std::optional<engine::DeviceWait> PeerEngine::waits() noexcept {
  if (!words_) return std::nullopt;
  const std::uint64_t word = std::atomic_ref(words().waits).load(std::memory_order_relaxed);
  return engine::DeviceWait{.call = static_cast<std::uint32_t>(word >> 32),
                            .beat = static_cast<std::uint32_t>(word)};
}

std::optional<engine::DeviceProblem> PeerEngine::problem() noexcept {
  if (!words_) return std::nullopt;
  const auto missing = [&] {
    std::uint64_t ranks = 0;
    for (int j = 0; j < size_ - 1; ++j) {
      if ((words().missing >> j & 1) != 0) ranks |= std::uint64_t{1} << rank_of_peer(j, rank_);
    }
    return ranks;
  };
  const auto verdict =
      static_cast<KernelVerdict>(std::atomic_ref(words().verdict).load(std::memory_order_acquire));
  switch (verdict) {
    case KernelVerdict::kNone:
      return std::nullopt;
    case KernelVerdict::kAborted:
      return engine::DeviceProblem{.code = ErrorCode::kAborted,
                                   .missing = missing(),
                                   .text = "the kernels were told to end"};
    case KernelVerdict::kDeadline:
      break;
  }
  return engine::DeviceProblem{.code = ErrorCode::kDeadlineExceeded,
                               .missing = missing(),
                               .of_messages = words().lane == kMessages,
                               .allowed = std::chrono::nanoseconds(words().limit_ns),
                               .text = "a kernel has waited for its peers as long as it may"};
}

void PeerEngine::abort() noexcept {
  if (words_) std::atomic_ref(words().abort).store(1, std::memory_order_release);
}

}  // namespace hocket::engines::peer
