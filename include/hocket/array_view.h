// Views of arrays: where the elements are, how many, of which type.
//
// Views are values: cheap to copy, they own nothing, and the array must outlive them. Any
// contiguous range of a known element type converts by itself:
//
//     std::vector<float> x(1024);
//     comm.all_reduce(x);                       // the whole
//     comm.all_reduce(std::span(x).first(10));  // a part
//     comm.all_reduce(hocket::cuda_array(device_pointer, 1024));  // in a GPU's memory
//
// A temporary that owns its elements can be read by a call that blocks, and by no other: a result
// would be lost with it, and a call that goes on would use memory that is gone. What cannot be an
// array is a deleted constructor, whose comment the compiler shows.
#pragma once

#include <complex>
#include <concepts>
#include <cstddef>
#include <memory>
#include <span>  // has the concepts of ranges, but not the views of <ranges>
#include <type_traits>
#include <utility>
#include <vector>

#include "hocket/types.h"

namespace hocket {

namespace detail {
template <typename T>
constexpr void require_element() {
  static_assert(Element<std::remove_cv_t<T>>,
                "hocket: this element type can be neither moved nor reduced. It takes bool, the "
                "integers of 8 to 64 bits, hocket::float16, bfloat16, float8_e4m3 and float8_e5m2, "
                "float, double, std::complex<float> and std::complex<double>. For other plain data "
                "pass std::as_writable_bytes(std::span(x)), or std::as_bytes where it is const.");
}
// `R` as a forwarding reference deduces it.
template <typename R>
constexpr void require_lasting() {
  static_assert(std::ranges::borrowed_range<R>,
                "hocket: this array is a temporary. Its elements are gone when the statement ends, "
                "but the call writes a result there, or still reads them later. Give it a name: "
                "std::vector<float> x = ...; and pass x. If its type is only a view, pass "
                "std::span(view), or specialize std::ranges::enable_borrowed_range for it.");
}
// Contiguous ranges, views themselves excluded.
template <typename R>
concept ContiguousRange =
    std::ranges::contiguous_range<R> && std::ranges::sized_range<R> && !requires {
  typename std::remove_cvref_t<R>::IsArrayView;
};
template <typename R>
concept ConstRange = ContiguousRange<R> &&
    std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;
template <typename R>
concept MutableRange = ContiguousRange<R> && !ConstRange<R>;
template <typename A, typename View, typename Not>
concept ConvertsTo = !ContiguousRange<A> && !std::same_as<std::remove_cvref_t<A>, Not> &&
    std::convertible_to<A, View>;

// Types that people pass, and that are no arrays.
template <typename R>
concept ScatteredRange = std::ranges::input_range<R> && !std::ranges::contiguous_range<R>;
template <typename P>
concept Pointer = std::is_pointer_v<P> || std::is_null_pointer_v<P>;
template <typename N>
concept Number = std::floating_point<N> || std::same_as<N, std::complex<float>> ||
    std::same_as<N, std::complex<double>>;
}  // namespace detail

// A GPU's number where the driver is to be asked.
inline constexpr int kAnyDevice = -1;

// An array to read from.
class ConstArrayView {
 public:
  using IsArrayView = void;

  // An absent array: what a rank passes where it has none (a non-root's output).
  constexpr ConstArrayView() noexcept = default;
  constexpr ConstArrayView(const void* data,
                           std::size_t count,
                           DType dtype,
                           MemoryKind memory = MemoryKind::kHost,
                           int device = kAnyDevice) noexcept
      : data_(data), count_(count), device_(device), dtype_(dtype), memory_(memory) {}

  template <detail::ContiguousRange R>
  constexpr ConstArrayView(const R& range) noexcept  // NOLINT: implicit on purpose
      : data_(std::ranges::data(range)), count_(std::ranges::size(range)) {
    using T = std::remove_cv_t<std::ranges::range_value_t<R>>;
    detail::require_element<T>();
    if constexpr (Element<T>) dtype_ = dtype_of<T>;
  }

  template <detail::ScatteredRange R>
  ConstArrayView(const R&) = delete;  // hocket: not contiguous: copy it into a std::vector
  template <typename A>
  ConstArrayView(const std::vector<bool, A>&) = delete;  // hocket: packed bits: use uint8_t
  template <detail::Pointer P>
  ConstArrayView(const P&) = delete;  // hocket: a pointer has no size: pass std::span(p, count)
  template <detail::Number N>
  ConstArrayView(const N&) = delete;  // hocket: for one number pass hocket::scalar(x)
  template <Element T, std::same_as<T>... More>
  ConstArrayView(T, T, More...) = delete;  // hocket: a list is no array: std::vector x{...} is one

  constexpr const void* data() const noexcept { return data_; }
  constexpr std::size_t count() const noexcept { return count_; }  // elements
  constexpr std::size_t bytes() const noexcept { return count_ * size_of(dtype_); }
  constexpr DType dtype() const noexcept { return dtype_; }
  constexpr MemoryKind memory() const noexcept { return memory_; }
  constexpr int device() const noexcept { return device_; }

  // Of an array that has several axes. Collectives that combine arrays or copy them whole refuse
  // those that differ in it; who cuts an array has none.
  constexpr MemoryOrder order() const noexcept { return order_; }
  [[nodiscard("a view is a value: this one stays as it is")]] constexpr ConstArrayView in_order(
      MemoryOrder order) const noexcept {
    ConstArrayView view = *this;
    view.order_ = order;
    return view;
  }

  // Elements [first, first + count).
  constexpr ConstArrayView slice(std::size_t first, std::size_t count) const noexcept {
    return {static_cast<const std::byte*>(data_) + first * size_of(dtype_),
            count,
            dtype_,
            memory_,
            device_};
  }

 private:
  const void* data_ = nullptr;
  std::size_t count_ = 0;
  int device_ = kAnyDevice;
  DType dtype_ = DType::kUInt8;
  MemoryKind memory_ = MemoryKind::kHost;
  MemoryOrder order_ = MemoryOrder::kAny;
};

// An array to write to, and to read from where a call works in place.
class ArrayView {
 public:
  using IsArrayView = void;

  constexpr ArrayView() noexcept = default;
  constexpr ArrayView(void* data,
                      std::size_t count,
                      DType dtype,
                      MemoryKind memory = MemoryKind::kHost,
                      int device = kAnyDevice) noexcept
      : data_(data), count_(count), device_(device), dtype_(dtype), memory_(memory) {}

  template <detail::MutableRange R>
  constexpr ArrayView(R&& range) noexcept  // NOLINT: implicit on purpose
      : data_(std::ranges::data(range)), count_(std::ranges::size(range)) {
    using T = std::remove_cv_t<std::ranges::range_value_t<R>>;
    detail::require_element<T>();
    detail::require_lasting<R>();
    if constexpr (Element<T>) dtype_ = dtype_of<T>;
  }

  template <detail::ConstRange R>
  ArrayView(R&&) = delete;  // hocket: the elements are const, and the call writes to them
  template <detail::ScatteredRange R>
  ArrayView(const R&) = delete;  // hocket: not contiguous: copy it into a std::vector
  template <typename A>
  ArrayView(const std::vector<bool, A>&) = delete;  // hocket: packed bits: use uint8_t
  template <detail::Pointer P>
  ArrayView(const P&) = delete;  // hocket: a pointer has no size: pass std::span(p, count)
  template <detail::Number N>
  ArrayView(const N&) = delete;  // hocket: for one number pass hocket::scalar(x)
  template <Element T, std::same_as<T>... More>
  ArrayView(T, T, More...) = delete;  // hocket: a list is no array: std::vector x{...} is one

  constexpr operator ConstArrayView() const noexcept {
    return ConstArrayView(data_, count_, dtype_, memory_, device_).in_order(order_);
  }

  constexpr void* data() const noexcept { return data_; }
  constexpr std::size_t count() const noexcept { return count_; }
  constexpr std::size_t bytes() const noexcept { return count_ * size_of(dtype_); }
  constexpr DType dtype() const noexcept { return dtype_; }
  constexpr MemoryKind memory() const noexcept { return memory_; }
  constexpr int device() const noexcept { return device_; }

  constexpr MemoryOrder order() const noexcept { return order_; }
  [[nodiscard("a view is a value: this one stays as it is")]] constexpr ArrayView in_order(
      MemoryOrder order) const noexcept {
    ArrayView view = *this;
    view.order_ = order;
    return view;
  }

  constexpr ArrayView slice(std::size_t first, std::size_t count) const noexcept {
    return {
        static_cast<std::byte*>(data_) + first * size_of(dtype_), count, dtype_, memory_, device_};
  }

 private:
  void* data_ = nullptr;
  std::size_t count_ = 0;
  int device_ = kAnyDevice;
  DType dtype_ = DType::kUInt8;
  MemoryKind memory_ = MemoryKind::kHost;
  MemoryOrder order_ = MemoryOrder::kAny;
};

// An array to read from that is still there when the statement has ended, as calls need that go on.
// Temporaries that own their elements do not compile.
class BorrowedView : public ConstArrayView {
 public:
  using ConstArrayView::ConstArrayView;
  constexpr BorrowedView() noexcept = default;

  template <detail::ContiguousRange R>
  constexpr BorrowedView(R&& range) noexcept  // NOLINT: implicit on purpose
      : ConstArrayView(std::as_const(range)) {
    detail::require_lasting<R>();
  }
  // Other views, and what converts to one.
  template <detail::ConvertsTo<ConstArrayView, BorrowedView> A>
  constexpr BorrowedView(A&& array) noexcept  // NOLINT: implicit on purpose
      : ConstArrayView(static_cast<ConstArrayView>(std::forward<A>(array))) {}
};

namespace detail {
// An ArrayView of what has a type, which `{}` has not.
class TypedArrayView : public ArrayView {
 public:
  template <std::convertible_to<ArrayView> A>
  constexpr TypedArrayView(A&& array) noexcept  // NOLINT: implicit on purpose
      : ArrayView(static_cast<ArrayView>(std::forward<A>(array))) {}
};
// The array of a call that has one: it can be written to, or not.
template <typename A>
concept WritableArray = std::convertible_to<A, ArrayView> &&
    (!ContiguousRange<A> || std::ranges::borrowed_range<A>);
template <typename A>
concept ReadOnlyArray = std::convertible_to<A, BorrowedView> && !std::convertible_to<A, ArrayView>;
// `{}` converts to it better than to a class: where it could be options or an absent array, it is
// options.
enum class Defaults : bool {};
}  // namespace detail

// One number as an array of one element: `comm.all_reduce(hocket::scalar(loss))`.
template <Element T>
constexpr ArrayView scalar(T& value) noexcept {
  return {std::addressof(value), 1, dtype_of<T>};
}
template <Element T>
constexpr ConstArrayView scalar(const T& value) noexcept {
  return {std::addressof(value), 1, dtype_of<T>};
}
template <Element T>
void scalar(const T&&) = delete;  // hocket: this number is a temporary: give it a name

// An array in a GPU's memory, by the address there. `device` is its number in this process; where
// it is not given, the driver is asked.
template <Element T>
constexpr ArrayView cuda_array(T* data, std::size_t count, int device = kAnyDevice) noexcept {
  return {data, count, dtype_of<T>, MemoryKind::kCuda, device};
}
template <Element T>
constexpr ConstArrayView cuda_array(const T* data,
                                    std::size_t count,
                                    int device = kAnyDevice) noexcept {
  return {data, count, dtype_of<T>, MemoryKind::kCuda, device};
}

}  // namespace hocket
