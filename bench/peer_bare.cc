// What a program could do that knows its one task: all_reduce of float32 by sum, out of place,
// between two ranks of a host, without checks, failures or other kinds of call. `hocket bench
// --compare bare` measures it beside hocket, as the mark to come near to.
//
// Symmetric memory: each rank reduces its half straight from both arrays, and stores it to both
// results, past the caches. Ordinary memory: each rank copies its array through two chunks of 256
// KiB in shared memory, and adds what the other has there to its own; its copies go past the caches
// where that is quicker, which is tried when the arrays are made.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "cli/bench/peer.h"
#include "cli/bench/wire.h"

namespace hocket::cli::bench {
namespace {

constexpr std::size_t kChunk = std::size_t{256} << 10;
constexpr std::size_t kPageBytes = std::size_t{64} << 10;  // a multiple of any page

std::string needed(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) throw std::runtime_error(std::string(name) + " is not set");
  return value;
}

void wait_for(const std::atomic<std::uint64_t>& word, std::uint64_t least) {
  while (word.load(std::memory_order_acquire) < least) {
  }
}

// Stores into two places, past the caches; `b` may be null. Lines are whole.
void add_streaming(float* a, float* b, const float* x, const float* y, std::size_t count) {
#if defined(__SSE2__)
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const __m128 sum = _mm_add_ps(_mm_loadu_ps(x + i), _mm_loadu_ps(y + i));
    _mm_stream_ps(a + i, sum);
    if (b != nullptr) _mm_stream_ps(b + i, sum);
  }
  for (; i < count; ++i) {
    a[i] = x[i] + y[i];
    if (b != nullptr) b[i] = a[i];
  }
  _mm_sfence();
#else
  for (std::size_t i = 0; i < count; ++i) {
    a[i] = x[i] + y[i];
    if (b != nullptr) b[i] = a[i];
  }
#endif
}

void copy_streaming(void* to, const void* from, std::size_t bytes) {
#if defined(__SSE2__)
  auto* out = static_cast<__m128i*>(to);
  const auto* in = static_cast<const __m128i*>(from);
  const std::size_t blocks = bytes / sizeof(__m128i);
  for (std::size_t i = 0; i < blocks; ++i) _mm_stream_si128(out + i, _mm_loadu_si128(in + i));
  std::memcpy(out + blocks, in + blocks, bytes % sizeof(__m128i));
  _mm_sfence();
#else
  std::memcpy(to, from, bytes);
#endif
}

// A resource: memory that both ranks see, by a name of this benchmark alone that is gone once both
// have it.
class Shared {
 public:
  Shared(const std::string& name, std::size_t bytes, const auto& meet) : bytes_(bytes) {
    const int fd = ::shm_open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) throw std::system_error(errno, std::generic_category(), name);
    const bool sized = ::ftruncate(fd, static_cast<off_t>(bytes)) == 0;
    data_ = sized ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0)
                  : MAP_FAILED;
    ::close(fd);
    if (data_ == MAP_FAILED) {
      ::shm_unlink(name.c_str());
      throw std::bad_alloc();
    }
    meet(static_cast<std::byte*>(data_));
    ::shm_unlink(name.c_str());
  }
  ~Shared() { ::munmap(data_, bytes_); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  std::byte* data() const noexcept { return static_cast<std::byte*>(data_); }

 private:
  std::size_t bytes_;
  void* data_ = nullptr;
};

// What a rank tells the other: how far it has come, counted over all calls.
struct alignas(128) Words {
  std::atomic<std::uint64_t> met{0};
  alignas(128) std::atomic<std::uint64_t> filled{0};  // chunks
  alignas(128) std::atomic<std::uint64_t> read{0};    // of the other's chunks
};
struct Board {
  Words of[2];
  alignas(128) std::atomic<bool> streams{false};
  alignas(4096) std::byte chunks[2][2][kChunk];
};

// A resource: the board of two ranks. One thread. Fails with standard exceptions.
class Bare final : public Library {
 public:
  Bare()
      : seat_{std::stoi(needed("HOCKET_RANK")), std::stoi(needed("HOCKET_SIZE"))},
        name_("/hocket-bench-" + needed(kTokenVariable)) {
    if (seat_.ranks != 2) throw std::runtime_error("the bare program is for two ranks: -n 2");
    memory_ = std::make_unique<Shared>(name_, sizeof(Board), [this](std::byte* data) {
      board_ = reinterpret_cast<Board*>(data);  // zeros are a board at its beginning
      barrier();
    });
  }

  Seat seat() const override { return seat_; }
  std::string name() const override { return "bare"; }
  std::string version() const override { return "a bare program"; }
  void barrier() override {
    mine().met.store(++met_, std::memory_order_release);
    wait_for(other().met, met_);
  }

  std::optional<std::string> refusal(const Case& subject) const override {
    const bool known = subject.collective == Collective::kAllReduce &&
                       subject.dtype == DType::kFloat32 && subject.op == ReduceOp::kSum &&
                       !subject.in_place;
    if (!known) return "it knows all_reduce of float32 by sum, out of place, alone";
    return std::nullopt;
  }

  Bound bind(const Case& subject) override {
    return subject.memory == Memory::kSymmetric ? bind_symmetric(subject) : bind_plain(subject);
  }

 private:
  Words& mine() const { return board_->of[seat_.rank]; }
  Words& other() const { return board_->of[1 - seat_.rank]; }

  Bound bind_symmetric(const Case& subject) {
    const std::size_t count = subject.elements;
    const std::size_t bytes = (count * sizeof(float) + kPageBytes - 1) / kPageBytes * kPageBytes;
    const std::string name = name_ + "-" + std::to_string(++arrays_);
    // In order: rank 0's input and result, rank 1's.
    auto memory = std::make_shared<Shared>(name, 4 * bytes, [this](std::byte*) { barrier(); });
    const auto at = [&](int place) {
      return reinterpret_cast<float*>(memory->data() + static_cast<std::size_t>(place) * bytes);
    };
    float* const mine_in = at(2 * seat_.rank);
    float* const mine_out = at(2 * seat_.rank + 1);
    const float* const first = at(0);
    const float* const second = at(2);
    float* const other_out = at(2 * (1 - seat_.rank) + 1);
    const std::size_t half = count / 2 / 16 * 16;
    const std::size_t from = seat_.rank == 0 ? 0 : half;
    const std::size_t length = seat_.rank == 0 ? half : count - half;
    Bound bound;
    bound.arrays = {mine_in, mine_out};
    bound.owners.push_back(memory);
    bound.calls = [=, this](long n) {
      for (; n > 0; --n) {
        barrier();
        add_streaming(mine_out + from, other_out + from, first + from, second + from, length);
        barrier();
      }
    };
    return bound;
  }

  Bound bind_plain(const Case& subject) {
    Bound bound;
    bind_ordinary_arrays(bound, subject, seat_);
    const auto* in = static_cast<const float*>(bound.arrays.in);
    auto* out = static_cast<float*>(bound.arrays.out);
    const std::size_t count = subject.elements;
    const auto calls = [=, this](long n, bool streams) {
      for (; n > 0; --n) call(in, out, count, streams);
    };
    const bool streams = is_quicker_past_the_caches(calls);
    bound.calls = [=](long n) { calls(n, streams); };
    return bound;
  }

  bool is_quicker_past_the_caches(const auto& calls) {
    using Clock = std::chrono::steady_clock;
    Clock::duration took[2] = {Clock::duration::max(), Clock::duration::max()};
    for (int turn = 0; turn < 6; ++turn) {
      barrier();
      const auto begin = Clock::now();
      calls(1, turn % 2 == 1);
      took[turn % 2] = std::min(took[turn % 2], Clock::now() - begin);
    }
    if (seat_.rank == 0) board_->streams = took[1] < took[0];
    barrier();
    const bool streams = board_->streams;
    barrier();
    return streams;
  }

  void call(const float* in, float* out, std::size_t count, bool streams) {
    constexpr std::size_t kElements = kChunk / sizeof(float);
    const std::size_t chunks = (count + kElements - 1) / kElements;
    for (std::size_t k = 0; k <= chunks; ++k) {
      if (k < chunks) {
        const std::uint64_t number = chunks_ + k;
        if (number >= 2) wait_for(other().read, number - 1);
        const std::size_t length = std::min(kElements, count - k * kElements);
        void* const to = board_->chunks[seat_.rank][number % 2];
        const auto* const from = in + k * kElements;
        streams ? copy_streaming(to, from, length * sizeof(float))
                : static_cast<void>(std::memcpy(to, from, length * sizeof(float)));
        mine().filled.store(number + 1, std::memory_order_release);
      }
      if (k == 0) continue;
      const std::uint64_t number = chunks_ + k - 1;
      wait_for(other().filled, number + 1);
      const std::size_t first = (k - 1) * kElements;
      const auto* const theirs =
          reinterpret_cast<const float*>(board_->chunks[1 - seat_.rank][number % 2]);
      const float* const one = seat_.rank == 0 ? in + first : theirs;
      const float* const two = seat_.rank == 0 ? theirs : in + first;
      add_streaming(out + first, nullptr, one, two, std::min(kElements, count - first));
      mine().read.store(number + 1, std::memory_order_release);
    }
    chunks_ += chunks;
  }

  Seat seat_;
  std::string name_;
  Board* board_ = nullptr;
  std::unique_ptr<Shared> memory_;
  std::uint64_t met_ = 0;
  std::uint64_t chunks_ = 0;  // of all calls so far
  int arrays_ = 0;
};

}  // namespace
}  // namespace hocket::cli::bench

int main() {
  hocket::cli::bench::Bare bare;
  return hocket::cli::bench::serve(bare);
}
