// argmin and argmax.
#include "hocket/extremes.h"

#include "hocket/error.h"
#include "verbs.h"

namespace hocket::python {
namespace {

using Find = void (*)(Communicator&, ConstArrayView, const Extremes&, const ExtremeOptions&);

// A new NumPy array whose elements lie in the order of those of `like`.
nb::object new_beside(const Array& like, nb::handle dtype) {
  nb::list extents;
  for (const std::ptrdiff_t extent : shape_of(like)) extents.append(extent);
  const char* const order = like.order == MemoryOrder::kFortran ? "F" : "C";
  return nb::module_::import_("numpy").attr("empty")(nb::tuple(extents), dtype, order);
}

struct ExtremesPlan {
  Array in, index, values, ranks, indices;
  nb::object value = {}, rank = {}, place = {};
  ExtremeOptions options = {};
};

void require_on_host(const Array& array, const char* name) {
  if (!array.is_on_gpu()) return;
  throw InvalidArgument(std::string(name) +
                        " lies in a GPU's memory, of which argmin and argmax are not to be had; "
                        "pass a copy in the host's, cupy.asnumpy(" +
                        name + ")");
}

ExtremesPlan read(nb::handle x, nb::handle index, nb::handle deadline) {
  ExtremesPlan plan{.in = read_array(x, "x")};
  plan.options.deadline = duration_argument(deadline, "deadline");
  require_on_host(plan.in, "x");
  plan.value = new_array_like(plan.in, shape_of(plan.in));
  plan.values = writable_array(plan.value, "value");
  plan.rank = new_beside(plan.in, nb::str("int32"));
  plan.ranks = writable_array(plan.rank, "rank");
  if (index.is_none()) return plan;
  plan.index = read_array(index, "index");
  require_on_host(plan.index, "index");
  require_same_order(plan.in, "x", plan.index, "index");
  plan.place = new_array_like(plan.index, shape_of(plan.in));
  plan.indices = writable_array(plan.place, "index");
  return plan;
}

nb::object find(Seat& seat, Find function, nb::handle x, nb::handle index, nb::handle deadline) {
  ExtremesPlan plan = read_arguments(seat, [&] { return read(x, index, deadline); });
  Extremes out{.values = plan.values.output(), .ranks = plan.ranks.output()};
  if (plan.place.is_valid()) {
    out.indices = plan.indices.output();
    plan.options.index = plan.index.input();
  }
  without_gil([&] { function(seat.comm, plan.in.input(), out, plan.options); });
  const nb::object value = finished(std::move(plan.value), {});
  if (!plan.place.is_valid()) return nb::make_tuple(value, plan.rank);
  return nb::make_tuple(value, plan.rank, finished(std::move(plan.place), {}));
}

template <Find kFind>
void define_extreme(CommunicatorClass& cls, const char* name, const char* help) {
  using nb::arg;
  const std::string signature =
      std::string("def ") + name +
      "(self, x: Array, index: Optional[Array] = None, deadline: Timeout = None) -> "
      "tuple[Any, ...]";
  cls.def(
      name,
      [](Seat& seat, nb::handle x, nb::handle index, nb::handle deadline) {
        return find(seat, kFind, x, index, deadline);
      },
      arg("x").none(),
      arg("index") = nb::none(),
      arg("deadline") = nb::none(),
      nb::sig(signature.c_str()),
      help);
}

}  // namespace

void bind_extremes(CommunicatorClass& cls) {
  define_extreme<&argmin>(
      cls, "argmin", R"(The least of each element over all ranks, and who has it.

Where several ranks have it, it is the lowest of them; 0.0 and -0.0 are equal here. A NaN of any rank
is the extreme: the value is NaN, and the rank the lowest that brings one.

Parameters
----------
x : array
    This rank's elements, in the host's memory. All ranks bring as many, of one dtype that has an
    order: any but complex numbers.
index : array of integers, optional
    What this rank knows each element by, such as its place in a larger array. All ranks bring one,
    or none does.
deadline : float or datetime.timedelta, optional
    Seconds this call may take; by default the communicator's `deadline`.

Returns
-------
value : array
    The least of all ranks' elements, on every rank, of the shape and dtype of `x`.
rank : numpy.ndarray of int32
    The rank that has it.
index : array
    That rank's `index` of it. Where `index` was given.
)");
  define_extreme<&argmax>(
      cls, "argmax", "The greatest of each element over all ranks, and who has it; as `argmin`.");
}

}  // namespace hocket::python
