// The machine of the protocols on a GPU. block.h specifies its functions.
#pragma once

#include <cstdint>

#include "engines/peer/kernels/block.h"

namespace hocket::engines::peer {

// Every thread of a block has a copy of it. A value.
template <typename Given>
class CudaMachine {
 public:
  using Parameters = Given;
  static constexpr bool kWide = true;

  // `roles` is the number of blocks in each channel.
  __device__ CudaMachine(const Parameters& params, Counters& shared, std::uint32_t roles = 1)
      : params_(params),
        shared_(shared),
        roles_(roles),
        channel_(roles == 1 ? blockIdx.x : blockIdx.x / roles),
        role_(roles == 1 ? 0 : blockIdx.x % roles) {
    fetch_params();
  }

  __device__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ int threads() const { return static_cast<int>(blockDim.x); }
  __device__ int channel() const { return static_cast<int>(channel_); }
  __device__ int role() const { return static_cast<int>(role_); }
  __device__ int channels() const { return static_cast<int>(gridDim.x / roles_); }
  __device__ const Parameters& params() const { return params_; }
  __device__ Counters& shared() const { return shared_; }
  __device__ bool sync_or(bool value) const { return __syncthreads_or(value) != 0; }

  // Packets are scalars of 128 bits and not vectors of four words, because a GPU reads and writes
  // only scalars as a whole.
  __device__ Packet load_packet(const Packet* at) const {
    std::uint64_t low, high;
    asm volatile(
        "{ .reg .b128 packet;\n"
        "ld.relaxed.sys.global.b128 packet, [%2];\n"
        "mov.b128 {%0, %1}, packet; }"
        : "=l"(low), "=l"(high)
        : "l"(at)
        : "memory");
    return {{static_cast<std::uint32_t>(low),
             static_cast<std::uint32_t>(low >> 32),
             static_cast<std::uint32_t>(high)},
            static_cast<std::uint32_t>(high >> 32)};
  }
  __device__ void store_packet(Packet* at, const Packet& packet) const {
    const std::uint64_t low = packet.word[0] | static_cast<std::uint64_t>(packet.word[1]) << 32;
    const std::uint64_t high = packet.word[2] | static_cast<std::uint64_t>(packet.flag) << 32;
    asm volatile(
        "{ .reg .b128 packet;\n"
        "mov.b128 packet, {%1, %2};\n"
        "st.relaxed.sys.global.b128 [%0], packet; }" ::"l"(at),
        "l"(low),
        "l"(high)
        : "memory");
  }

  // The lanes of a warp load and store adjacent packets, so eight lanes make one access of 128
  // bytes. NVLink moves such an access as a whole. NCCL's protocol LL128 relies on this, too.
  __device__ std::uint32_t first_lane() const { return threadIdx.x; }
  __device__ std::uint32_t next_lane(std::uint32_t lane) const { return lane + blockDim.x; }
  __device__ bool all_lanes(bool value) const { return __all_sync(~0u, value) != 0; }
  __device__ std::uint32_t of_all_lanes(std::uint32_t bits) const {
    return __reduce_or_sync(~0u, bits);
  }
  // Only the lane that ends the line reads the line's flag. The other lanes return `flag`.
  __device__ LinePacket load_line_packet(const Packet* at,
                                         std::uint32_t lane,
                                         std::uint32_t flag) const {
    const Packet packet = load_packet(at);
    return {packet, lane % kLanesOfLine == kLanesOfLine - 1 ? packet.flag : flag};
  }

  // Bypasses the GPU's first-level cache, which does not see the stores of peers.
  __device__ Vector load_staged(const std::byte* at) const {
    Vector v;
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3])
                 : "l"(at)
                 : "memory");
    return v;
  }
  __device__ void store_staged(std::byte* at, const Vector& v) const {
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(at),
                 "r"(v.word[0]),
                 "r"(v.word[1]),
                 "r"(v.word[2]),
                 "r"(v.word[3])
                 : "memory");
  }
  __device__ std::uint64_t load_acquire(const std::uint64_t* word) const {
    std::uint64_t value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
  }
  __device__ void store_release(std::uint64_t* word, std::uint64_t value) const {
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
  }
  // A relaxed load is enough. No later load must be ordered after it. The stores to the slot are
  // ordered after it by the branch that depends on its value.
  __device__ std::uint64_t load_credit(const std::uint64_t* word) const {
    std::uint64_t value;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
  }
  // A relaxed store is enough. All loads from the slot have ended, because their values were used
  // before the preceding block barrier. Earlier stores need not have ended.
  __device__ void store_credit(std::uint64_t* word, std::uint64_t value) const {
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
  }
  __device__ void fence() const { __threadfence_system(); }
  __device__ void let_next_begin() const {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
  }

  template <typename... Values>
  __device__ void work_out(Values&... values) const {
    (pin(values), ...);
  }
  // Waits for the end of the stream's previous kernel, which may have let this kernel start early.
  __device__ void await_previous() const {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  }

  // Issues all loads together, so that no load waits for another one.
  __device__ OpenLink load_link(const Link* link) const {
    OpenLink opened;
    asm volatile(
        "ld.global.v2.u64 {%0, %1}, [%3];\n"
        "ld.relaxed.sys.global.u64 %2, [%3 + 32];"
        : "=l"(opened.sent), "=l"(opened.received), "=l"(opened.credit)
        : "l"(link)
        : "memory");
    return opened;
  }

  __device__ std::uint32_t load_flag(const std::uint32_t* flag) const { return load_word(flag); }
  __device__ bool is_dead() const { return is_dead(params_); }
  __device__ bool look(std::uint32_t missing) {
    waiting_since_ = look_around(params_, waiting_since_, missing);
    return waiting_since_ == kGivenUp;
  }

 private:
  static __device__ void pin(std::uint32_t& value) { asm volatile("" : "+r"(value)); }
  template <typename T>
  static __device__ void pin(T*& value) {
    asm volatile("" : "+l"(value));
  }

  static constexpr std::uint64_t kGivenUp = ~std::uint64_t{0};
  static constexpr std::uint64_t kSawAbort = 1;
  // Nanoseconds between two reads of HostWords by any thread of this GPU.
  static constexpr std::int64_t kBetweenTurns = 10'000;
  // A thread that has waited for so many nanoseconds writes HostWords::waits.
  static constexpr std::uint64_t kTellsAfter = 1'000'000;

  // Parameters arrive at their first use, one cache line at a time, with high latency. So each warp
  // loads a different line, and the lines arrive together.
  __device__ void fetch_params() const {
    constexpr unsigned kWordsOfLine = 16;
    constexpr unsigned kLines = sizeof(Parameters) / (kWordsOfLine * sizeof(std::uint32_t));
    const auto* words = reinterpret_cast<const std::uint32_t*>(&params_);
    for (unsigned line = threadIdx.x / 32; line < kLines; line += blockDim.x / 32) {
      asm volatile("" ::"r"(words[line * kWordsOfLine]));
    }
  }

  // Checks whether this thread must give up its wait. HostWords lie across a slow bus. So only one
  // waiting thread of this GPU accesses them at a time, every kBetweenTurns. The function is not
  // inlined, because a call that does not wait long never needs it.
  //
  // `since` is the result of this thread's previous check, or 0 at the first check. Returns the
  // time of the first check, or kGivenUp. The lowest bit of the time, kSawAbort, says that the
  // thread has seen the abort word. The thread gives up only at the next check: before it, the
  // thread polls once more for data that a peer sent before the abort.
  static __device__ __noinline__ std::uint64_t look_around(const Parameters& p,
                                                           std::uint64_t since,
                                                           std::uint32_t missing) {
    if (is_dead(p)) return kGivenUp;
    if (__ffs(static_cast<int>(__activemask())) - 1 != static_cast<int>(threadIdx.x % 32)) {
      return since;
    }
    std::uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    if (since == 0) since = now & ~kSawAbort;
    auto* host = static_cast<volatile HostWords*>(p.host);
    KernelVerdict verdict = KernelVerdict::kNone;
    if ((since & kSawAbort) != 0) verdict = KernelVerdict::kAborted;
    if (takes_its_turn(p, now)) {
      if (now - since >= kTellsAfter) host->waits = waiting_word(p.call, now);
      if (host->abort != 0) {
        __threadfence_system();
        since |= kSawAbort;
      }
    }
    if (p.limit_ns != 0 && now - since >= p.limit_ns) verdict = KernelVerdict::kDeadline;
    if (verdict == KernelVerdict::kNone) return since;
    if (atomicCAS(p.dead(), 0u, static_cast<std::uint32_t>(verdict)) == 0) {
      host->missing = missing;
      host->lane = p.lane;
      host->limit_ns = p.limit_ns;
      __threadfence_system();
      host->verdict = static_cast<std::uint32_t>(verdict);
    }
    return kGivenUp;
  }

  static __device__ std::uint32_t load_word(const std::uint32_t* word) {
    std::uint32_t value;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
  }
  static __device__ bool is_dead(const Parameters& p) { return load_word(p.dead()) != 0; }
  static __device__ bool takes_its_turn(const Parameters& p, std::uint64_t now) {
    auto* looked = reinterpret_cast<unsigned long long*>(&p.header()->looked);
    unsigned long long last;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(last) : "l"(looked) : "memory");
    const auto since = static_cast<std::int64_t>(now - last);
    return since >= kBetweenTurns && atomicCAS(looked, last, now) == last;
  }

  const Parameters& params_;
  Counters& shared_;
  std::uint32_t roles_, channel_, role_;
  std::uint64_t waiting_since_ = 0;  // result of look_around; 0: no check yet
};

}  // namespace hocket::engines::peer
