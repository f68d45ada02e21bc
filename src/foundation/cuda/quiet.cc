#include "foundation/cuda/quiet.h"

#include <array>
#include <chrono>

namespace hocket::cuda {
namespace {

constexpr std::chrono::seconds kPatience{3};

// A GPU's. Rounds share it. glibc lets who shares pass those who wait to have it alone, as rounds
// need whose ranks wait for each other, and hands it to them when the last round is over.
std::shared_timed_mutex& gate(const DeviceContext& device) {
  static std::array<std::shared_timed_mutex, 64> gates;
  return gates[static_cast<std::size_t>(device.ordinal()) % gates.size()];
}

thread_local bool inside = false;  // a round, or what wants quiet

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
