// Reductions by an operator of the program's own, for arrays in host memory.
//
// Ranks are combined in ascending order by every engine: ((x0 op x1) op x2) ... op x(n-1). One rank
// computes each element of a result. So the operator need not be commutative or associative, and
// all ranks get the same bits.
//
// Each rank combines a part of the array. If the operator fails on one rank, the call fails on all
// ranks. They throw InvalidArgument, which names the rank and its error, and can continue. The
// contents of the output array are then undefined. Other arguments that one rank refuses are
// refused on all ranks.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <type_traits>

#include "hocket/array_view.h"
#include "hocket/communicator.h"
#include "hocket/types.h"
#include "hocket/work.h"

namespace hocket {

// A function that combines `count` elements: it replaces each element at `left` by its combination
// with the element at `right`. An exception that it throws is an error of the call. It must not
// call the communicator, nor run longer than the deadline.
using Combine = void (*)(void* left, const void* right, std::size_t count, void* context);

// An operator: a value. `context` must outlive the call.
struct [[nodiscard("pass it to hocket::all_reduce or another of its calls")]] Operator {
  Combine combine = nullptr;
  void* context = nullptr;
  // The dtype of the arrays that the operator accepts. Absent: any dtype.
  std::optional<DType> dtype = {};
  // Number of consecutive elements that belong together, such as the numbers of a matrix. `count`
  // is a multiple of it. The array, or for reduce_scatter each share, must contain whole units.
  std::size_t unit = 1;
  // A number that names the operator, such as a hash. Ranks whose numbers differ get a Mismatch.
  std::uint64_t identity = 0;
};

namespace detail {
template <Element T, typename F>
void combine_elements(F& function, void* left, const void* right, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    T a, b;  // the elements may be unaligned
    std::memcpy(&a, static_cast<std::byte*>(left) + i * sizeof(T), sizeof(T));
    std::memcpy(&b, static_cast<const std::byte*>(right) + i * sizeof(T), sizeof(T));
    a = static_cast<T>(function(a, b));
    std::memcpy(static_cast<std::byte*>(left) + i * sizeof(T), &a, sizeof(T));
  }
}
// A function whose type is enough to call it: a lambda without captures, or std::plus<>.
template <typename F>
concept Stateless = std::is_empty_v<F> && std::default_initializable<F>;
template <typename F>
concept NoOperator = !std::convertible_to<F, Operator>;
}  // namespace detail

// Makes the operator of a function of two elements: a plain function, or an object that must
// outlive the call. A lambda without captures, or std::plus<>{}, may be a temporary.
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
// Does the same for the name of an overloaded function: std::fmax, std::max<double>.
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
  int root = 0;  // for reduce
  std::optional<Duration> deadline = {};
};

// The collectives of the communicator, with an operator of the program's own. See Communicator for
// what they do and throw.
// @param comm The communicator.
// @param in,out The arrays. They may be one array, and must not overlap otherwise. For reduce,
//   `out` may be absent on ranks other than the root. For exscan rank 0 ignores it.
// @param op The operator, the same on all ranks.
// @param options See OperatorOptions.
//
// The results of `..._async` and `prepare_...` keep a copy of the operator, but not its context.
// The thread that moves the call runs its function. This is a thread that waits for any call of the
// communicator, or a thread of hocket.
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

// A plain function is not an operator. The deleted overloads exist for their comments, which the
// compiler shows.
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
