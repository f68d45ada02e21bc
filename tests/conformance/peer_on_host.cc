#include "peer_on_host.h"

#include <cstring>
#include <deque>
#include <stdexcept>

namespace hocket::conformance {
namespace {

using Machine = HostMachine<peer::Params>;
using SmallMachine = HostMachine<peer::SmallParams>;
using EvenMachine = HostMachine<peer::EvenParams>;

template <int kPeers, typename Fold>
void run_folding(peer::Protocol protocol, Machine& machine) {
  switch (protocol) {
    case peer::Protocol::kReducePackets:
      return peer::reduce_packets<kPeers, Fold>(machine);
    case peer::Protocol::kAllReducePackets:
      return peer::all_reduce_packets<kPeers, Fold>(machine);
    default:
      return peer::reduce_chunks<kPeers, Fold>(machine);
  }
}
template <int kPeers, typename Fold>
void run_folding(peer::Protocol, SmallMachine& machine) {
  peer::reduce_small<kPeers, Fold>(machine);
}

template <int kPeers, typename Fold>
void run_folding(peer::Protocol, EvenMachine& machine) {
  peer::reduce_even<kPeers, Fold>(machine);
}

template <int kPeers, typename AnyMachine>
void run_capacity(const peer::Step& step, AnyMachine& machine) {
  if constexpr (!std::is_same_v<AnyMachine, EvenMachine>) {
    if (!peer::folds(step.protocol)) return peer::exchange_small<kPeers>(machine);
  }
  switch (peer::folding_of(step.fold())) {
    case peer::Folding::kSumFloat32:
      return run_folding<kPeers, peer::SumFold<float>>(step.protocol, machine);
    case peer::Folding::kSumBFloat16:
      return run_folding<kPeers, peer::SumFold<bfloat16>>(step.protocol, machine);
    default:
      return run_folding<kPeers, peer::AnyFold>(step.protocol, machine);
  }
}
template <typename AnyMachine>
void run_by_capacity(const peer::Step& step, AnyMachine& machine) {
  const int peers = step.lane().peers;
  if (peers <= 1) return run_capacity<1>(step, machine);
  if (peers <= 3) return run_capacity<3>(step, machine);
  run_capacity<7>(step, machine);
}

// Number of blocks of a channel.
int roles_of(const peer::Step& step) {
  const bool small =
      peer::takes_small(step.protocol) || step.protocol == peer::Protocol::kReduceEven;
  return small ? 1 : static_cast<int>(step.params.roles);
}

void run_thread(
    const peer::Step& step, HostBlock& block, int thread, int threads, int channel, int role) {
  const int channels = step.blocks / roles_of(step);
  if (peer::takes_small(step.protocol)) {
    SmallMachine machine(step.small, block, thread, threads, channel, channels, role);
    if (step.protocol == peer::Protocol::kBarrier) return peer::barrier(machine);
    return run_by_capacity(step, machine);
  }
  if (step.protocol == peer::Protocol::kReduceEven) {
    EvenMachine machine(step.even, block, thread, threads, channel, channels, role);
    return run_by_capacity(step, machine);
  }
  Machine machine(step.params, block, thread, threads, channel, channels, role);
  switch (step.protocol) {
    case peer::Protocol::kExchangePackets:
      return peer::exchange_packets(machine);
    case peer::Protocol::kExchangeChunks:
      return peer::exchange_chunks(machine);
    case peer::Protocol::kExchangeDirect:
      return peer::exchange_direct(machine);
    default:
      return run_by_capacity(step, machine);
  }
}

}  // namespace

void run_on_host(const peer::Step& step, int threads) {
  if (step.copy_bytes > 0) {
    std::memcpy(step.copy_to, step.copy_from, step.copy_bytes);
    return;
  }
  const int roles = roles_of(step);
  if (step.blocks / roles > peer::kMaxChannels) throw std::logic_error("too many channels");
  for (int channel = 0; channel < step.blocks / roles; ++channel) {
    std::deque<HostBlock> blocks;
    for (int role = 0; role < roles; ++role) blocks.emplace_back(threads);
    std::vector<std::thread> others;
    for (int i = 1; i < roles * threads; ++i) {
      others.emplace_back([&, i] {
        const int role = i / threads;
        run_thread(
            step, blocks[static_cast<std::size_t>(role)], i % threads, threads, channel, role);
      });
    }
    run_thread(step, blocks.front(), 0, threads, channel, 0);
    for (std::thread& other : others) other.join();
  }
}

HostStaging::HostStaging(int size) : size_(size), words_(static_cast<std::size_t>(size)) {
  for (int rank = 0; rank < size; ++rank) {
    void* memory = mmap(nullptr,
                        peer::Layout::bytes(size),
                        PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                        -1,
                        0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    staging_.push_back(static_cast<std::byte*>(memory));
  }
}

HostStaging::~HostStaging() {
  for (std::byte* memory : staging_) munmap(memory, peer::Layout::bytes(size_));
}

peer::Member HostStaging::member(int rank, std::chrono::nanoseconds limit) const {
  peer::Member member =
      peer::make_member(rank, size_, staging_.data(), &words_[static_cast<std::size_t>(rank)]);
  for (peer::LaneParams& lane : member.lanes) {
    lane.limit_ns = static_cast<std::uint64_t>(limit.count());
  }
  return member;
}

void HostStaging::start_at(std::uint64_t step) {
  for (std::byte* memory : staging_) {
    for (int lane = 0; lane < peer::kAllLanes; ++lane) {
      for (int channel = 0; channel < peer::kMaxChannels; ++channel) {
        for (int q = 0; q < size_ - 1; ++q) {
          auto& link =
              *reinterpret_cast<peer::Link*>(memory + peer::Layout::link(lane, channel, q));
          link.own = {.sent = step, .received = step, .opened = step, .entered = step};
          link.peer = {.credit = step, .arrived = step, .opened = step};
        }
      }
    }
  }
}

}  // namespace hocket::conformance
