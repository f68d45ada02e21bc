// argmin and argmax.
#include "hocket/extremes.h"

#include "docstrings.h"
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

// Keeps the arrays as long as the call needs them.
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
        // Memory that was only lent stays exported until the stream has passed the call, even if
        // the Work is dropped.
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
        read_arguments(self, [&] {
          require_reusable(plan.value);
          if (plan.place.is_valid()) require_reusable(plan.place, "index");
        });
        PreparedHandle handle{
            .comm = nb::find(self),
            .call = without_gil(
                [&] { return kPrepare(self.comm, plan.in.input(), plan.out(), plan.options); })};
        handle.name = name;
        keep_all(handle, plan);
        handle.stream = nb::borrow(stream);
        return handle;
      });
}

}  // namespace

void bind_extremes(CommunicatorClass& cls) {
  define_extreme<&argmin, &argmin_async, &prepare_argmin>(
      cls, "argmin", docstring_of("Communicator.argmin"));
  define_extreme<&argmax, &argmax_async, &prepare_argmax>(
      cls,
      "argmax",
      "Find the greatest value of each element over all ranks, and its rank; as `argmin`.");
}

}  // namespace hocket::python
