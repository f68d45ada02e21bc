// A plain program for few kinds of call: all_reduce, reduce_scatter, all_gather, broadcast and
// all_to_all of float32 in ordinary memory, between the ranks of a host. It has no checks and no
// handling of failures. `hocket bench --compare bare` measures it beside hocket. For long arrays
// hocket should come near to its times.
//
// There are several methods. When the arrays are made, the program tries all and keeps the
// quickest:
//
//   chunks    each rank copies piece after piece into its two chunks of shared memory, where the
//             others read them. The copies in, the results, or neither are stored past the caches
//   one copy  each rank reads directly from the others' memory, by process_vm_readv
//
// all_reduce of more than two ranks makes a reduce_scatter and an all_gather of each piece:
//
//   piece:    0       1       2       3
//   fill      step 0  step 1  step 2  step 3     copy this rank's piece into its chunk
//   reduce            step 1  step 2  step 3     add up this rank's part of all ranks' pieces
//   gather                    step 2  step 3     copy all ranks' parts into the result
//
// Two ranks also have an all_reduce in symmetric memory. Each rank reads one half of both arrays
// directly, adds them up, and stores the sum to both results, past the caches.
#include <sched.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/bare_memory.h"
#include "interfaces/cli/bench/peer.h"
#include "interfaces/cli/bench/wire.h"

namespace hocket::cli::bench {
namespace {

constexpr std::size_t kChunk = std::size_t{256} << 10;
constexpr std::size_t kPageBytes = std::size_t{64} << 10;  // a multiple of any page
// The bytes that are summed before the next array is read.
constexpr std::size_t kBlock = std::size_t{32} << 10;

std::string needed(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) throw std::runtime_error(std::string(name) + " is not set");
  return value;
}

using Word = std::atomic<std::uint64_t>;

void wait_for(const Word& word, std::uint64_t least) {
  constexpr int kSpins = 1 << 12;
  for (int spins = 0; word.load(std::memory_order_acquire) < least; ++spins) {
    if (spins > kSpins) ::sched_yield();  // ranks may be more than processors
  }
}

// A rank's part of the shared memory. Only this rank writes it. Its words count the pieces of all
// calls so far.
struct Place {
  Word met{0};
  alignas(128) Word filled{0};
  alignas(128) Word reduced{0};
  alignas(128) Word read{0};
  alignas(128) std::atomic<std::int64_t> pid{0};
  std::atomic<const float*> in{nullptr};
  std::atomic<float*> out{nullptr};
  std::atomic<std::int64_t> nanoseconds{0};  // time of the method that was tried last
  alignas(4096) std::byte chunks[2][kChunk];
  alignas(4096) std::byte results[2][kChunk];
};

struct Way {
  bool copies_once = false;
  bool fill_streams = false;
  bool out_streams = false;
};
constexpr Way kWays[] = {{false, false, false}, {false, false, true}, {false, true, true}, {true}};

// A resource: the places of all ranks. One thread. Fails with standard exceptions.
class Bare final : public Library {
 public:
  Bare()
      : job_rank_{std::stoi(needed("HOCKET_RANK")), std::stoi(needed("HOCKET_SIZE"))},
        ranks_(static_cast<std::size_t>(job_rank_.ranks)),
        rank_(static_cast<std::size_t>(job_rank_.rank)),
        name_("/hocket-bench-" + needed(kTokenVariable) + "-" + std::to_string(job_rank_.ranks)) {
    // Lets sibling processes read this memory.
    ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    memory_ = std::make_unique<Shared>(name_, ranks_ * sizeof(Place), [this](std::byte* data) {
      places_ = reinterpret_cast<Place*>(data);  // zeroed memory is a valid Place
      mine().pid = ::getpid();
      barrier();
    });
  }

  JobRank job_rank() const override { return job_rank_; }
  std::string name() const override { return "bare"; }
  std::string version() const override { return "a bare program"; }
  void barrier() override {
    mine().met.store(++met_, std::memory_order_release);
    wait_for_all(&Place::met, met_);
  }

  std::optional<std::string> refusal(const Case& subject) const override {
    if (subject.dtype != DType::kFloat32 || subject.op != ReduceOp::kSum) {
      return "it knows float32 and sums alone";
    }
    if (subject.memory == Memory::kSymmetric &&
        (job_rank_.ranks != 2 || subject.collective != Collective::kAllReduce ||
         subject.in_place)) {
      return "in symmetric memory it knows all_reduce of two ranks alone";
    }
    switch (subject.collective) {
      case Collective::kBroadcast:
        return std::nullopt;
      case Collective::kAllReduce:
      case Collective::kReduceScatter:
      case Collective::kAllGather:
      case Collective::kAllToAll:
        if (subject.in_place) return "it works out of place alone";
        return std::nullopt;
      default:
        return "it knows all_reduce, reduce_scatter, all_gather, broadcast and all_to_all alone";
    }
  }

  Bound bind(const Case& subject) override {
    return subject.memory == Memory::kSymmetric ? bind_symmetric(subject) : bind_plain(subject);
  }

 private:
  Place& mine() const { return places_[rank_]; }
  void wait_for_all(Word Place::* word, std::uint64_t least) const {
    for (std::size_t rank = 0; rank < ranks_; ++rank) wait_for(places_[rank].*word, least);
  }

  Bound bind_symmetric(const Case& subject) {
    const std::size_t count = subject.elements;
    const std::size_t bytes = (count * sizeof(float) + kPageBytes - 1) / kPageBytes * kPageBytes;
    const std::string name = name_ + "-" + std::to_string(++arrays_);
    // The order in memory: rank 0's input, rank 0's result, rank 1's input, rank 1's result.
    auto memory = std::make_shared<Shared>(name, 4 * bytes, [this](std::byte*) { barrier(); });
    const auto at = [&](std::size_t place) {
      return reinterpret_cast<float*>(memory->data() + place * bytes);
    };
    float* const in = at(2 * rank_);
    float* const out = at(2 * rank_ + 1);
    const float* const first = at(0);
    const float* const second = at(2);
    float* const other_out = at(2 * (1 - rank_) + 1);
    const std::size_t half = count / 2 / 16 * 16;
    const std::size_t from = rank_ == 0 ? 0 : half;
    const std::size_t length = rank_ == 0 ? half : count - half;
    Bound bound;
    bound.arrays = {in, out};
    bound.owners.push_back(memory);
    bound.calls = [=, this](long n) {
      for (; n > 0; --n) {
        barrier();
        add(out + from, other_out + from, first + from, second + from, length, true);
        barrier();
      }
    };
    return bound;
  }

  Bound bind_plain(const Case& subject) {
    Bound bound;
    bind_ordinary_arrays(bound, subject, job_rank_);
    const auto arrays = bound.arrays;
    const Way way = quickest_way(subject, arrays);
    bound.calls = [=, this](long n) {
      if (way.copies_once) publish(arrays);
      for (; n > 0; --n) call(subject, arrays, way);
    };
    return bound;
  }

  // --- Which way ---------------------------------------------------------------------------------

  Way quickest_way(const Case& subject, Arrays arrays) {
    constexpr int kTurns = 3;
    Way best;
    std::int64_t least = INT64_MAX;
    publish(arrays);
    for (const Way& way : kWays) {
      if (way.copies_once && !all_can_read()) continue;
      std::int64_t took = INT64_MAX;
      for (int turn = 0; turn < kTurns; ++turn) took = std::min(took, time(subject, arrays, way));
      if (took < least) {
        least = took;
        best = way;
      }
    }
    return best;
  }

  // Returns the time of the slowest rank, the same number on all ranks.
  std::int64_t time(const Case& subject, Arrays arrays, Way way) {
    barrier();
    const auto begin = std::chrono::steady_clock::now();
    call(subject, arrays, way);
    mine().nanoseconds = (std::chrono::steady_clock::now() - begin) / std::chrono::nanoseconds(1);
    barrier();
    std::int64_t most = 0;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      most = std::max<std::int64_t>(most, places_[rank].nanoseconds);
    }
    barrier();
    return most;
  }

  // Tells the others where this rank's arrays lie.
  void publish(Arrays arrays) {
    mine().in = static_cast<const float*>(arrays.in);
    mine().out = static_cast<float*>(arrays.out);
    barrier();
  }

  bool all_can_read() {
    bool can = true;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      float word = 0;
      can = can && (rank == rank_ || try_pull(rank, &word, places_[rank].out, 1));
    }
    mine().nanoseconds = can ? 1 : 0;
    barrier();
    for (std::size_t rank = 0; rank < ranks_; ++rank) can = can && places_[rank].nanoseconds == 1;
    barrier();
    return can;
  }

  // --- The calls ---------------------------------------------------------------------------------

  void call(const Case& subject, Arrays arrays, Way way) {
    const auto* in = static_cast<const float*>(arrays.in);
    auto* out = static_cast<float*>(arrays.out);
    if (way.copies_once) return by_one_copy(subject, in, out);
    const std::size_t one = subject.elements;
    switch (subject.collective) {
      case Collective::kAllReduce:
        return job_rank_.ranks > 2 ? all_reduce(in, out, one, way)
                                   : all_reduce_of_two(in, out, one, way);
      case Collective::kBroadcast:
        return broadcast(out, one, way);
      case Collective::kAllGather:
        return all_gather(in, out, one, way);
      case Collective::kAllToAll:
        return exchange(in, out, one, way, false);
      default:
        return exchange(in, out, one, way, true);
    }
  }

  float* chunk(std::size_t rank, std::uint64_t number) const {
    return reinterpret_cast<float*>(places_[rank].chunks[number % 2]);
  }
  float* result(std::size_t rank, std::uint64_t number) const {
    return reinterpret_cast<float*>(places_[rank].results[number % 2]);
  }

  // Moves `count` elements through the chunks, in pieces of at most `room`. In each step `fill`
  // puts a piece into this rank's chunk. `use` takes the piece before it from all ranks' chunks.
  // Both get the number, offset and length of the piece.
  void through_chunks(std::size_t count, std::size_t room, const auto& fill, const auto& use) {
    const std::size_t pieces = (count + room - 1) / room;
    for (std::size_t k = 0; k <= pieces; ++k) {
      if (k < pieces) {
        const std::uint64_t number = pieces_ + k;
        if (number >= 2) wait_for_all(&Place::read, number - 1);
        fill(number, k * room, std::min(room, count - k * room));
        mine().filled.store(number + 1, std::memory_order_release);
      }
      if (k == 0) continue;
      const std::uint64_t number = pieces_ + k - 1;
      const std::size_t offset = (k - 1) * room;
      use(number, offset, std::min(room, count - offset));
      mine().reduced.store(number + 1, std::memory_order_release);
      mine().read.store(number + 1, std::memory_order_release);
    }
    pieces_ += pieces;
  }

  // Calls `f` with each other rank, beginning with the next one, so that not all ranks read from
  // the same rank at once.
  void for_others(const auto& f) const {
    for (std::size_t i = 1; i < ranks_; ++i) f((rank_ + i) % ranks_);
  }

  static constexpr std::size_t kElements = kChunk / sizeof(float);

  void all_reduce_of_two(const float* in, float* out, std::size_t count, Way way) {
    through_chunks(
        count,
        kElements,
        [&](std::uint64_t number, std::size_t offset, std::size_t length) {
          copy(chunk(rank_, number), in + offset, length * sizeof(float), way.fill_streams);
        },
        [&](std::uint64_t number, std::size_t offset, std::size_t length) {
          const std::size_t other = ranks_ - 1 - rank_;  // itself if there is only one rank
          wait_for(places_[other].filled, number + 1);
          const float* const theirs = chunk(other, number);
          if (ranks_ == 1) {
            copy(out + offset, theirs, length * sizeof(float), way.out_streams);
            return;
          }
          const float* const mine = in + offset;
          add(out + offset,
              nullptr,
              rank_ == 0 ? mine : theirs,
              rank_ == 0 ? theirs : mine,
              length,
              way.out_streams);
        });
  }

  void broadcast(float* out, std::size_t count, Way way) {
    const bool is_root = job_rank_.rank == kRoot;
    through_chunks(
        count,
        kElements,
        [&](std::uint64_t number, std::size_t offset, std::size_t length) {
          if (!is_root) return;
          copy(chunk(rank_, number), out + offset, length * sizeof(float), way.fill_streams);
        },
        [&](std::uint64_t number, std::size_t offset, std::size_t length) {
          if (is_root) return;
          wait_for(places_[kRoot].filled, number + 1);
          copy(out + offset, chunk(kRoot, number), length * sizeof(float), way.out_streams);
        });
  }

  void all_gather(const float* in, float* out, std::size_t one, Way way) {
    through_chunks(
        one,
        kElements,
        [&](std::uint64_t number, std::size_t offset, std::size_t length) {
          copy(chunk(rank_, number), in + offset, length * sizeof(float), way.fill_streams);
        },
        [&](std::uint64_t number, std::size_t offset, std::size_t length) {
          const std::size_t bytes = length * sizeof(float);
          copy(out + rank_ * one + offset, in + offset, bytes, way.out_streams);
          for_others([&](std::size_t rank) {
            wait_for(places_[rank].filled, number + 1);
            copy(out + rank * one + offset, chunk(rank, number), bytes, way.out_streams);
          });
        });
  }

  // Makes an all_to_all. With `reduces` it adds up the received parts, which makes a
  // reduce_scatter. A chunk has one part for each rank.
  void exchange(const float* in, float* out, std::size_t one, Way way, bool reduces) {
    const std::size_t room = std::max<std::size_t>(16, kElements / ranks_ / 16 * 16);
    through_chunks(
        one,
        room,
        [&](std::uint64_t number, std::size_t offset, std::size_t length) {
          for_others([&](std::size_t rank) {
            copy(chunk(rank_, number) + rank * room,
                 in + rank * one + offset,
                 length * sizeof(float),
                 way.fill_streams);
          });
        },
        [&](std::uint64_t number, std::size_t offset, std::size_t length) {
          const float* const own = in + rank_ * one + offset;
          if (reduces) {
            wait_for_all(&Place::filled, number + 1);
            sum(out + offset, length, way.out_streams, [&](std::size_t rank) {
              return rank == rank_ ? own : chunk(rank, number) + rank_ * room;
            });
            return;
          }
          const std::size_t bytes = length * sizeof(float);
          copy(out + rank_ * one + offset, own, bytes, way.out_streams);
          for_others([&](std::size_t rank) {
            wait_for(places_[rank].filled, number + 1);
            copy(out + rank * one + offset,
                 chunk(rank, number) + rank_ * room,
                 bytes,
                 way.out_streams);
          });
        });
  }

  // Adds up the arrays of all ranks in rank order. `source(rank)` returns a rank's array.
  void sum(float* out, std::size_t count, bool streams, const auto& source) const {
    alignas(64) float block[kBlock / sizeof(float)];
    for (std::size_t at = 0; at < count; at += std::size(block)) {
      const std::size_t length = std::min(std::size(block), count - at);
      copy(block, source(0) + at, length * sizeof(float), false);
      for (std::size_t rank = 1; rank < ranks_; ++rank) {
        accumulate(block, source(rank) + at, length);
      }
      copy(out + at, block, length * sizeof(float), streams);
    }
  }

  void all_reduce(const float* in, float* out, std::size_t count, Way way) {
    const std::size_t pieces = (count + kElements - 1) / kElements;
    const auto length_of = [&](std::size_t k) {
      return std::min(kElements, count - k * kElements);
    };
    const auto begin_of = [&](std::size_t rank, std::size_t length) {
      return rank == ranks_ ? length : rank * length / ranks_ / 16 * 16;
    };
    for (std::size_t k = 0; k < pieces + 2; ++k) {
      const std::uint64_t number = pieces_ + k;
      if (k < pieces) {
        if (number >= 2) wait_for_all(&Place::reduced, number - 1);
        copy(chunk(rank_, number),
             in + k * kElements,
             length_of(k) * sizeof(float),
             way.fill_streams);
        mine().filled.store(number + 1, std::memory_order_release);
      }
      if (k >= 1 && k - 1 < pieces) {
        const std::size_t length = length_of(k - 1), from = begin_of(rank_, length);
        if (number >= 3) wait_for_all(&Place::read, number - 2);
        wait_for_all(&Place::filled, number);
        sum(result(rank_, number - 1) + from,
            begin_of(rank_ + 1, length) - from,
            false,
            [&](std::size_t rank) { return chunk(rank, number - 1) + from; });
        mine().reduced.store(number, std::memory_order_release);
      }
      if (k < 2) continue;
      const std::size_t length = length_of(k - 2);
      float* const to = out + (k - 2) * kElements;
      for (std::size_t i = 0; i < ranks_; ++i) {
        const std::size_t rank = (rank_ + i) % ranks_, from = begin_of(rank, length);
        wait_for(places_[rank].reduced, number - 1);
        copy(to + from,
             result(rank, number - 2) + from,
             (begin_of(rank + 1, length) - from) * sizeof(float),
             way.out_streams);
      }
      mine().read.store(number - 1, std::memory_order_release);
    }
    pieces_ += pieces;
  }

  // --- One copy ----------------------------------------------------------------------------------

  bool try_pull(std::size_t rank, float* to, const float* from, std::size_t count) const {
    auto* at = reinterpret_cast<std::byte*>(to);
    const auto* source = reinterpret_cast<const std::byte*>(from);
    for (std::size_t left = count * sizeof(float); left > 0;) {
      const iovec here{at, left}, there{const_cast<std::byte*>(source), left};
      const auto pid = static_cast<pid_t>(places_[rank].pid.load());
      const ssize_t n = ::process_vm_readv(pid, &here, 1, &there, 1, 0);
      if (n <= 0) return false;
      at += n, source += n, left -= static_cast<std::size_t>(n);
    }
    return true;
  }
  void pull(std::size_t rank, float* to, const float* from, std::size_t count) const {
    if (!try_pull(rank, to, from, count)) throw std::runtime_error("process_vm_readv failed");
  }

  void by_one_copy(const Case& subject, const float* in, float* out) {
    const std::size_t one = subject.elements;
    barrier();
    switch (subject.collective) {
      case Collective::kBroadcast:
        if (job_rank_.rank != kRoot) pull(kRoot, out, places_[kRoot].out, one);
        break;
      case Collective::kAllGather:
        copy(out + rank_ * one, in, one * sizeof(float), false);
        for_others([&](std::size_t rank) { pull(rank, out + rank * one, places_[rank].in, one); });
        break;
      case Collective::kAllToAll:
        copy(out + rank_ * one, in + rank_ * one, one * sizeof(float), false);
        for_others([&](std::size_t rank) {
          pull(rank, out + rank * one, places_[rank].in + rank_ * one, one);
        });
        break;
      case Collective::kReduceScatter:
        sum_pulled(out, in, rank_ * one, one);
        break;
      default: {
        const std::size_t from = rank_ * one / ranks_;
        sum_pulled(out + from, in, from, (rank_ + 1) * one / ranks_ - from);
        barrier();
        for_others([&](std::size_t rank) {
          const std::size_t begin = rank * one / ranks_;
          pull(rank, out + begin, places_[rank].out + begin, (rank + 1) * one / ranks_ - begin);
        });
      }
    }
    barrier();
  }

  // Adds up `count` elements from `offset` on in all ranks' inputs, which it reads by
  // process_vm_readv.
  void sum_pulled(float* out, const float* in, std::size_t offset, std::size_t count) {
    scratch_.resize(kElements);
    for (std::size_t at = 0; at < count; at += kElements) {
      const std::size_t length = std::min(kElements, count - at);
      copy(out + at, in + offset + at, length * sizeof(float), false);
      for_others([&](std::size_t rank) {
        pull(rank, scratch_.data(), places_[rank].in + offset + at, length);
        accumulate(out + at, scratch_.data(), length);
      });
    }
  }

  JobRank job_rank_;
  std::size_t ranks_, rank_;
  std::string name_;
  Place* places_ = nullptr;
  std::unique_ptr<Shared> memory_;
  std::uint64_t met_ = 0;
  std::uint64_t pieces_ = 0;  // of all calls so far
  int arrays_ = 0;
  std::vector<float> scratch_;
};

}  // namespace
}  // namespace hocket::cli::bench

int main() {
  hocket::cli::bench::Bare bare;
  return hocket::cli::bench::serve(bare);
}
