#include "engines/ucx/device_fabrics.h"

#include <algorithm>

namespace hocket::engines::ucx {

int DeviceFabrics::number_for(const Device& device, std::span<const int> ranks) {
  const std::lock_guard lock(mutex_);
  if (!newest_) return number_;
  const bool lost =
      std::ranges::any_of(ranks, [this](int rank) { return newest_->is_broken(rank); });
  return lost || ordinal_ != device->ordinal() ? number_ + 1 : number_;
}

std::shared_ptr<Fabric> DeviceFabrics::get(const Device& device, int number) {
  const std::lock_guard lock(mutex_);
  if (newest_ && number == number_) return newest_;
  newest_ = make_(device);
  number_ = number;
  ordinal_ = device->ordinal();
  std::erase_if(all_, [](const auto& one) { return one.expired(); });
  all_.push_back(newest_);
  return newest_;
}

std::vector<std::shared_ptr<Fabric>> DeviceFabrics::living() noexcept {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Fabric>> all;
  for (const auto& one : all_) {
    if (auto fabric = one.lock()) all.push_back(std::move(fabric));
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
