#include "bench/bare_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace hocket::cli::bench {

Shared::Shared(const std::string& name,
               std::size_t bytes,
               const std::function<void(std::byte*)>& meet)
    : bytes_(bytes) {
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
  meet(data());
  ::shm_unlink(name.c_str());
}

Shared::~Shared() { ::munmap(data_, bytes_); }

void copy(void* to, const void* from, std::size_t bytes, bool streams) {
#if defined(__SSE2__)
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(to) % sizeof(__m128i) == 0;
  if (streams && is_aligned) {
    auto* out = static_cast<__m128i*>(to);
    const auto* in = static_cast<const __m128i*>(from);
    const std::size_t blocks = bytes / sizeof(__m128i);
    for (std::size_t i = 0; i < blocks; ++i) _mm_stream_si128(out + i, _mm_loadu_si128(in + i));
    std::memcpy(out + blocks, in + blocks, bytes % sizeof(__m128i));
    _mm_sfence();
    return;
  }
#endif
  static_cast<void>(streams);
  std::memcpy(to, from, bytes);
}

void add(
    float* out, float* other, const float* x, const float* y, std::size_t count, bool streams) {
  std::size_t i = 0;
#if defined(__SSE2__)
  const bool is_aligned =
      (reinterpret_cast<std::uintptr_t>(out) | reinterpret_cast<std::uintptr_t>(other)) %
          sizeof(__m128) ==
      0;
  if (streams && is_aligned) {
    for (; i + 4 <= count; i += 4) {
      const __m128 sum = _mm_add_ps(_mm_loadu_ps(x + i), _mm_loadu_ps(y + i));
      _mm_stream_ps(out + i, sum);
      if (other != nullptr) _mm_stream_ps(other + i, sum);
    }
    _mm_sfence();
  }
#endif
  static_cast<void>(streams);
  for (; i < count; ++i) {
    out[i] = x[i] + y[i];
    if (other != nullptr) other[i] = out[i];
  }
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
void accumulate(float* out, const float* x, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] += x[i];
}

}  // namespace hocket::cli::bench
