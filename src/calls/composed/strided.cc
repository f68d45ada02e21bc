// Messages of arrays whose elements are not contiguous. They are packed, in C order.
#include "hocket/strided.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <new>
#include <numeric>

#include "calls/composed/strided_checks.h"

namespace hocket {

namespace {

template <typename View>
std::size_t count_of_elements(const View& view) noexcept {
  return std::accumulate(view.shape.begin(), view.shape.end(), std::size_t{1}, std::multiplies<>());
}

template <typename View>
View part_of(const View& view, std::size_t axis, std::size_t first, std::size_t last) {
  if (axis >= view.shape.size() || view.strides.size() != view.shape.size()) {
    throw InvalidArgument(fmt::format("axis is {}, and the view has {} axes and {} strides",
                                      axis,
                                      view.shape.size(),
                                      view.strides.size()));
  }
  if (first > last || last > view.shape[axis]) {
    throw InvalidArgument(
        fmt::format("the part from {} to {} is not within the {} elements of "
                    "axis {}",
                    first,
                    last,
                    view.shape[axis],
                    axis));
  }
  View part = view;
  part.shape[axis] = last - first;
  using Byte = std::conditional_t<std::is_same_v<View, StridedView>, std::byte, const std::byte>;
  part.data = static_cast<Byte*>(view.data) + static_cast<std::ptrdiff_t>(first) *
                                                  view.strides[axis] *
                                                  static_cast<std::ptrdiff_t>(size_of(view.dtype));
  return part;
}

// The shape of a view that has been checked.
struct StridedShape {
  std::vector<std::size_t> shape;
  std::vector<std::ptrdiff_t> strides;
  std::size_t element = 1;  // bytes
  std::size_t count = 0;    // elements
  bool is_contiguous = false;
};

StridedShape checked(const ConstStridedView& view, const char* name) {
  if (view.shape.size() != view.strides.size()) {
    throw InvalidArgument(fmt::format("{} has {} axes and {} strides; it needs one for each axis",
                                      name,
                                      view.shape.size(),
                                      view.strides.size()));
  }
  StridedShape shape{.shape = view.shape, .strides = view.strides, .element = size_of(view.dtype)};
  if (shape.element == 0) {
    throw InvalidArgument(fmt::format("{} has a dtype that is none of hocket::DType", name));
  }
  constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());
  shape.count = 1;
  for (const std::size_t extent : view.shape) {
    if (extent != 0 && shape.count > kMost / shape.element / extent) {
      throw InvalidArgument(fmt::format("{} has more elements than any memory holds", name));
    }
    shape.count *= extent;
  }
  if (view.data == nullptr && shape.count != 0) {
    throw InvalidArgument(
        fmt::format("{}.data is null, and it has {} elements", name, shape.count));
  }
  std::ptrdiff_t next = 1;
  shape.is_contiguous = true;
  for (std::size_t axis = view.shape.size(); axis-- > 0;) {
    if (view.shape[axis] != 1 && view.strides[axis] != next) shape.is_contiguous = false;
    next *= static_cast<std::ptrdiff_t>(view.shape[axis]);
  }
  if (shape.count == 0) shape.is_contiguous = true;
  return shape;
}

// Throws for a view in which elements might share memory, because the result would depend on the
// order of writing.
void require_apart(const StridedShape& shape, const char* name) {
  if (shape.is_contiguous) return;
  std::vector<std::size_t> axes;
  for (std::size_t axis = 0; axis < shape.shape.size(); ++axis) {
    if (shape.shape[axis] > 1) axes.push_back(axis);
  }
  const auto step = [&](std::size_t axis) { return std::abs(shape.strides[axis]); };
  std::ranges::sort(axes, std::less<>(), step);
  std::ptrdiff_t reach = 0;
  for (const std::size_t axis : axes) {
    if (step(axis) <= reach) {
      throw InvalidArgument(fmt::format(
          "elements of {} share memory: its stride along axis {} is {}, within what other axes "
          "take; give each element a place of its own",
          name,
          axis,
          shape.strides[axis]));
    }
    reach += step(axis) * static_cast<std::ptrdiff_t>(shape.shape[axis] - 1);
  }
}

}  // namespace

void composed::require_writable(const StridedView& view, const char* name) {
  require_apart(checked(view, name), name);
}

namespace {

// Calls `copy(address in the array, offset in packed memory, bytes)` for each contiguous run of
// elements, in C order.
template <typename Byte, typename Copy>
void for_each_run(const StridedShape& shape,
                  Byte* data,
                  std::size_t axis,
                  std::size_t& packed,
                  const Copy& copy) {
  const std::size_t axes = shape.shape.size();
  if (axis == axes) {
    copy(data, packed, shape.element);
    packed += shape.element;
    return;
  }
  const auto step = shape.strides[axis] * static_cast<std::ptrdiff_t>(shape.element);
  if (axis + 1 == axes && shape.strides[axis] == 1) {
    const std::size_t bytes = shape.shape[axis] * shape.element;
    copy(data, packed, bytes);
    packed += bytes;
    return;
  }
  for (std::size_t i = 0; i < shape.shape[axis]; ++i) {
    for_each_run(shape, data + static_cast<std::ptrdiff_t>(i) * step, axis + 1, packed, copy);
  }
}

std::vector<std::byte> packed_memory(const StridedShape& shape, const char* name) {
  try {
    return std::vector<std::byte>(shape.count * shape.element);
  } catch (const std::bad_alloc&) {
    throw InvalidArgument(fmt::format(
        "this rank got no memory to pack {} into: {} bytes", name, shape.count * shape.element));
  }
}

// Returns the elements of a view as contiguous memory: the view's own, or packed into `memory`.
ConstArrayView packed(const ConstStridedView& in,
                      const StridedShape& shape,
                      std::vector<std::byte>& memory) {
  if (shape.is_contiguous) return {in.data, shape.count, in.dtype};
  memory = packed_memory(shape, "in");
  std::size_t place = 0;
  for_each_run(shape,
               static_cast<const std::byte*>(in.data),
               0,
               place,
               [&](const std::byte* from, std::size_t to, std::size_t bytes) {
                 std::memcpy(memory.data() + to, from, bytes);
               });
  return {memory.data(), shape.count, in.dtype};
}

// Memory to receive into, and the view that it is unpacked to afterwards.
class StridedTarget {
 public:
  explicit StridedTarget(const StridedView& out) : out_(out), shape_(checked(out, "out")) {
    require_apart(shape_, "out");
    if (!shape_.is_contiguous) memory_ = packed_memory(shape_, "out");
  }
  ArrayView view() {
    void* const data = shape_.is_contiguous ? out_.data : memory_.data();
    return {data, shape_.count, out_.dtype};
  }
  // Writes the received elements to the view. If the message was shorter, these are the first
  // elements.
  void unpack(const Received& received) {
    if (shape_.is_contiguous || received.source == kNullRank) return;
    const std::size_t came = std::min(received.count, shape_.count) * shape_.element;
    std::size_t place = 0;
    for_each_run(shape_,
                 static_cast<std::byte*>(out_.data),
                 0,
                 place,
                 [&](std::byte* to, std::size_t from, std::size_t bytes) {
                   if (from < came) {
                     std::memcpy(to, memory_.data() + from, std::min(bytes, came - from));
                   }
                 });
  }

 private:
  const StridedView& out_;
  StridedShape shape_;
  std::vector<std::byte> memory_;
};

void require_host(const MessageOptions& options) {
  if (!options.stream) return;
  throw InvalidArgument(
      "stream is given, but messages of strided arrays are for the host's memory; leave it out");
}

}  // namespace

std::size_t ConstStridedView::count() const noexcept { return count_of_elements(*this); }
std::size_t StridedView::count() const noexcept { return count_of_elements(*this); }

ConstStridedView ConstStridedView::part(std::size_t axis,
                                        std::size_t first,
                                        std::size_t last) const {
  return part_of(*this, axis, first, last);
}
StridedView StridedView::part(std::size_t axis, std::size_t first, std::size_t last) const {
  return part_of(*this, axis, first, last);
}

std::vector<std::ptrdiff_t> c_order(const std::vector<std::size_t>& shape) {
  std::vector<std::ptrdiff_t> strides(shape.size());
  std::ptrdiff_t next = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = next;
    next *= static_cast<std::ptrdiff_t>(shape[axis]);
  }
  return strides;
}

void send_strided(Communicator& comm,
                  const ConstStridedView& in,
                  int destination,
                  const MessageOptions& options) {
  require_host(options);
  std::vector<std::byte> memory;
  comm.send(packed(in, checked(in, "in"), memory), destination, options);
}

Received recv_strided(Communicator& comm,
                      const StridedView& out,
                      int source,
                      const MessageOptions& options) {
  require_host(options);
  StridedTarget unpacked(out);
  const Received received = comm.recv(unpacked.view(), source, options);
  unpacked.unpack(received);
  return received;
}

Received send_recv_strided(Communicator& comm,
                           const ConstStridedView& in,
                           int destination,
                           const StridedView& out,
                           int source,
                           const MessageOptions& options) {
  require_host(options);
  StridedTarget unpacked(out);
  std::vector<std::byte> memory;
  const ConstArrayView sent = packed(in, checked(in, "in"), memory);
  const Received received = comm.send_recv(sent, destination, unpacked.view(), source, options);
  unpacked.unpack(received);
  return received;
}

}  // namespace hocket
