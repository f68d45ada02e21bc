// Reductions by an operator of the program's own, of arrays in the host's memory.
//
// The ranks are taken in ascending order, whatever carries the call: ((x0 op x1) op x2) ... op
// x(n-1), which every element of a result is made by on one rank. So the operator may be neither
// commutative nor associative, and all ranks get the same bits.
//
// Each rank combines a part of the array. An operator that fails on one rank fails the call on all:
// they throw InvalidArgument, which names the rank and says what was wrong, and can go on; the
// array that was written to holds anything then. What else is refused on one rank is refused on
// all.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <type_traits>

#include "hocket/array_view.h"
#include "hocket/communicator.h"
#include "hocket/types.h"
#include "hocket/work.h"

namespace hocket {

// Replaces each of the `count` elements at `left` by itself and what is at `right`, combined.
// Whatever it throws is an error of the call. It may neither call the communicator nor take longer
// than the deadline.
using Combine = void (*)(void* left, const void* right, std::size_t count, void* context);

// A value. `context` must outlive the call.
struct [[nodiscard("pass it to hocket::all_reduce or another of its calls")]] Operator {
  Combine combine = nullptr;
  void* context = nullptr;
  // Of the arrays it is for; absent: of whatever dtype they are.
  std::optional<DType> dtype = {};
  // So many elements that follow each other are combined together, as the numbers of a matrix:
  // `count` is a multiple of it. The array, or for reduce_scatter a share of it, holds whole ones.
  std::size_t unit = 1;
};

namespace detail {
template <Element T, typename F>
void combine_elements(F& function, void* left, const void* right, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    T a, b;  // arrays may lie anywhere
    std::memcpy(&a, static_cast<std::byte*>(left) + i * sizeof(T), sizeof(T));
    std::memcpy(&b, static_cast<const std::byte*>(right) + i * sizeof(T), sizeof(T));
    a = static_cast<T>(function(a, b));
    std::memcpy(static_cast<std::byte*>(left) + i * sizeof(T), &a, sizeof(T));
  }
}
// Functions whose type says all: lambdas that capture nothing, std::plus<>.
template <typename F>
concept Stateless = std::is_empty_v<F> && std::default_initializable<F>;
template <typename F>
concept NoOperator = !std::convertible_to<F, Operator>;
}  // namespace detail

// That of a function of two elements: a plain function, or an object that must outlive the call. A
// lambda that captures nothing, or std::plus<>{}, may be a temporary.
//
//     double larger(double a, double b) { return std::hypot(a, b); }
//     hocket::all_reduce(comm, x, x, hocket::operator_of<double>(larger));
template <Element T, std::invocable<T, T> F>
Operator operator_of(F& function) noexcept {
  Operator made{.dtype = dtype_of<T>};
  if constexpr (std::is_function_v<F>) {
    made.context = reinterpret_cast<void*>(&function);
    made.combine = [](void* left, const void* right, std::size_t count, void* context) {
      detail::combine_elements<T>(*reinterpret_cast<F*>(context), left, right, count);
    };
  } else {
    made.context = const_cast<void*>(static_cast<const void*>(std::addressof(function)));
    made.combine = [](void* left, const void* right, std::size_t count, void* context) {
      detail::combine_elements<T>(*static_cast<F*>(context), left, right, count);
    };
  }
  return made;
}
// The same for a name that stands for several functions: std::fmax, std::max<double>.
template <Element T>
Operator operator_of(T (&function)(T, T)) noexcept {
  return operator_of<T, T(T, T)>(function);
}
template <Element T>
Operator operator_of(const T& (&function)(const T&, const T&)) noexcept {
  return operator_of<T, const T&(const T&, const T&)>(function);
}
template <Element T, std::invocable<T, T> F>
requires(detail::Stateless<F>)
Operator operator_of(const F&&) noexcept {
  const auto combine = [](void* left, const void* right, std::size_t count, void*) {
    F function;
    detail::combine_elements<T>(function, left, right, count);
  };
  return {.combine = combine, .dtype = dtype_of<T>};
}
template <Element T, std::invocable<T, T> F>
requires(std::is_pointer_v<F>)
Operator operator_of(const F&& function) noexcept {
  return operator_of<T>(*function);
}
template <Element T, std::invocable<T, T> F>
requires(!detail::Stateless<F> && !std::is_pointer_v<F>)
Operator operator_of(const F&&) = delete;  // hocket: it must outlive the call: give it a name

struct OperatorOptions {
  int root = 0;  // of reduce
  std::optional<Duration> deadline = {};
};

// As the communicator's methods of these names. `in` and `out` may be one array; overlap them in
// another way and it is refused. Of reduce, ranks but the root may leave out `out`; of exscan, rank
// 0, where it stays as it is.
//
// What `..._async` and `prepare_...` return keeps a copy of the operator, but not its context. Its
// function is called by whoever moves the call: a thread that waits for this one or another call of
// the communicator, or a thread of hocket's own.
void all_reduce(Communicator& comm,
                ConstArrayView in,
                ArrayView out,
                const Operator& op,
                const OperatorOptions& options = {});
Work all_reduce_async(Communicator& comm,
                      BorrowedView in,
                      ArrayView out,
                      const Operator& op,
                      const OperatorOptions& options = {});
Prepared prepare_all_reduce(Communicator& comm,
                            BorrowedView in,
                            ArrayView out,
                            const Operator& op,
                            const OperatorOptions& options = {});
void reduce(Communicator& comm,
            ConstArrayView in,
            ArrayView out,
            const Operator& op,
            const OperatorOptions& options = {});
Work reduce_async(Communicator& comm,
                  BorrowedView in,
                  ArrayView out,
                  const Operator& op,
                  const OperatorOptions& options = {});
Prepared prepare_reduce(Communicator& comm,
                        BorrowedView in,
                        ArrayView out,
                        const Operator& op,
                        const OperatorOptions& options = {});
void reduce_scatter(Communicator& comm,
                    ConstArrayView in,
                    ArrayView out,
                    const Operator& op,
                    const OperatorOptions& options = {});
Work reduce_scatter_async(Communicator& comm,
                          BorrowedView in,
                          ArrayView out,
                          const Operator& op,
                          const OperatorOptions& options = {});
Prepared prepare_reduce_scatter(Communicator& comm,
                                BorrowedView in,
                                ArrayView out,
                                const Operator& op,
                                const OperatorOptions& options = {});
void scan(Communicator& comm,
          ConstArrayView in,
          ArrayView out,
          const Operator& op,
          const OperatorOptions& options = {});
Work scan_async(Communicator& comm,
                BorrowedView in,
                ArrayView out,
                const Operator& op,
                const OperatorOptions& options = {});
Prepared prepare_scan(Communicator& comm,
                      BorrowedView in,
                      ArrayView out,
                      const Operator& op,
                      const OperatorOptions& options = {});
void exscan(Communicator& comm,
            ConstArrayView in,
            ArrayView out,
            const Operator& op,
            const OperatorOptions& options = {});
Work exscan_async(Communicator& comm,
                  BorrowedView in,
                  ArrayView out,
                  const Operator& op,
                  const OperatorOptions& options = {});
Prepared prepare_exscan(Communicator& comm,
                        BorrowedView in,
                        ArrayView out,
                        const Operator& op,
                        const OperatorOptions& options = {});

// A function is no operator: these are there for their comments, which the compiler shows.
// clang-format off
template <detail::NoOperator F, typename... O>
void all_reduce(  // hocket: pass hocket::operator_of<double>(function)
    Communicator&, ConstArrayView, ArrayView, F&&, O&&...) = delete;
template <detail::NoOperator F, typename... O>
void all_reduce_async(  // hocket: pass hocket::operator_of<double>(function)
    Communicator&, ConstArrayView, ArrayView, F&&, O&&...) = delete;
template <detail::NoOperator F, typename... O>
void prepare_all_reduce(  // hocket: pass hocket::operator_of<double>(function)
    Communicator&, ConstArrayView, ArrayView, F&&, O&&...) = delete;
template <detail::NoOperator F, typename... O>
void reduce(  // hocket: pass hocket::operator_of<double>(function)
    Communicator&, ConstArrayView, ArrayView, F&&, O&&...) = delete;
template <detail::NoOperator F, typename... O>
void reduce_async(  // hocket: pass hocket::operator_of<double>(function)
    Communicator&, ConstArrayView, ArrayView, F&&, O&&...) = delete;
template <detail::NoOperator F, typename... O>
void prepare_reduce(  // hocket: pass hocket::operator_of<double>(function)
    Communicator&, ConstArrayView, ArrayView, F&&, O&&...) = delete;
template <detail::NoOperator F, typename... O>
void reduce_scatter(  // hocket: pass hocket::operator_of<double>(function)
    Communicator&, ConstArrayView, ArrayView, F&&, O&&...) = delete;
template <detail::NoOperator F, typename... O>
void reduce_scatter_async(  // hocket: pass hocket::operator_of<double>(function)
    Communicator&, ConstArrayView, ArrayView, F&&, O&&...) = delete;
template <detail::NoOperator F, typename... O>
void prepare_reduce_scatter(  // hocket: pass hocket::operator_of<double>(function)
    Communicator&, ConstArrayView, ArrayView, F&&, O&&...) = delete;
template <detail::NoOperator F, typename... O>
void scan(  // hocket: pass hocket::operator_of<double>(function)
    Communicator&, ConstArrayView, ArrayView, F&&, O&&...) = delete;
template <detail::NoOperator F, typename... O>
void scan_async(  // hocket: pass hocket::operator_of<double>(function)
    Communicator&, ConstArrayView, ArrayView, F&&, O&&...) = delete;
template <detail::NoOperator F, typename... O>
void prepare_scan(  // hocket: pass hocket::operator_of<double>(function)
    Communicator&, ConstArrayView, ArrayView, F&&, O&&...) = delete;
template <detail::NoOperator F, typename... O>
void exscan(  // hocket: pass hocket::operator_of<double>(function)
    Communicator&, ConstArrayView, ArrayView, F&&, O&&...) = delete;
template <detail::NoOperator F, typename... O>
void exscan_async(  // hocket: pass hocket::operator_of<double>(function)
    Communicator&, ConstArrayView, ArrayView, F&&, O&&...) = delete;
template <detail::NoOperator F, typename... O>
void prepare_exscan(  // hocket: pass hocket::operator_of<double>(function)
    Communicator&, ConstArrayView, ArrayView, F&&, O&&...) = delete;
// clang-format on

}  // namespace hocket
