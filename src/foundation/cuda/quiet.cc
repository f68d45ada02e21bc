#include "foundation/cuda/quiet.h"

#include <array>
#include <chrono>

namespace hocket::cuda {
namespace {

constexpr std::chrono::seconds kPatience{3};

// The lock of a GPU. Rounds share it. glibc prefers new shared owners to a waiting exclusive one.
// Rounds need that, because their ranks wait for each other. The exclusive waiter gets the lock
// when the last round ends.
std::shared_timed_mutex& gate(const DeviceContext& device) {
  static std::array<std::shared_timed_mutex, 64> gates;
  return gates[static_cast<std::size_t>(device.ordinal()) % gates.size()];
}

thread_local bool inside = false;  // this thread is in a round or in a Quiet

}  // namespace

Round::Round(const DeviceContext& device) : held_(inside ? nullptr : &gate(device)) {
  if (held_ == nullptr) return;
  inside = held_->try_lock_shared_for(kPatience);
  if (!inside) held_ = nullptr;
}

Round::~Round() {
  if (held_ == nullptr) return;
  inside = false;
  held_->unlock_shared();
}

Quiet::Quiet(const DeviceContext& device) : held_(inside ? nullptr : &gate(device)) {
  if (held_ == nullptr) return;
  inside = held_->try_lock_for(kPatience);
  if (!inside) held_ = nullptr;
}

Quiet::~Quiet() {
  if (held_ == nullptr) return;
  inside = false;
  held_->unlock();
}

}  // namespace hocket::cuda
