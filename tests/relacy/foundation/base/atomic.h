// In place of src/foundation/base/atomic.h: the same names over the simulator.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>

#include "simulator.h"

namespace hocket::base {

using relacy::Site;

// Has the size of std::atomic<T>, so that layouts are the library's. It holds only the initial
// value.
template <typename T>
class Atomic {
 public:
  constexpr Atomic() noexcept = default;
  constexpr Atomic(T initial) noexcept : initial_(initial) {}
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  T load(std::memory_order order = std::memory_order_seq_cst,
         Site site = std::source_location::current()) const noexcept {
    return from(relacy::load(this, to(initial_), order, site));
  }
  void store(T value,
             std::memory_order order = std::memory_order_seq_cst,
             Site site = std::source_location::current()) noexcept {
    relacy::store(this, to(initial_), to(value), order, site);
  }
  T exchange(T value,
             std::memory_order order = std::memory_order_seq_cst,
             Site site = std::source_location::current()) noexcept {
    return update(relacy::Update::kExchange, value, order, site);
  }
  T fetch_add(T value,
              std::memory_order order = std::memory_order_seq_cst,
              Site site = std::source_location::current()) noexcept {
    return update(relacy::Update::kAdd, value, order, site);
  }
  T fetch_sub(T value,
              std::memory_order order = std::memory_order_seq_cst,
              Site site = std::source_location::current()) noexcept {
    return update(relacy::Update::kAdd, static_cast<T>(-value), order, site);
  }
  T fetch_or(T value,
             std::memory_order order = std::memory_order_seq_cst,
             Site site = std::source_location::current()) noexcept {
    return update(relacy::Update::kOr, value, order, site);
  }
  T fetch_and(T value,
              std::memory_order order = std::memory_order_seq_cst,
              Site site = std::source_location::current()) noexcept {
    return update(relacy::Update::kAnd, value, order, site);
  }
  bool compare_exchange_weak(T& expected,
                             T desired,
                             std::memory_order order,
                             Site site = std::source_location::current()) noexcept {
    return compare_exchange_strong(expected, desired, order, site);
  }
  bool compare_exchange_weak(T& expected,
                             T desired,
                             std::memory_order order,
                             std::memory_order /*failure*/,
                             Site site = std::source_location::current()) noexcept {
    return compare_exchange_strong(expected, desired, order, site);
  }
  bool compare_exchange_strong(T& expected,
                               T desired,
                               std::memory_order order = std::memory_order_seq_cst,
                               Site site = std::source_location::current()) noexcept {
    std::uint64_t seen = to(expected);
    const bool done = relacy::compare_exchange(this, to(initial_), seen, to(desired), order, site);
    expected = from(seen);
    return done;
  }

  T initial() const noexcept { return initial_; }

 private:
  static constexpr std::uint64_t to(T value) noexcept { return static_cast<std::uint64_t>(value); }
  static constexpr T from(std::uint64_t value) noexcept { return static_cast<T>(value); }
  T update(relacy::Update how, T value, std::memory_order order, Site site) noexcept {
    return from(relacy::update(this, to(initial_), how, to(value), order, site));
  }

  T initial_{};
};

inline void thread_fence(std::memory_order order,
                         Site site = std::source_location::current()) noexcept {
  relacy::fence(order, site);
}

// The value lies in the object itself. The simulator checks that no two threads access it at once.
template <typename T>
class NonAtomic {
 public:
  constexpr NonAtomic() noexcept = default;
  constexpr NonAtomic(T value) noexcept : value_(value) {}
  NonAtomic& operator=(const T& value) noexcept {
    relacy::write_plain(this, std::source_location::current());
    value_ = value;
    return *this;
  }
  NonAtomic& operator=(const NonAtomic& other) noexcept { return *this = static_cast<T>(other); }
  operator T() const noexcept {
    relacy::read_plain(this, std::source_location::current());
    return value_;
  }

 private:
  T value_{};
};

// Keeps all values that it ever had. An atomic selects the one that a reader gets.
template <typename T>
class Torn {
 public:
  constexpr Torn() noexcept = default;
  constexpr Torn(T value) noexcept : initial_(value) {}
  template <typename U>
  Torn& operator=(const U& value) noexcept {
    auto& values = kept();
    T& made = values.emplace_back();
    made = value;
    relacy::store(
        this, 0, values.size(), std::memory_order_relaxed, std::source_location::current());
    return *this;
  }
  operator const T&() const noexcept {
    const std::uint64_t number =
        relacy::load(this, 0, std::memory_order_relaxed, std::source_location::current());
    return number == 0 ? initial_ : kept()[number - 1];
  }
  auto view() const noexcept { return static_cast<const T&>(*this).view(); }

 private:
  std::deque<T>& kept() const noexcept {
    struct Values {
      std::uint64_t execution = 0;
      std::deque<T> values;
    };
    static std::map<const void*, Values> all;
    Values& own = all[this];
    if (own.execution != relacy::execution()) own = {relacy::execution(), {}};
    return own.values;
  }
  T initial_{};
};

inline void copy_plain(void* to,
                       const void* from,
                       std::size_t bytes,
                       Site site = std::source_location::current()) noexcept {
  relacy::read_bytes(from, bytes, site);
  relacy::write_bytes(to, bytes, site);
  std::memcpy(to, from, bytes);
}

}  // namespace hocket::base
