#include "foundation/cuda/launch_gate.h"

#include <array>
#include <chrono>

namespace hocket::cuda {
namespace {

constexpr std::chrono::seconds kPatience{3};

// Returns the lock of a GPU. Rounds share it; a pause owns it exclusively. glibc lets new shared
// owners in before a waiting exclusive owner. Rounds need that, because the ranks of a call wait
// for each other. A pause begins when the last round has ended.
std::shared_timed_mutex& gate(const DeviceContext& device) {
  static std::array<std::shared_timed_mutex, 64> gates;
  return gates[static_cast<std::size_t>(device.ordinal()) % gates.size()];
}

thread_local bool inside = false;  // this thread is in a round or in a LaunchPause

}  // namespace

LaunchRound::LaunchRound(const DeviceContext& device) : held_(inside ? nullptr : &gate(device)) {
  if (held_ == nullptr) return;
  inside = held_->try_lock_shared_for(kPatience);
  if (!inside) held_ = nullptr;
}

LaunchRound::~LaunchRound() {
  if (held_ == nullptr) return;
  inside = false;
  held_->unlock_shared();
}

LaunchPause::LaunchPause(const DeviceContext& device) : held_(inside ? nullptr : &gate(device)) {
  if (held_ == nullptr) return;
  inside = held_->try_lock_for(kPatience);
  if (!inside) held_ = nullptr;
}

LaunchPause::~LaunchPause() {
  if (held_ == nullptr) return;
  inside = false;
  held_->unlock();
}

}  // namespace hocket::cuda
