// argmin and argmax.
#include "hocket/extremes.h"

#include "hocket/error.h"
#include "verbs.h"

namespace hocket::python {
namespace {

struct ExtremesPlan {
  Array in, index, values, ranks, indices;
  nb::object value = {}, rank = {}, place = {};
  ExtremeOptions options = {};

  Extremes out() const {
    return {.values = values.output(),
            .ranks = ranks.output(),
            .indices = place.is_valid() ? indices.output() : ArrayView()};
  }
  nb::object result() const {
    if (!place.is_valid()) return nb::make_tuple(value, rank);
    return nb::make_tuple(value, rank, place);
  }
};

ExtremesPlan read(CommunicatorObject& self,
                  nb::handle x,
                  nb::handle index,
                  nb::handle deadline,
                  nb::handle stream) {
  return read_arguments(self, [&] {
    ExtremesPlan plan{.in = read_array(x, "x")};
    plan.options.deadline = limit_argument(deadline, "deadline");
    plan.rank = new_int32_beside(plan.in);
    plan.ranks = writable_array(plan.rank, "rank");
    plan.value = new_array_like(plan.in, shape_of(plan.in));
    plan.values = writable_array(plan.value, "value");
    if (!index.is_none()) {
      plan.index = read_array(index, "index");
      if (plan.index.is_on_gpu() != plan.in.is_on_gpu()) {
        throw InvalidArgument("x and index lie in different kinds of memory");
      }
      require_same_order(plan.in, "x", plan.index, "index");
      plan.place = new_array_like(plan.index, shape_of(plan.in));
      plan.indices = writable_array(plan.place, "index");
      plan.options.index = plan.index.input();
    }
    plan.options.stream = stream_of(stream, plan.in, plan.index);
    return plan;
  });
}

// The arrays must stay as long as the call needs them.
void retain_all(CommunicatorObject& self, ExtremesPlan& plan) {
  if (!plan.in.is_on_gpu()) return;
  retain(
      self, {&plan.in, &plan.index, &plan.values, &plan.ranks, &plan.indices}, plan.options.stream);
}
template <typename Handle>
void keep_all(Handle& handle, ExtremesPlan& plan) {
  keep(handle, plan.in, plan.index, plan.values, plan.ranks, plan.indices);
  handle.result = plan.result();
}

template <typename Result, typename In = BorrowedView>
using Find = Result (*)(Communicator&, In, const Extremes&, const ExtremeOptions&);

template <Find<void, ConstArrayView> kFind, Find<Work> kStart, Find<Prepared> kPrepare>
void define_extreme(CommunicatorClass& cls, const std::string& name, const char* help) {
  using nb::arg;
  const auto add =
      [&](const std::string& method, const char* result, const std::string& text, auto call) {
        const std::string signature = "def " + method +
                                      "(self, x: Array, index: Optional[Array] = None, deadline: "
                                      "Timeout = None, stream: Stream = None) -> " +
                                      result;
        cls.def(method.c_str(),
                call,
                arg("x").none(),
                arg("index") = nb::none(),
                arg("deadline") = nb::none(),
                arg("stream") = nb::none(),
                nb::sig(signature.c_str()),
                text.c_str());
      };
  add(name,
      "tuple[Any, ...]",
      help,
      [](CommunicatorObject& self,
         nb::handle x,
         nb::handle index,
         nb::handle deadline,
         nb::handle stream) {
        ExtremesPlan plan = read(self, x, index, deadline, stream);
        without_gil([&] { kFind(self.comm, plan.in.input(), plan.out(), plan.options); });
        const auto on = plan.options.stream;
        plan.value = finished(std::move(plan.value), on);
        if (plan.place.is_valid()) plan.place = finished(std::move(plan.place), on);
        retain_all(self, plan);
        return plan.result();
      });
  add(name + "_async",
      "Work",
      "Start `" + name + "`; the arrays must be left alone until the Work is done.",
      [name](CommunicatorObject& self,
             nb::handle x,
             nb::handle index,
             nb::handle deadline,
             nb::handle stream) {
        ExtremesPlan plan = read(self, x, index, deadline, stream);
        WorkHandle handle{.work = without_gil([&] {
                            return kStart(self.comm, plan.in.input(), plan.out(), plan.options);
                          })};
        handle.call = name;
        // Memory that was only lent is kept as long as the stream needs it, even if the Work is
        // dropped.
        if (plan.in.lease || plan.index.lease) retain_all(self, plan);
        keep_all(handle, plan);
        return handle;
      });
  add("prepare_" + name,
      "Prepared",
      "Check `" + name + "` once, to call it again and again on the same arrays.",
      [name](CommunicatorObject& self,
             nb::handle x,
             nb::handle index,
             nb::handle deadline,
             nb::handle stream) {
        ExtremesPlan plan = read(self, x, index, deadline, stream);
        read_arguments(self, [&] { require_reusable(plan.value); });
        PreparedHandle handle{
            .comm = nb::find(self),
            .call = without_gil(
                [&] { return kPrepare(self.comm, plan.in.input(), plan.out(), plan.options); })};
        handle.name = name;
        keep_all(handle, plan);
        if (!stream.is_none()) handle.objects.push_back(nb::borrow(stream));
        return handle;
      });
}

}  // namespace

void bind_extremes(CommunicatorClass& cls) {
  define_extreme<&argmin, &argmin_async, &prepare_argmin>(
      cls, "argmin", R"(The least of each element over all ranks, and who has it.

Where several ranks have it, it is the lowest of them; 0.0 and -0.0 are equal here. A NaN of any rank
is the extreme: the value is NaN, and the rank the lowest that brings one.

Parameters
----------
x : array
    This rank's elements. All ranks bring as many, of one dtype that has an order: any but complex
    numbers. Those of a GPU the host compares, on a copy, in the order of the stream.
index : array of integers, optional
    What this rank knows each element by, such as its place in a larger array. All ranks bring one,
    or none does.
deadline : float or datetime.timedelta, optional
    Seconds this call may take; by default the communicator's `deadline`.
stream : optional
    Of arrays on a GPU: as for `all_reduce`.

Returns
-------
value : array
    The least of all ranks' elements, on every rank, of the shape and dtype of `x`.
rank : array of int32
    The rank that has it: NumPy's, for arrays on a GPU one of theirs.
index : array
    That rank's `index` of it. Where `index` was given.
)");
  define_extreme<&argmax, &argmax_async, &prepare_argmax>(
      cls, "argmax", "The greatest of each element over all ranks, and who has it; as `argmin`.");
}

}  // namespace hocket::python
