#include "strided.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "communicator_object.h"
#include "hocket/error.h"
#include "immutable.h"

namespace hocket::python {
namespace {

// Owns the contiguous copy of a strided array until the copy has been sent.
class Packed final : public Lease {
 public:
  explicit Packed(nb::object memory) : memory_(std::move(memory)) {}

 private:
  nb::object memory_;
};

// Owns contiguous memory into which a message is received, and knows the strided array for the
// data.
class ReceiveBuffer final : public Lease {
 public:
  ReceiveBuffer(nb::object memory, nb::handle array)
      : memory_(std::move(memory)), array_(nb::borrow(array)) {}

  // Copies only once, because the program may write to the array after the first copy. The mutex is
  // recursive, because a signal handler that runs during the copy may call this again.
  void copy_back() override {
    std::unique_lock lock(mutex_, std::defer_lock);
    without_gil_or_signals([&] { lock.lock(); });
    if (is_copied_back_) return;
    nb::module_::import_("numpy").attr("copyto")(array_, memory_);
    is_copied_back_ = true;
  }

 private:
  nb::object memory_;
  nb::object array_;
  std::recursive_mutex mutex_;
  bool is_copied_back_ = false;
};

nb::object copy_in_c_order(nb::handle object) {
  return nb::module_::import_("numpy").attr("array")(object, nb::arg("order") = "C");
}

// Returns true if no two elements share memory. Slices and transposes fulfil this.
bool lies_apart(nb::handle object, std::size_t element) {
  std::vector<std::pair<std::size_t, std::size_t>> axes;  // stride in bytes, length
  const nb::object strides = object.attr("strides");
  std::size_t axis = 0;
  for (nb::handle extent : object.attr("shape")) {
    const auto stride = nb::cast<std::ptrdiff_t>(nb::object(strides[axis++]));
    const auto length = nb::cast<std::size_t>(extent);
    if (length > 1) axes.emplace_back(static_cast<std::size_t>(std::abs(stride)), length);
  }
  std::sort(axes.begin(), axes.end());
  std::size_t span = element;  // bytes from the first to the last element along the axes so far
  for (const auto& [stride, length] : axes) {
    if (stride < span) return false;
    span += stride * (length - 1);
  }
  return true;
}

}  // namespace

Array array_to_send(nb::handle object, const char* name) {
  if (!is_strided_numpy(object, name)) return read_array(object, name);
  nb::object copy = copy_in_c_order(object);
  Array array = read_array(copy, name);
  array.lease = std::make_unique<Packed>(std::move(copy));
  return array;
}

Array array_to_receive(nb::handle object, const char* name, bool may_be_shorter) {
  if (!is_strided_numpy(object, name)) return writable_array(object, name);
  if (!nb::cast<bool>(object.attr("flags").attr("writeable"))) refuse_unwritable(object, name);
  nb::object memory = may_be_shorter ? copy_in_c_order(object)
                                     : nb::module_::import_("numpy").attr("empty")(
                                           object.attr("shape"), object.attr("dtype"));
  Array array = writable_array(memory, name);
  if (!lies_apart(object, size_of(array.dtype))) {
    throw InvalidArgument(std::string(name) +
                          " has several elements at one place in memory; receive into an array of "
                          "its own, and copy");
  }
  array.lease = std::make_unique<ReceiveBuffer>(std::move(memory), object);
  return array;
}

void copy_back(const Array& array) {
  if (array.lease) array.lease->copy_back();
}

}  // namespace hocket::python
