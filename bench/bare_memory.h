// Memory that processes share, and plain loops over it, as the bare program has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace hocket::cli::bench {

// A resource: memory that all ranks see, by a name of this benchmark alone that is gone once `meet`
// has returned, when all have it. Zeros at first. Throws std::system_error or std::bad_alloc.
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

// Copies bytes; past the caches if `streams`.
void copy(void* to, const void* from, std::size_t bytes, bool streams);

// out = x + y, also into `other` if that is not null; past the caches if `streams`.
void add(float* out, float* other, const float* x, const float* y, std::size_t count, bool streams);

// out += x.
void accumulate(float* out, const float* x, std::size_t count);

}  // namespace hocket::cli::bench
