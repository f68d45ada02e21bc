// Views of arrays: the address of the elements, their number, and their type.
//
// Views are values: they are cheap to copy and own nothing. The array must outlive its views. Any
// contiguous range of a known element type converts to a view:
//
//     std::vector<float> x(1024);
//     comm.all_reduce(x);                       // the whole
//     comm.all_reduce(std::span(x).first(10));  // a part
//     comm.all_reduce(hocket::cuda_array(device_pointer, 1024));  // in a GPU's memory
//
// Only a blocking call can read from a temporary that owns its elements. A result would be lost
// with the temporary, and an asynchronous call would use memory that is gone. Types that cannot be
// arrays have deleted constructors. The compiler shows the comment beside such a constructor.
#pragma once

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
                "float, double, std::complex<float> and std::complex<double>. Messages between two "
                "ranks take other plain data, too. For other calls pass "
                "std::as_writable_bytes(std::span(x)), or std::as_bytes where it is const.");
}
// `R` is the type that a forwarding reference deduces.
template <typename R>
constexpr void require_lasting() {
  static_assert(std::ranges::borrowed_range<R>,
                "hocket: this array is a temporary. Its elements are gone when the statement ends, "
                "but the call writes a result there, or still reads them later. Give it a name: "
                "std::vector<float> x = ...; and pass x. If its type is only a view, pass "
                "std::span(view), or specialize std::ranges::enable_borrowed_range for it.");
}
// A contiguous range that is not itself a view of this header.
template <typename R>
concept ContiguousRange = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
                          !requires { typename std::remove_cvref_t<R>::IsArrayView; };
template <typename R>
concept ConstRange = ContiguousRange<R> &&
                     std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;
template <typename R>
concept MutableRange = ContiguousRange<R> && !ConstRange<R>;
template <typename A, typename View, typename Not>
concept ConvertsTo = !ContiguousRange<A> && !std::same_as<std::remove_cvref_t<A>, Not> &&
                     std::convertible_to<A, View>;

// The types below are often passed by mistake: they are not arrays.
template <typename R>
concept ScatteredRange = std::ranges::input_range<R> && !std::ranges::contiguous_range<R>;
template <typename P>
concept Pointer = std::is_pointer_v<P> || std::is_null_pointer_v<P>;
template <typename N>
concept Number = std::floating_point<N> || std::same_as<N, std::complex<float>> ||
                 std::same_as<N, std::complex<double>>;
}  // namespace detail

// The default number of a GPU: the driver is asked which GPU the address belongs to.
inline constexpr int kAnyDevice = -1;

// A view of an array that is read from. A value.
class ConstArrayView {
 public:
  using IsArrayView = void;

  // Makes an absent array. A rank passes it where it has no array, such as the output of a rank
  // that is not the root.
  constexpr ConstArrayView() noexcept = default;
  // @param data Address of the first element.
  // @param count Number of elements.
  // @param dtype Type of the elements.
  // @param memory Memory that the address belongs to.
  // @param device Number of the GPU in this process, for memory on a GPU.
  constexpr ConstArrayView(const void* data,
                           std::size_t count,
                           DType dtype,
                           MemoryKind memory = MemoryKind::kHost,
                           int device = kAnyDevice) noexcept
      : data_(data), count_(count), device_(device), dtype_(dtype), memory_(memory) {}

  // Views a contiguous range of a known element type, such as a std::vector or a std::span.
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

  // Returns the address of the first element. Null for an absent array.
  constexpr const void* data() const noexcept { return data_; }
  constexpr std::size_t count() const noexcept { return count_; }  // elements
  // Returns the size in bytes.
  constexpr std::size_t bytes() const noexcept { return count_ * size_of(dtype_); }
  constexpr DType dtype() const noexcept { return dtype_; }
  constexpr MemoryKind memory() const noexcept { return memory_; }
  // Returns the GPU's number in this process, or kAnyDevice.
  constexpr int device() const noexcept { return device_; }

  // Returns the order in which the elements of an array with several axes lie. Collectives that
  // combine or copy whole arrays refuse arrays that differ in it. `slice` returns a view without an
  // order.
  constexpr MemoryOrder order() const noexcept { return order_; }
  // Returns a copy of this view with another order.
  [[nodiscard("a view is a value: this one stays as it is")]] constexpr ConstArrayView in_order(
      MemoryOrder order) const noexcept {
    ConstArrayView view = *this;
    view.order_ = order;
    return view;
  }

  // Returns a view of the elements [first, first + count). The range is not checked.
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
  // Leaves no padding at the end. A class that is derived from this one could use the padding, so
  // compilers would copy this part of it in two pieces that overlap, which delays its next reader.
  [[maybe_unused]] std::uint8_t filled_ = 0;
};

// A view of an array that is written to. A call that works in place also reads from it. A value.
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

  // Views a contiguous range of a known element type that is not const.
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

  // Returns a view of the elements [first, first + count). The range is not checked.
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
  // See ConstArrayView::filled_.
  [[maybe_unused]] std::uint8_t filled_ = 0;
};

// A view of an array that is read from and that outlives the statement, as asynchronous calls need.
// A temporary that owns its elements does not compile.
class BorrowedView : public ConstArrayView {
 public:
  using ConstArrayView::ConstArrayView;
  constexpr BorrowedView() noexcept = default;

  template <detail::ContiguousRange R>
  constexpr BorrowedView(R&& range) noexcept  // NOLINT: implicit on purpose
      : ConstArrayView(std::as_const(range)) {
    detail::require_lasting<R>();
  }
  // Takes other views, and types that convert to a view.
  template <detail::ConvertsTo<ConstArrayView, BorrowedView> A>
  constexpr BorrowedView(A&& array) noexcept  // NOLINT: implicit on purpose
      : ConstArrayView(static_cast<ConstArrayView>(std::forward<A>(array))) {}
};

namespace detail {
// An ArrayView that is always made from an array. Unlike ArrayView it has no default constructor,
// so `{}` does not convert to it.
class TypedArrayView : public ArrayView {
 public:
  template <std::convertible_to<ArrayView> A>
  constexpr TypedArrayView(A&& array) noexcept  // NOLINT: implicit on purpose
      : ArrayView(static_cast<ArrayView>(std::forward<A>(array))) {}
};
// The two kinds of argument of a call that takes one array: writable, and read-only.
template <typename A>
concept WritableArray =
    std::convertible_to<A, ArrayView> && (!ContiguousRange<A> || std::ranges::borrowed_range<A>);
template <typename A>
concept ReadOnlyArray = std::convertible_to<A, BorrowedView> && !std::convertible_to<A, ArrayView>;
// Plain data that is no array of a known element type. Messages move it as bytes.
template <typename R>
concept PlainRange =
    ContiguousRange<R> && std::is_trivially_copyable_v<std::ranges::range_value_t<R>> &&
    !Element<std::ranges::range_value_t<R>> && !Pointer<std::ranges::range_value_t<R>>;
template <PlainRange R>
ConstArrayView as_bytes(const R& range) noexcept {
  return std::as_bytes(std::span(std::ranges::data(range), std::ranges::size(range)));
}
template <PlainRange R>
BorrowedView as_lasting_bytes(const std::remove_reference_t<R>& range) noexcept {
  require_lasting<R>();
  return std::as_bytes(std::span(std::ranges::data(range), std::ranges::size(range)));
}
template <PlainRange R>
ArrayView as_writable_bytes(std::remove_reference_t<R>& range) noexcept {
  require_lasting<R>();
  if constexpr (!ConstRange<R>) {
    return std::as_writable_bytes(std::span(std::ranges::data(range), std::ranges::size(range)));
  } else {
    static_assert(MutableRange<R>, "hocket: the elements are const, and the call writes to them");
    return {};
  }
}
// `{}` converts to this type better than to a class. So an overload that takes this type gets every
// `{}`, and reads it as the default options. Otherwise `{}` could also mean an absent array.
enum class Defaults : bool {};
}  // namespace detail

// Views one number as an array of one element: `comm.all_reduce(hocket::scalar(loss))`. The number
// must outlive the view.
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

// Views an array in a GPU's memory.
// @param data Address of the first element in the GPU's memory.
// @param count Number of elements.
// @param device Number of the GPU in this process. By default the driver is asked.
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
