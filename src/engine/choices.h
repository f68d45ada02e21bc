// What was chosen for calls: programs repeat a few of them, and choosing takes longer than looking.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/hash.h"
#include "engine/call.h"

namespace hocket::engine {

// A value: what was chosen for the last signatures, a few of them. One thread at a time.
template <typename Choice>
class ChoiceMemo {
 public:
  // `choose(signature)`, or what it has said of that signature before.
  template <typename Choose>
  const Choice& of(const Signature& signature, Choose choose) {
    Entry& entry = entries_[place_of(signature)];
    if (entry.signature.kind != signature.kind || entry.signature != signature) {
      entry.choice = choose(signature);
      entry.signature = signature;
    }
    return entry.choice;
  }

 private:
  static constexpr std::size_t kEntries = 8;  // a power of two
  struct Entry {
    Signature signature;  // none has kNone
    Choice choice{};
  };
  static std::size_t place_of(const Signature& s) noexcept {
    return base::mix(base::mix(base::kHashSeed, s.count), static_cast<std::uint64_t>(s.kind)) %
           kEntries;
  }
  std::array<Entry, kEntries> entries_{};
};

}  // namespace hocket::engine
