#include "engines/ucx/device_fabrics.h"

#include <algorithm>

namespace hocket::engines::ucx {

int DeviceFabrics::number_for(const Device& device, std::span<const int> ranks, int least) {
  const std::lock_guard lock(mutex_);
  Newest& newest = newest_[device->ordinal()];
  const auto lost = [&](int rank) { return newest.fabric && newest.fabric->is_broken(rank); };
  if (newest.number < std::max(least, 0) || std::ranges::any_of(ranks, lost)) {
    last_ = std::max(least, last_ + 1);
    newest = {last_, nullptr};
  }
  return newest.number;
}

std::shared_ptr<Fabric> DeviceFabrics::get(const Device& device, int number) {
  const std::lock_guard lock(mutex_);
  const int ordinal = device->ordinal();
  std::erase_if(all_, [](const Known& one) { return one.fabric.expired(); });
  for (const Known& one : all_) {
    if (one.number != number || one.ordinal != ordinal) continue;
    if (auto fabric = one.fabric.lock()) return fabric;
  }
  auto fabric = make_(device);
  all_.push_back({number, ordinal, fabric});
  last_ = std::max(last_, number);
  if (Newest& newest = newest_[ordinal]; number >= newest.number) newest = {number, fabric};
  return fabric;
}

std::vector<std::shared_ptr<Fabric>> DeviceFabrics::living() noexcept {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Fabric>> all;
  for (const auto& one : all_) {
    if (auto fabric = one.fabric.lock()) all.push_back(std::move(fabric));
  }
  return all;
}

bool DeviceFabrics::flush(base::Deadline deadline) noexcept {
  bool done = true;
  for (const auto& fabric : living()) done = fabric->flush(deadline) && done;
  return done;
}

void DeviceFabrics::retire() noexcept {
  for (const auto& fabric : living()) fabric->retire();
}

}  // namespace hocket::engines::ucx
