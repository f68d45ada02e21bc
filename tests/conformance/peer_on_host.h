// Runs the protocols of the engine `peer` on the host. Ranks are threads, staging is ordinary
// memory, and a block is one thread or a few. The code that runs is the source of the kernels.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

#include "engines/peer/kernels/protocols.h"
#include "engines/peer/plan.h"

namespace hocket::conformance {

namespace peer = engines::peer;

// State that the threads of a block share.
struct HostBlock {
  explicit HostBlock(int threads) : barrier(threads) {}
  peer::Counters counters{};
  std::barrier<> barrier;
  std::atomic<bool> said[2] = {};
};

// The machine that protocols are written over; see engines/peer/block.h. A value, one a thread.
template <typename Given>
class HostMachine {
 public:
  using Parameters = Given;
  static constexpr bool kWide = false;

  HostMachine(const Parameters& params,
              HostBlock& block,
              int thread,
              int threads,
              int channel,
              int channels,
              int role)
      : params_(params),
        block_(block),
        thread_(thread),
        threads_(threads),
        channel_(channel),
        channels_(channels),
        role_(role) {}

  int thread() const { return thread_; }
  int threads() const { return threads_; }
  int channel() const { return channel_; }
  int channels() const { return channels_; }
  int role() const { return role_; }
  const Parameters& params() const { return params_; }
  peer::Counters& shared() { return block_.counters; }

  bool sync_or(bool value) {
    if (threads_ == 1) return value;
    std::atomic<bool>& said = block_.said[meetings_++ % 2];
    if (value) said.store(true, std::memory_order_relaxed);
    block_.barrier.arrive_and_wait();
    const bool result = said.load(std::memory_order_relaxed);
    block_.barrier.arrive_and_wait();
    if (thread_ == 0) said.store(false, std::memory_order_relaxed);
    return result;
  }

  // The second half of a packet holds the flag: who sees it sees the first one.
  peer::Packet load_packet(const peer::Packet* at) const {
    auto* halves = reinterpret_cast<std::uint64_t*>(const_cast<peer::Packet*>(at));
    const std::uint64_t second = std::atomic_ref(halves[1]).load(std::memory_order_acquire);
    const std::uint64_t first = std::atomic_ref(halves[0]).load(std::memory_order_relaxed);
    return {{static_cast<std::uint32_t>(first),
             static_cast<std::uint32_t>(first >> 32),
             static_cast<std::uint32_t>(second)},
            static_cast<std::uint32_t>(second >> 32)};
  }
  void store_packet(peer::Packet* at, const peer::Packet& packet) const {
    auto* halves = reinterpret_cast<std::uint64_t*>(at);
    std::atomic_ref(halves[0]).store(packet.word[0] | std::uint64_t{packet.word[1]} << 32,
                                     std::memory_order_relaxed);
    std::atomic_ref(halves[1]).store(packet.word[2] | std::uint64_t{packet.flag} << 32,
                                     std::memory_order_release);
  }
  // Each thread moves whole lines, lane by lane. The lane that ends a line comes last.
  std::uint32_t first_lane() const {
    return static_cast<std::uint32_t>(thread_) * peer::kLanesOfLine;
  }
  std::uint32_t next_lane(std::uint32_t lane) const {
    if (lane % peer::kLanesOfLine != peer::kLanesOfLine - 1) return lane + 1;
    return lane + 1 + static_cast<std::uint32_t>(threads_ - 1) * peer::kLanesOfLine;
  }
  bool all_lanes(bool value) const { return value; }
  std::uint32_t of_all_lanes(std::uint32_t bits) const { return bits; }
  peer::LinePacket load_line_packet(const peer::Packet* at,
                                    std::uint32_t lane,
                                    std::uint32_t /*flag*/) const {
    const std::uint32_t to_end = peer::kLanesOfLine - 1 - lane % peer::kLanesOfLine;
    const std::uint32_t flag = load_packet(at + to_end).flag;
    return {load_packet(at), flag};
  }
  peer::Vector load_staged(const std::byte* at) const {
    return peer::load_aligned<peer::Vector>(at);
  }
  void store_staged(std::byte* at, const peer::Vector& vector) const {
    peer::store_aligned(at, vector);
  }
  std::uint64_t load_acquire(const std::uint64_t* word) const {
    return std::atomic_ref(*const_cast<std::uint64_t*>(word)).load(std::memory_order_acquire);
  }
  void store_release(std::uint64_t* word, std::uint64_t value) const {
    std::atomic_ref(*word).store(value, std::memory_order_release);
  }
  std::uint64_t load_credit(const std::uint64_t* word) const { return load_acquire(word); }
  void store_credit(std::uint64_t* word, std::uint64_t value) const { store_release(word, value); }
  template <typename... Values>
  void work_out(Values&...) const {}
  void await_previous() const {}  // a launch ends before the next
  void let_next_begin() const {}
  void fence() const {}  // packets and credits are released anyway

  peer::OpenLink load_link(const peer::Link* link) const {
    return {.sent = link->own.sent,
            .received = link->own.received,
            .credit = load_acquire(&link->peer.credit)};
  }
  std::uint32_t load_flag(const std::uint32_t* flag) const {
    return std::atomic_ref(*const_cast<std::uint32_t*>(flag)).load(std::memory_order_relaxed);
  }
  bool is_dead() const { return load_flag(params_.dead()) != 0; }
  bool look(std::uint32_t missing) {
    std::this_thread::yield();
    if (is_dead()) return true;
    if (saw_abort_) {  // and has polled since
      report(peer::KernelVerdict::kAborted, missing);
      return true;
    }
    saw_abort_ = std::atomic_ref(params_.host->abort).load(std::memory_order_acquire) != 0;
    const auto now = std::chrono::steady_clock::now();
    if (since_ == std::chrono::steady_clock::time_point{}) since_ = now;
    const auto now_ns =
        static_cast<std::uint64_t>(now.time_since_epoch() / std::chrono::nanoseconds(1));
    std::atomic_ref(params_.host->waits)
        .store(peer::waiting_word(params_.call, now_ns), std::memory_order_relaxed);
    if (params_.limit_ns == 0) return false;
    if (now - since_ < std::chrono::nanoseconds(params_.limit_ns)) return false;
    report(peer::KernelVerdict::kDeadline, missing);
    return true;
  }

 private:
  void report(peer::KernelVerdict verdict, std::uint32_t missing) const {
    std::uint32_t none = 0;
    if (!std::atomic_ref(*params_.dead())
             .compare_exchange_strong(none, static_cast<std::uint32_t>(verdict))) {
      return;
    }
    peer::HostWords& host = *params_.host;
    host.missing = missing;
    host.lane = params_.lane;
    host.limit_ns = params_.limit_ns;
    std::atomic_ref(host.verdict)
        .store(static_cast<std::uint32_t>(verdict), std::memory_order_release);
  }

  const Parameters& params_;
  HostBlock& block_;
  int thread_, threads_, channel_, channels_, role_;
  unsigned meetings_ = 0;
  bool saw_abort_ = false;
  std::chrono::steady_clock::time_point since_{};
};

// Runs one kernel of a plan, its channels one after the other, each of its blocks with `threads`
// threads.
void run_on_host(const peer::Step& step, int threads);

// The memory of a group: staging and host words of all ranks, zeroed.
class HostStaging {
 public:
  explicit HostStaging(int size);
  ~HostStaging();
  HostStaging(const HostStaging&) = delete;
  HostStaging& operator=(const HostStaging&) = delete;

  peer::Member member(int rank, std::chrono::nanoseconds limit) const;
  peer::HostWords& words(int rank) { return words_[static_cast<std::size_t>(rank)]; }
  // Lets all links of the group look as if so many steps had been made.
  void start_at(std::uint64_t step);

 private:
  int size_;
  std::vector<std::byte*> staging_;
  mutable std::vector<peer::HostWords> words_;
};

}  // namespace hocket::conformance
