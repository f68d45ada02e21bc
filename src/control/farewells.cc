#include "control/farewells.h"

#include <cstring>

namespace hocket::control {

void Farewells::keep(int place, std::span<const std::byte> frame) noexcept {
  if (frame.size() > Farewell::kBytes) return;
  const std::uint64_t number = said_.fetch_add(1, std::memory_order_relaxed) + 1;
  Farewell& word = ring_[number % ring_.size()];
  word.number.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  word.place = place;
  word.bytes = static_cast<std::uint32_t>(frame.size());
  std::memcpy(word.frame, frame.data(), frame.size());
  word.number.store(number, std::memory_order_release);  // pairs with of
}

std::vector<Bytes> Farewells::of(int place) const {
  std::vector<Bytes> frames;
  for (const Farewell& word : ring_) {
    const std::uint64_t number = word.number.load(std::memory_order_acquire);
    if (number == 0 || (place >= 0 && word.place != place) || word.bytes > Farewell::kBytes) {
      continue;
    }
    Bytes frame(word.frame, word.frame + word.bytes);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (word.number.load(std::memory_order_relaxed) == number) frames.push_back(std::move(frame));
  }
  return frames;
}

}  // namespace hocket::control
