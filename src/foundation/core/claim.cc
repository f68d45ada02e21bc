#include "foundation/core/claim.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "foundation/core/claim.cc"
// clang-format off
#include "hwy/foreach_target.h"  // must come first
#include "foundation/core/elements-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace hocket::core::HWY_NAMESPACE {

#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86

using Line = hn::FixedTag<std::uint8_t, 64>;
constexpr std::size_t kLine = 64;
// The distance of claims ahead of the loads, in bytes.
constexpr std::size_t kAhead = 512;

bool is_claiming() { return __builtin_cpu_is("amd") != 0; }

// Returns the empty mask of a claim. It is not a constant, because the compiler would then remove
// the store.
HWY_INLINE hn::MFromD<Line> no_lanes() {
  const volatile std::size_t none = 0;
  return hn::FirstN(Line(), none);
}

HWY_INLINE void claim_line(const std::byte* at, hn::MFromD<Line> no_lanes) {
  auto* lanes = const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(at));
  hn::BlendedStore(hn::Zero(Line()), no_lanes, Line(), lanes);
}

void claim_lines(const std::byte* at, std::size_t bytes) {
  const auto none = no_lanes();
  for (std::size_t i = 0; i < bytes; i += kLine) claim_line(at + i, none);
}

// Copies, and claims the lines of `from` ahead of the loads. It stores whole lines of `to`; memcpy
// copies the incomplete lines at both ends.
void copy_claiming(std::byte* to, const std::byte* from, std::size_t bytes) {
  claim_lines(from, HWY_MIN(bytes, kAhead));
  const auto none = no_lanes();
  std::size_t i = HWY_MIN(bytes, -reinterpret_cast<std::uintptr_t>(to) % kLine);
  std::memcpy(to, from, i);
  for (; i + kLine <= bytes; i += kLine) {
    if (i + kAhead < bytes) claim_line(from + i + kAhead, none);
    store_lanes<Stores::kCached>(Line(), load_lanes(Line(), from + i), to + i);
  }
  std::memcpy(to + i, from + i, bytes - i);
}

#else

bool is_claiming() { return false; }
void claim_lines(const std::byte*, std::size_t) {}
void copy_claiming(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

#endif

}  // namespace hocket::core::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hocket::core {

HWY_EXPORT(is_claiming);
HWY_EXPORT(claim_lines);
HWY_EXPORT(copy_claiming);

bool can_claim() noexcept {
  static const bool can = HWY_DYNAMIC_DISPATCH(is_claiming)();
  return can;
}

void claim(const void* at, std::size_t bytes) noexcept {
  HWY_DYNAMIC_DISPATCH(claim_lines)(static_cast<const std::byte*>(at), bytes);
}

void copy_claimed(void* out, const void* in, std::size_t bytes) noexcept {
  if (bytes == 0) return;  // the pointers may be null
  HWY_DYNAMIC_DISPATCH(copy_claiming)
  (static_cast<std::byte*>(out), static_cast<const std::byte*>(in), bytes);
}

}  // namespace hocket::core
#endif
