#include "device.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <string>
#include <utility>

#include "arguments.h"
#include "hocket/error.h"

namespace hocket::python {
namespace {

std::optional<std::uintptr_t> handle_in(nb::handle object) {
  if (!PyLong_Check(object.ptr())) return std::nullopt;
  const std::size_t value = PyLong_AsSize_t(object.ptr());
  if (PyErr_Occurred() != nullptr) {  // negative, or too large for an address
    PyErr_Clear();
    return std::nullopt;
  }
  return value;
}

// Returns the attribute if it exists and is a number.
std::optional<std::uintptr_t> handle_in(nb::handle object, const char* attribute) {
  const nb::object value = nb::steal(PyObject_GetAttrString(object.ptr(), attribute));
  if (!value.is_valid()) {
    PyErr_Clear();
    return std::nullopt;
  }
  return handle_in(value);
}

// Returns whether two streams are the same. The legacy default stream has two handles.
bool is_one(StreamRef a, StreamRef b) {
  const auto is_legacy = [](StreamRef stream) {
    return reinterpret_cast<std::uintptr_t>(stream.handle()) <= 1;
  };
  return a == b || (is_legacy(a) && is_legacy(b));
}

bool needs_hold(const Array& array, const std::optional<StreamRef>& stream) {
  return array.is_on_gpu() &&
         (array.lease || !stream || !is_one(array.stream.value_or(StreamRef()), *stream));
}

}  // namespace

std::optional<StreamRef> stream_argument(nb::handle stream) {
  if (stream.is_none()) return std::nullopt;
  if (const auto raw = handle_in(stream)) return StreamRef::from_handle(*raw);
  // PyTorch's streams have the attribute "cuda_stream", CuPy's have "ptr".
  for (const char* attribute : {"cuda_stream", "ptr"}) {
    if (const auto raw = handle_in(stream, attribute)) return StreamRef::from_handle(*raw);
  }
  if (nb::hasattr(stream, "__cuda_stream__")) {
    const nb::object pair = stream.attr("__cuda_stream__")();  // version, handle
    if (const auto raw = handle_in(nb::object(pair[1]))) return StreamRef::from_handle(*raw);
  }
  if (nb::hasattr(stream, "handle")) {  // Numba: a ctypes pointer, None for the default stream
    const nb::object value = nb::getattr(stream.attr("handle"), "value", nb::none());
    if (value.is_none()) return StreamRef();
    if (const auto raw = handle_in(value)) return StreamRef::from_handle(*raw);
  }
  throw InvalidArgument(std::string("stream is ") + type_in_words(stream) +
                        "; give a stream of CuPy, PyTorch or Numba, or its handle as an int");
}

namespace {

// The GPUs found so far. Guarded by the GIL, or by the mutex in a Python without GIL. Entries are
// never removed, so references to them stay valid.
struct KnownGpus {
  nb::ft_mutex mutex;
  std::deque<Gpu> gpus;

  const Gpu* find(int ordinal) const {
    const auto found = std::ranges::find(gpus, ordinal, &Gpu::ordinal);
    return found != gpus.end() ? &*found : nullptr;
  }
};

}  // namespace

// Making a Gpu takes many driver calls, so each Gpu is made once and kept.
const Gpu& gpu_of(const Array& array) {
  static auto* const known = new KnownGpus;  // never destroyed: may be used while Python ends
  {
    const nb::ft_lock_guard lock(known->mutex);
    if (const Gpu* found = known->find(array.device)) return *found;
  }
  const Gpu gpu =
      without_gil([&] { return array.device >= 0 ? Gpu(array.device) : Gpu::holding(array.data); });
  const nb::ft_lock_guard lock(known->mutex);
  const Gpu* found = known->find(gpu.ordinal());
  return found != nullptr ? *found : known->gpus.emplace_back(gpu);
}

void follow(const Array& array, std::optional<StreamRef> stream) {
  if (!array.is_at_work || !stream || array.count == 0) return;
  if (is_one(*array.stream, *stream)) return;
  const Gpu& gpu = gpu_of(array);
  // Releases the GIL, because the driver waits if a stream's queue is full.
  without_gil([&] { gpu.order(*array.stream, *stream); });
}

std::optional<StreamRef> stream_of(nb::handle asked, const Array& in, const Array& out) {
  const std::optional<StreamRef> stream = !asked.is_none()  ? stream_argument(asked)
                                          : out.is_on_gpu() ? out.stream
                                                            : in.stream;
  follow(in, stream);
  follow(out, stream);
  return stream;
}

namespace {

// Drops the works that streams have finished. It tests them without the GIL, because another thread
// may hold the communicator and wait for the GIL. During the test other threads see an empty list.
void drop_ended(HeldWork& held) {
  if (held.is_empty()) return;
  std::deque<WorkHandle> looked_at = held.take();
  without_gil_or_signals([&] {
    for (WorkHandle& handle : looked_at) {
      if (!handle.work.test()) break;
      handle.work.has_ended();
    }
  });
  while (!looked_at.empty() && looked_at.front().work.is_known_ended()) looked_at.pop_front();
  held.put_back(std::move(looked_at));
}

// `arrays` is a sequence of pointers to the arrays to keep.
template <typename Arrays>
void retain_all(CommunicatorObject& self,
                const Arrays& arrays,
                const std::optional<StreamRef>& stream) {
  HeldWork& held = *self.held;
  drop_ended(held);
  if (!std::ranges::any_of(arrays, [&](Array* one) { return needs_hold(*one, stream); })) return;
  WorkHandle handle{.result = nb::none()};
  for (Array* one : arrays) keep(handle, *one);
  handle.work =
      without_gil_or_signals([&] { return self.comm.stream_mark(stream.value_or(StreamRef())); });
  held.add(std::move(handle));
}

}  // namespace

void retain(CommunicatorObject& self,
            std::initializer_list<Array*> arrays,
            std::optional<StreamRef> stream) {
  retain_all(self, arrays, stream);
}

void retain(CommunicatorObject& self, std::vector<Array>& arrays, std::optional<StreamRef> stream) {
  std::vector<Array*> all;
  for (Array& array : arrays) all.push_back(&array);
  retain_all(self, all, stream);
}

}  // namespace hocket::python
