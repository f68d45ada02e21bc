// Shared memory between processes, and plain loops over it, for the bare program (peer_bare.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace hocket::cli::bench {

// A resource: memory that all ranks map, zeroed at first. It gets a name that only this benchmark
// uses. `meet` waits until all ranks have mapped it, and after that the name is removed. Throws
// std::system_error or std::bad_alloc.
class Shared {
 public:
  Shared(const std::string& name, std::size_t bytes, const std::function<void(std::byte*)>& meet);
  ~Shared();
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  std::byte* data() const noexcept { return static_cast<std::byte*>(data_); }

 private:
  std::size_t bytes_;
  void* data_ = nullptr;
};

// Copies bytes. With `streams` it stores past the caches (non-temporal stores).
void copy(void* to, const void* from, std::size_t bytes, bool streams);

// Computes out = x + y. If `other` is not null, stores the sum there, too. With `streams` it stores
// past the caches.
void add(float* out, float* other, const float* x, const float* y, std::size_t count, bool streams);

void accumulate(float* out, const float* x, std::size_t count);

}  // namespace hocket::cli::bench
