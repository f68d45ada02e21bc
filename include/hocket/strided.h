// Views of arrays whose elements do not follow each other in memory, such as a column or a box of a
// larger array, and messages of them.
//
//     std::vector<double> field(100 * 50);  // 100 rows of 50
//     const auto whole = hocket::strided(field.data(), {100, 50});
//     hocket::send_recv_strided(
//         comm, whole.part(1, 48, 49), following, whole.part(1, 0, 1), preceding);
//
// Views are values: they own nothing, and the array must outlive them. Elements travel in C order:
// the last index changes fastest. Both ends need the same number of elements, but not the same
// shape or strides. One end may also be an ordinary array.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "hocket/communicator.h"
#include "hocket/types.h"

namespace hocket {

// A view that is read from. A value.
struct ConstStridedView {
  const void* data = nullptr;  // the element whose indices are all 0
  DType dtype = DType::kUInt8;
  std::vector<std::size_t> shape = {};       // elements along each axis
  std::vector<std::ptrdiff_t> strides = {};  // from one index to the next, in elements

  std::size_t count() const noexcept;  // elements
  // Returns the part with the indices [first, last) along an axis.
  // @throws InvalidArgument if there is no such part.
  ConstStridedView part(std::size_t axis, std::size_t first, std::size_t last) const;
};

// A view that is written to. Its elements must not share memory with each other. A value.
struct StridedView {
  void* data = nullptr;
  DType dtype = DType::kUInt8;
  std::vector<std::size_t> shape = {};
  std::vector<std::ptrdiff_t> strides = {};

  std::size_t count() const noexcept;
  StridedView part(std::size_t axis, std::size_t first, std::size_t last) const;
  operator ConstStridedView() const { return {data, dtype, shape, strides}; }
};

// Returns the strides of an array that is contiguous in C order.
std::vector<std::ptrdiff_t> c_order(const std::vector<std::size_t>& shape);

// Views an array with several axes. Without strides it is contiguous in C order.
template <Element T>
StridedView strided(T* data,
                    std::vector<std::size_t> shape,
                    std::vector<std::ptrdiff_t> strides = {}) {
  if (strides.empty()) strides = c_order(shape);
  return {data, dtype_of<T>, std::move(shape), std::move(strides)};
}
template <Element T>
ConstStridedView strided(const T* data,
                         std::vector<std::size_t> shape,
                         std::vector<std::ptrdiff_t> strides = {}) {
  if (strides.empty()) strides = c_order(shape);
  return {data, dtype_of<T>, std::move(shape), std::move(strides)};
}

// The messages of Communicator, for strided arrays in the host's memory. Elements are packed into
// contiguous memory, or unpacked from it. A view that is already contiguous is sent without a copy.
// @throws InvalidArgument if `shape` and `strides` differ in length, if elements of `out` share
//   memory, or if there is no memory for the copy. Throws as Communicator::send.
void send_strided(Communicator& comm,
                  const ConstStridedView& in,
                  int destination,
                  const MessageOptions& options = {});
Received recv_strided(Communicator& comm,
                      const StridedView& out,
                      int source,
                      const MessageOptions& options = {});
Received send_recv_strided(Communicator& comm,
                           const ConstStridedView& in,
                           int destination,
                           const StridedView& out,
                           int source,
                           const MessageOptions& options = {});

}  // namespace hocket
