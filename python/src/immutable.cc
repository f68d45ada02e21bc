#include "immutable.h"

#include <cstring>
#include <string>
#include <string_view>

#include "communicator_object.h"
#include "device.h"
#include "hocket/error.h"
#include "hocket/gpu.h"

namespace hocket::python {
namespace {

// Memory for a result. When the call has ended, the memory becomes a JAX array, or a number.
struct Unfinished {
  nb::object like;
  nb::object memory;
};

// Returns the result as a number of the argument's type, NumPy's or Python's.
nb::object number_in(const Unfinished& result) {
  if (is_numpy_scalar(result.like)) return result.memory.attr("__getitem__")(nb::make_tuple());
  return result.memory.attr("item")();
}

nb::object on_host(const Unfinished& result) {
  // The result is committed to the argument's device only if the argument is committed to it.
  // Otherwise JAX uses its default device.
  const nb::object committed = nb::getattr(result.like, "committed", nb::bool_(true));
  const nb::object where = nb::cast<bool>(committed) ? result.like.attr("sharding") : nb::none();
  return nb::module_::import_("jax").attr("device_put")(result.memory, where);
}

// Returns the array in GPU memory. Waits until the memory is written, because JAX may copy it to
// the host on a stream of its own.
nb::object on_gpu(const Unfinished& result, const Array& memory, StreamRef stream) {
  const Gpu& gpu = gpu_of(memory);
  without_gil([&] {
    GpuEvent written(gpu);
    written.record(stream);
    written.synchronize();
  });
  return result.memory;
}

}  // namespace

bool is_immutable(nb::handle object) {
  const std::string type = name_of_type(object);
  return type.starts_with("jax");
}

bool is_deleted(nb::handle object) {
  if (!is_immutable(object) || !nb::hasattr(object, "is_deleted")) return false;
  return nb::cast<bool>(object.attr("is_deleted")());
}

// The memory begins with the number itself, because exscan leaves the memory unchanged on rank 0.
nb::object new_number(nb::handle like) {
  const Array number = read_number(like, "x");
  nb::object memory = new_numpy_array(number.dtype, {});
  std::memcpy(writable_array(memory, "x").data, number.data, size_of(number.dtype));
  return nb::cast(Unfinished{.like = nb::borrow(like), .memory = std::move(memory)});
}

nb::object new_immutable(const Array& like, const Shape& shape) {
  Unfinished made{.like = nb::borrow(like.object)};
  if (like.is_on_gpu()) {
    made.memory = nb::module_::import_("jax.numpy")
                      .attr("empty")(tuple_of(shape),
                                     nb::arg("dtype") = like.object.attr("dtype"),
                                     nb::arg("device") = like.object.attr("device"));
    // Waits, because `empty` writes zeros on JAX's stream. They must not overwrite the call's
    // result.
    made.memory.attr("block_until_ready")();
  } else {
    made.memory = new_numpy_array(like.dtype, shape);
  }
  return nb::cast(std::move(made));
}

bool is_unfinished(nb::handle object) { return nb::isinstance<Unfinished>(object); }

Array read_unfinished(nb::handle object) {
  Array array = read_array(nb::cast<Unfinished&>(object).memory, "out");
  array.object = object;
  array.writable = true;
  return array;
}

nb::object finished(nb::object result, std::optional<StreamRef> stream) {
  if (!is_unfinished(result)) return result;
  const auto& unfinished = nb::cast<Unfinished&>(result);
  if (is_number(unfinished.like)) return number_in(unfinished);
  const Array memory = read_array(unfinished.memory, "out");
  if (!memory.is_on_gpu()) return on_host(unfinished);
  return on_gpu(unfinished, memory, stream.value_or(StreamRef()));
}

void require_reusable(nb::handle result, const char* name) {
  if (!is_unfinished(result)) return;
  const nb::object& like = nb::cast<Unfinished&>(result).like;
  if (is_number(like)) {
    throw InvalidArgument(std::string(name) + " is " + type_in_words(like) +
                          ", which never changes, and a prepared call writes to the same arrays "
                          "each time; give an array: numpy.array([" +
                          name + "])");
  }
  throw InvalidArgument(
      std::string(name) +
      " is an array of JAX, which never changes, and a prepared call writes to the same arrays "
      "each time; give out=, or for a call without it " +
      name + ", as an array of NumPy (on a GPU: of CuPy or PyTorch)");
}

void refuse_unwritable(nb::handle object, const char* name) {
  if (is_number(object)) {
    throw InvalidArgument(std::string(name) + " is " + type_in_words(object) +
                          ", a number, which cannot be written to; call with y = numpy.array(" +
                          name + "), in which a result comes");
  }
  if (!is_immutable(object)) {
    throw InvalidArgument(std::string(name) +
                          " is read-only and would be written to; call with y = " +
                          (PyBytes_Check(object.ptr()) != 0 ? "bytearray(" : "numpy.array(") +
                          name + "), in which a result comes");
  }
  throw InvalidArgument(
      std::string(name) +
      " is an array of JAX, which is read-only and would be written to. Where it is out=, leave it "
      "away, and the result comes as a new array of JAX; else pass one of NumPy (on a GPU: of CuPy "
      "or PyTorch), and make one of JAX of it by jax.numpy.asarray or jax.dlpack.from_dlpack");
}

void bind_immutable(nb::module_& module) {
  nb::class_<Unfinished>(module, "_Unfinished", "Memory of a result that is being made.");
}

}  // namespace hocket::python
