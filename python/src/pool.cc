// The C++ part of `hocket.DevicePool`: pools of workers, which are threads of this process.
#include <nanobind/stl/array.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arguments.h"
#include "communicator_object.h"
#include "hocket/device_pool.h"
#include "hocket/error.h"

namespace hocket::python {
namespace {

// Python's thread state of a worker's thread. It lives as long as the thread, not only for one
// call, so that thread-local data of Python programs survives between calls.
class ThreadState {
 public:
  void enter() {
    PyGILState_Ensure();
    state_ = PyEval_SaveThread();
  }
  void leave() {
    PyEval_RestoreThread(state_);
    PyGILState_Release(PyGILState_UNLOCKED);
  }

 private:
  PyThreadState* state_ = nullptr;
};

// The state of Python's `_Pool`. The caller holds the GIL. Methods and the destructor release it
// while they wait for workers.
struct PoolHandle {
  PoolHandle(DevicePool a_pool, std::vector<ThreadState> its_states)
      : pool(std::move(a_pool)), states(std::move(its_states)) {}
  ~PoolHandle() {
    without_gil_or_signals([this] { const DevicePool last(std::move(pool)); });
  }
  PoolHandle(const PoolHandle&) = delete;
  PoolHandle& operator=(const PoolHandle&) = delete;

  DevicePool pool;
  std::vector<ThreadState> states;
};

std::vector<StreamRef> read_streams(nb::handle streams) {
  std::vector<StreamRef> result;
  if (streams.is_none()) return result;
  for (nb::handle stream : streams) {
    result.push_back(StreamRef::from_handle(nb::cast<std::uintptr_t>(stream)));
  }
  return result;
}

// The arrays of one argument, with their leases.
struct ArrayList {
  ArrayList() = default;
  ArrayList(nb::handle objects, const char* name, Array (*read)(nb::handle, const char*)) {
    for (nb::handle object : objects) {
      arrays.push_back(read(object, element_name(name, arrays.size()).c_str()));
    }
  }
  std::vector<ConstArrayView> inputs() const {
    std::vector<ConstArrayView> views;
    for (const Array& array : arrays) views.push_back(array.input());
    return views;
  }
  std::vector<ArrayView> outputs() const {
    std::vector<ArrayView> views;
    for (const Array& array : arrays) views.push_back(array.output());
    return views;
  }
  std::vector<Array> arrays;
};

// Throws unless all arrays have the same shape and memory order, because elements at the same
// position are reduced together.
void require_alike(const ArrayList& arrays, const ArrayList& others) {
  if (arrays.arrays.empty()) return;
  const Array& first = arrays.arrays.front();
  const Shape shape = shape_of(first);
  for (std::size_t i = 0; i < arrays.arrays.size(); ++i) {
    const std::string which = element_name("arrays", i);
    const Shape found = shape_of(arrays.arrays[i]);
    if (found != shape) {
      throw InvalidArgument(which + " has shape " + to_string(found) + ", expected " +
                            to_string(shape) + " as the first");
    }
    require_same_order(first, "arrays[0]", arrays.arrays[i], which.c_str());
  }
  for (std::size_t i = 0; i < others.arrays.size(); ++i) {
    const std::string which = element_name("out", i);
    require_same_order(first, "arrays[0]", others.arrays[i], which.c_str());
    require_same_order(others.arrays.front(), "out[0]", others.arrays[i], which.c_str());
  }
}

void make_pool(PoolHandle* self,
               nb::handle workers,
               nb::handle devices,
               nb::handle pin,
               nb::handle deadline,
               nb::handle engines) {
  PoolOptions options;
  for (nb::handle device : devices) options.devices.push_back(integer_argument(device, "a device"));
  if (!flag_argument(pin, "pin")) options.pinning = PoolOptions::Pinning::kNone;
  options.deadline = limit_argument(deadline, "deadline");
  options.library_folders = library_folders();
  options.engines = engines_argument(engines);
  const int count = integer_argument(workers, "workers");
  without_gil([&] {
    DevicePool pool = options.devices.empty() ? DevicePool(count, options) : DevicePool(options);
    std::vector<ThreadState> states(static_cast<std::size_t>(pool.size()));
    pool.map([&](PoolWorker& worker) { states[static_cast<std::size_t>(worker.index())].enter(); });
    new (self) PoolHandle(std::move(pool), std::move(states));
  });
}

void close(PoolHandle& handle) {
  without_gil([&] {
    if (handle.pool.is_closed()) return;
    handle.pool.map([&](PoolWorker& worker) {
      handle.states[static_cast<std::size_t>(worker.index())].leave();
    });
    handle.pool.close();
  });
}

// Runs `body(index, communicator)` in the thread of each worker in `workers`. The workers start in
// the order of `workers`: each starts when the worker before it has taken the GIL. So first uses of
// shared state, such as a random generator, happen in the same order in every run. A worker that
// waits before its first use may break this order.
void map(PoolHandle& handle,
         const std::vector<int>& workers,
         nb::callable body,
         nb::handle streams) {
  const std::vector<StreamRef> at = read_streams(streams);
  without_gil([&] {
    handle.pool.map(workers,
                    [&](PoolWorker& worker) {
                      with_gil([&] {
                        worker.begun();
                        body(worker.index(),
                             CommunicatorObject{Communicator(worker.communicator().impl())});
                      });
                    },
                    {.streams = at, .start = PoolCallOptions::Start::kInTurn});
  });
}

Communicator* across_argument(nb::handle across) {
  if (across.is_none()) return nullptr;
  if (!nb::isinstance<CommunicatorObject>(across)) {
    throw InvalidArgument(std::string("across is ") + type_in_words(across) +
                          "; give a Communicator, or None to stay within this process");
  }
  return &nb::cast<CommunicatorObject&>(across).comm;
}

PoolReduceOptions reduce_options(nb::handle op,
                                 int group,
                                 bool fixed,
                                 nb::handle across,
                                 const std::vector<StreamRef>& streams) {
  return {.op = op_argument(op),
          .group = group,
          .order = fixed ? PoolReduceOptions::Order::kFixed : PoolReduceOptions::Order::kAny,
          .across = across_argument(across),
          .streams = streams};
}

// Reads arguments by `read`. If `read` throws, the other processes of `across` are told.
template <typename F>
auto read_across(nb::handle across, F&& read) {
  try {
    return read();
  } catch (...) {
    if (nb::isinstance<CommunicatorObject>(across))
      announce_refusal(nb::cast<CommunicatorObject&>(across));
    throw;
  }
}

using nb::arg;

void bind_distribute(nb::class_<PoolHandle>& cls) {
  cls.def(
      "distribute",
      [](PoolHandle& h,
         nb::handle in,
         const std::vector<int>& from,
         nb::handle out,
         nb::handle streams) {
        const ArrayList sources(in, "in", read_array), copies(out, "out", writable_array);
        const auto at = read_streams(streams);
        without_gil(
            [&] { h.pool.distribute(sources.inputs(), from, copies.outputs(), {.streams = at}); });
      },
      arg("arrays"),
      arg("source"),
      arg("out"),
      arg("streams").none() = nb::none(),
      nb::sig("def distribute(self, arrays: Sequence[Array], source: Sequence[int], "
              "out: Sequence[Array], streams: Optional[Sequence[int]] = None) -> None"));
}

void bind_reductions(nb::class_<PoolHandle>& cls) {
  cls.def(
      "reduce",
      [](PoolHandle& h,
         nb::handle in,
         nb::handle out,
         nb::handle op,
         nb::handle across,
         nb::handle streams) {
        const auto at = read_streams(streams);
        const auto [sources, result, options] = read_across(across, [&] {
          ArrayList arrays(in, "arrays", read_array);
          require_alike(arrays, {});
          return std::tuple(std::move(arrays),
                            writable_array(out, "out"),
                            reduce_options(op, 0, false, across, at));
        });
        without_gil([&, &s = sources, &r = result, &o = options] {
          h.pool.reduce(s.inputs(), r.output(), o);
        });
      },
      arg("arrays"),
      arg("out"),
      arg("op"),
      arg("across").none() = nb::none(),
      arg("streams").none() = nb::none(),
      nb::sig("def reduce(self, arrays: Sequence[Array], out: Array, op: Op, "
              "across: Optional[Communicator] = None, "
              "streams: Optional[Sequence[int]] = None) -> None"));
  cls.def(
      "all_reduce",
      [](PoolHandle& h,
         nb::handle in,
         nb::handle out,
         nb::handle op,
         int group,
         bool fixed,
         nb::handle across,
         nb::handle streams) {
        const auto at = read_streams(streams);
        const auto [sources, results, options] = read_across(across, [&] {
          ArrayList arrays(in, "arrays", read_array), into(out, "out", writable_array);
          require_alike(arrays, into);
          return std::tuple(
              std::move(arrays), std::move(into), reduce_options(op, group, fixed, across, at));
        });
        without_gil([&, &s = sources, &r = results, &o = options] {
          h.pool.all_reduce(s.inputs(), r.outputs(), o);
        });
      },
      arg("arrays"),
      arg("out"),
      arg("op"),
      arg("group") = 0,
      arg("fixed") = false,
      arg("across").none() = nb::none(),
      arg("streams").none() = nb::none(),
      nb::sig("def all_reduce(self, arrays: Sequence[Array], out: Sequence[Array], op: Op, "
              "group: int = 0, fixed: bool = False, across: Optional[Communicator] = None, "
              "streams: Optional[Sequence[int]] = None) -> None"));
}

void bind_exchange_halo(nb::class_<PoolHandle>& cls) {
  cls.def(
      "exchange_halo",
      [](PoolHandle& h,
         nb::handle arrays,
         const std::array<std::size_t, 3>& shape,
         const std::vector<std::size_t>& seams,
         std::size_t overlap,
         bool blend,
         nb::handle across,
         const std::array<std::size_t, 2>& outer_seams,
         nb::handle streams) {
        const auto at = read_streams(streams);
        const ArrayList list = read_across(across, [&] {
          ArrayList read(arrays, "arrays", writable_array);
          for (std::size_t i = 0; i < read.arrays.size(); ++i) {
            require_c_order(read.arrays[i], element_name("arrays", i).c_str());
          }
          return read;
        });
        const HaloOptions options{
            .mode = blend ? HaloOptions::Mode::kBlend : HaloOptions::Mode::kSwap,
            .across = across_argument(across),
            .previous_seam = outer_seams[0],
            .next_seam = outer_seams[1],
            .streams = at};
        without_gil([&] {
          h.pool.exchange_halo(list.outputs(),
                               {.outer = shape[0], .rows = shape[1], .inner = shape[2]},
                               seams,
                               overlap,
                               options);
        });
      },
      arg("arrays"),
      arg("shape"),
      arg("seams"),
      arg("overlap"),
      arg("blend"),
      arg("across").none() = nb::none(),
      arg("outer_seams") = std::array<std::size_t, 2>{},
      arg("streams").none() = nb::none(),
      nb::sig("def exchange_halo(self, arrays: Sequence[Array], shape: Sequence[int], "
              "seams: Sequence[int], overlap: int, blend: bool, "
              "across: Optional[Communicator] = None, outer_seams: Sequence[int] = (0, 0), "
              "streams: Optional[Sequence[int]] = None) -> None"));
}

ChunkFunction in_python(const nb::callable& f) {
  return [&f](std::size_t buffer, std::size_t first, std::size_t last) {
    with_gil([&] { f(buffer, first, last); });
  };
}

}  // namespace

void bind_pool(nb::module_& module) {
  nb::class_<PoolHandle> cls(
      module, "_Pool", nb::is_weak_referenceable(), "Use it through `hocket.DevicePool`.");
  cls.def("__init__",
          &make_pool,
          arg("workers"),
          arg("devices"),
          arg("pin"),
          arg("deadline").none(),
          arg("engines").none(),
          nb::sig("def __init__(self, workers: int, devices: Sequence[int], pin: bool, "
                  "deadline: Timeout, engines: Optional[Iterable[str]]) -> None"));
  cls.def_prop_ro(
      "size", [](const PoolHandle& h) { return h.pool.size(); }, nb::sig("def size(self) -> int"));
  cls.def_prop_ro(
      "is_closed",
      [](const PoolHandle& h) { return h.pool.is_closed(); },
      nb::sig("def is_closed(self) -> bool"));
  cls.def(
      "streams",
      [](const PoolHandle& h, int worker) {
        return nb::make_tuple(reinterpret_cast<std::uintptr_t>(h.pool.load_stream(worker).handle()),
                              reinterpret_cast<std::uintptr_t>(h.pool.stream(worker).handle()));
      },
      arg("worker"),
      nb::sig("def streams(self, worker: int) -> tuple[int, int]"));
  cls.def("close", &close, nb::sig("def close(self) -> None"));
  cls.def("map",
          &map,
          arg("workers"),
          arg("body"),
          arg("streams").none() = nb::none(),
          nb::sig("def map(self, workers: Sequence[int], "
                  "body: Callable[[int, Communicator], None], "
                  "streams: Optional[Sequence[int]] = None) -> None"));
  bind_distribute(cls);
  bind_reductions(cls);
  bind_exchange_halo(cls);
  module.def(
      "_stream_chunks",
      [](std::size_t count,
         std::size_t chunk,
         std::size_t buffers,
         const nb::callable& load,
         const nb::callable& use) {
        const auto loading = in_python(load), using_ = in_python(use);
        without_gil(
            [&] { stream_chunks(count, {.chunk = chunk, .buffers = buffers}, loading, using_); });
      },
      arg("count"),
      arg("chunk"),
      arg("buffers"),
      arg("load"),
      arg("use"),
      nb::sig("def _stream_chunks(count: int, chunk: int, buffers: int, "
              "load: Callable[[int, int, int], None], use: Callable[[int, int, int], None]) "
              "-> None"));
}

}  // namespace hocket::python
