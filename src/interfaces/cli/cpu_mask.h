// Processors (hardware threads) as a mask for the kernel.
#pragma once

#include <sched.h>

#include <array>
#include <optional>

namespace hocket::cli {

// A value. It has room for 8,192 processors, the most that Linux supports. A single cpu_set_t has
// 1,024, and on larger machines the kernel refuses such a mask.
class CpuMask {
 public:
  static constexpr int kMost = 8 * CPU_SETSIZE;

  void add(int processor) noexcept { CPU_SET_S(processor, sizeof bits_, bits_.data()); }
  bool contains(int processor) const noexcept {
    return CPU_ISSET_S(processor, sizeof bits_, bits_.data());
  }
  // Returns the affinity mask of this thread. Absent if the kernel does not tell it.
  static std::optional<CpuMask> allowed() noexcept {
    CpuMask mask;
    if (::sched_getaffinity(0, sizeof mask.bits_, mask.bits_.data()) != 0) return std::nullopt;
    return mask;
  }
  // Restricts this thread to these processors, unless the kernel refuses.
  void restrict_this_thread() const noexcept { ::sched_setaffinity(0, sizeof bits_, bits_.data()); }

 private:
  std::array<cpu_set_t, 8> bits_{};
};

}  // namespace hocket::cli
