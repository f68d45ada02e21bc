// Binds the runtime context, and the redistribution of arrays.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>

#include "bootstrap.h"
#include "docstrings.h"
#include "hocket/context.h"
#include "hocket/redistribute.h"
#include "verbs.h"

namespace hocket::python {
namespace {

// Returns a pointer that gives its part of the context up without the GIL, because the last owner
// leaves the job, which may wait.
std::shared_ptr<Context> given_up_without_gil(std::shared_ptr<Context> context) {
  Context* const bare = context.get();
  return {bare, [context = std::move(context)](Context*) mutable {
            without_gil_or_signals([&] { context.reset(); });
          }};
}

std::shared_ptr<Context> initialize(nb::handle device,
                                    nb::handle bootstrap,
                                    nb::handle mpi,
                                    nb::handle engines,
                                    nb::handle timeout,
                                    nb::handle deadline) {
  const std::unique_ptr<Bootstrap> group = bootstrap_argument(bootstrap, mpi);
  const ContextOptions options = read_joining(group.get(), [&] {
    ContextOptions read;
    if (!device.is_none()) read.device = integer_argument(device, "device");
    read.engines = engines_argument(engines);
    read.timeout = limit_argument(timeout, "timeout");
    read.deadline = limit_argument(deadline, "deadline");
    read.library_folders = library_folders();
    return read;
  });
  return given_up_without_gil(without_gil(
      [&] { return group ? Context::initialize(*group, options) : Context::initialize(options); }));
}

void bind_context(nb::module_& module) {
  using nb::arg;
  nb::class_<Context> cls(module, "Context", docstring_of("Context"));
  cls.def_static(
      "initialize",
      &initialize,
      arg("device").none() = nb::none(),
      arg("bootstrap").none() = nb::none(),
      arg("mpi").none() = nb::none(),
      arg("engines").none() = nb::none(),
      arg("timeout").none() = nb::none(),
      arg("deadline").none() = nb::none(),
      nb::sig("def initialize(device: Optional[int] = None, bootstrap: Optional[Bootstrap] = None, "
              "mpi: Any = None, engines: Optional[Iterable[str]] = None, timeout: Timeout = None, "
              "deadline: Timeout = None) -> Context"),
      docstring_of("Context.initialize"));
  cls.def_static(
      "current",
      [] { return given_up_without_gil(without_gil([] { return Context::current(); })); },
      nb::sig("def current() -> Optional[Context]"),
      "The context that was made and not finalized, or None.");
  cls.def_static(
      "finalize",
      [] { without_gil([] { Context::finalize(); }); },
      nb::sig("def finalize() -> None"),
      "Wait for the other processes and end the context. Does nothing if there is none.");
  cls.def_prop_ro(
      "communicator",
      [](Context& c) { return CommunicatorObject{Communicator(c.communicator().impl())}; },
      nb::sig("def communicator(self) -> Communicator"),
      "All processes of the context. Usable until its end.");
  cls.def_prop_ro(
      "rank",
      [](Context& c) { return c.rank(); },
      nb::sig("def rank(self) -> int"),
      "This process's number, from 0.");
  cls.def_prop_ro(
      "size",
      [](Context& c) { return c.size(); },
      nb::sig("def size(self) -> int"),
      "Number of processes.");
  cls.def_prop_ro(
      "device",
      [](Context& c) { return c.device() ? nb::object(nb::int_(*c.device())) : nb::none(); },
      nb::sig("def device(self) -> Optional[int]"),
      "This process's GPU, or None.");
  cls.def_prop_ro(
      "engines",
      [](Context& c) {
        nb::list names;
        for (const std::string& name : c.engines()) names.append(nb::str(name.c_str()));
        return nb::tuple(names);
      },
      nb::sig("def engines(self) -> tuple[str, ...]"),
      "Names of the engines in use, best first.");
}

void require_order(const Array& array, bool fortran, const char* name) {
  if (array.order == MemoryOrder::kAny || (array.order == MemoryOrder::kFortran) == fortran) return;
  throw InvalidArgument(std::string(name) + " is not contiguous in " + (fortran ? "Fortran" : "C") +
                        " order");
}

}  // namespace

void bind_distribution(nb::module_& module) {
  using nb::arg;
  bind_context(module);
  nb::class_<Redistribution> cls(
      module, "_Redistribution", "Use it through `hocket.distribution`.");
  cls.def(
      "__init__",
      [](Redistribution* self,
         CommunicatorObject& owner,
         const Extents& from_lower,
         const Extents& from_upper,
         const Extents& to_lower,
         const Extents& to_upper,
         bool fortran,
         nb::handle deadline) {
        const RedistributeOptions options = read_arguments(owner, [&] {
          return RedistributeOptions{.order = fortran ? MemoryOrder::kFortran : MemoryOrder::kC,
                                     .deadline = limit_argument(deadline, "deadline")};
        });
        without_gil([&] {
          new (self) Redistribution(
              owner.comm, Box(from_lower, from_upper), Box(to_lower, to_upper), options);
        });
      },
      nb::keep_alive<1, 2>(),
      arg("comm"),
      arg("from_lower"),
      arg("from_upper"),
      arg("to_lower"),
      arg("to_upper"),
      arg("fortran"),
      arg("deadline").none() = nb::none(),
      nb::sig("def __init__(self, comm: Communicator, from_lower: Sequence[int], "
              "from_upper: Sequence[int], to_lower: Sequence[int], to_upper: Sequence[int], "
              "fortran: bool, deadline: Timeout = None) -> None"));
  cls.def(
      "move",
      [](Redistribution& self,
         CommunicatorObject& owner,
         nb::handle x,
         nb::handle out,
         bool fortran) {
        Array in, result;
        read_arguments(owner, [&] {
          in = read_array(x, "x");
          result = writable_array(out, "out");
          require_order(in, fortran, "x");
          require_order(result, fortran, "out");
        });
        without_gil([&] { self(in.input(), result.output()); });
      },
      arg("comm"),
      arg("x"),
      arg("out"),
      arg("fortran"),
      nb::sig("def move(self, comm: Communicator, x: Array, out: Array, fortran: bool) -> None"));
  cls.def_prop_ro(
      "whole",
      [](const Redistribution& self) {
        return nb::make_tuple(nb::cast(self.whole().lower()), nb::cast(self.whole().upper()));
      },
      nb::sig("def whole(self) -> tuple[list[int], list[int]]"));
}

}  // namespace hocket::python
