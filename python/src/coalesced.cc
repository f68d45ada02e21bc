// Collective calls on many arrays at once.
#include <string>

#include "docstrings.h"
#include "hocket/error.h"
#include "immutable.h"
#include "verbs.h"

namespace hocket::python {
namespace {

using Reader = Array (*)(nb::handle, const char*);

std::vector<Array> read_all(nb::handle arrays, const char* name, Reader read) {
  // Refuses generators: the call returns its argument, and a generator would be exhausted by then.
  if (PySequence_Check(arrays.ptr()) == 0) {
    throw InvalidArgument(std::string(name) + " is " + type_in_words(arrays) +
                          "; give a list of arrays");
  }
  std::vector<Array> result;
  for (nb::handle array : arrays) {
    result.push_back(read(array, element_name(name, result.size()).c_str()));
  }
  return result;
}

std::vector<ArrayView> outputs(const std::vector<Array>& arrays) {
  std::vector<ArrayView> views;
  for (const Array& array : arrays) views.push_back(array.output());
  return views;
}

std::vector<ConstArrayView> inputs(const std::vector<Array>& arrays) {
  std::vector<ConstArrayView> views;
  for (const Array& array : arrays) views.push_back(array.input());
  return views;
}

std::optional<StreamRef> stream_of_all(nb::handle asked, const std::vector<Array>& arrays) {
  std::optional<StreamRef> stream;
  if (!asked.is_none()) {
    stream = stream_argument(asked);
  } else if (!arrays.empty()) {
    stream = arrays.front().stream;
  }
  for (const Array& array : arrays) follow(array, stream);
  return stream;
}

void require_c_order(const std::vector<Array>& arrays, const char* name) {
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    python::require_c_order(arrays[i], element_name(name, i).c_str());
  }
}

void retain_on_gpu(CommunicatorObject& self,
                   std::vector<Array>& arrays,
                   std::optional<StreamRef> stream) {
  if (!arrays.empty() && arrays.front().is_on_gpu()) retain(self, arrays, stream);
}

nb::object all_reduce(CommunicatorObject& self,
                      nb::handle arrays,
                      nb::handle op,
                      nb::handle deadline,
                      nb::handle stream) {
  ReduceOptions options;
  std::vector<Array> all = read_arguments(self, [&] {
    std::vector<Array> read = read_all(arrays, "arrays", writable_array);
    options = {op_argument(op), limit_argument(deadline, "deadline"), stream_of_all(stream, read)};
    return read;
  });
  const auto views = read_arguments(self, [&] { return outputs(all); });
  without_gil([&] { self.comm.all_reduce_coalesced(views, options); });
  retain_on_gpu(self, all, options.stream);
  return nb::borrow(arrays);
}

nb::object broadcast(CommunicatorObject& self,
                     nb::handle arrays,
                     nb::handle root,
                     nb::handle deadline,
                     nb::handle stream) {
  RootOptions options;
  std::vector<Array> all = read_arguments(self, [&] {
    options = root_options(root, deadline);
    const Reader reader = self.comm.rank() == options.root ? read_array : writable_array;
    std::vector<Array> read = read_all(arrays, "arrays", reader);
    options.stream = stream_of_all(stream, read);
    return read;
  });
  const auto views = read_arguments(self, [&] { return outputs(all); });
  without_gil([&] { self.comm.broadcast_coalesced(views, options); });
  retain_on_gpu(self, all, options.stream);
  return nb::borrow(arrays);
}

// Returns new arrays, each with room for the array of every rank, stacked along a new first axis.
nb::object stacked_like(const std::vector<Array>& in, int size) {
  nb::list fresh;
  for (const Array& array : in) {
    Shape shape = shape_of(array);
    shape.insert(shape.begin(), size);
    fresh.append(new_array_like(array, shape));
  }
  return fresh;
}

nb::object finished_list(nb::handle results, std::optional<StreamRef> stream) {
  nb::list all;
  for (nb::handle one : results) all.append(finished(nb::borrow(one), stream));
  return all;
}

// The inputs and outputs of a call that splits or joins arrays.
struct Sides {
  std::vector<Array> in;
  std::vector<Array> out;
};

struct Views {
  std::vector<ConstArrayView> in;
  std::vector<ArrayView> out;
};

Views views_of(const Sides& sides) { return {inputs(sides.in), outputs(sides.out)}; }

Sides read_sides(std::vector<Array> in, nb::handle out) {
  Sides sides{std::move(in), read_all(out, "out", writable_array)};
  require_c_order(sides.out, "out");
  return sides;
}

std::optional<StreamRef> stream_of_sides(nb::handle asked, const Sides& sides) {
  const auto stream = stream_of_all(asked, sides.out);
  for (const Array& array : sides.in) follow(array, stream);
  return stream;
}

std::vector<Array> read_in_c_order(nb::handle arrays) {
  std::vector<Array> in = read_all(arrays, "arrays", read_array);
  require_c_order(in, "arrays");
  return in;
}

nb::object all_gather(CommunicatorObject& self,
                      nb::handle arrays,
                      nb::object out,
                      nb::handle deadline,
                      nb::handle stream) {
  CallOptions options;
  const bool is_new = out.is_none();
  Sides sides = read_arguments(self, [&] {
    std::vector<Array> in = read_in_c_order(arrays);
    if (is_new) out = stacked_like(in, self.comm.size());
    Sides read = read_sides(std::move(in), out);
    options = {limit_argument(deadline, "deadline"), stream_of_sides(stream, read)};
    return read;
  });
  const Views views = read_arguments(self, [&] { return views_of(sides); });
  without_gil([&] { self.comm.all_gather_coalesced(views.in, views.out, options); });
  retain_on_gpu(self, sides.in, options.stream);
  retain_on_gpu(self, sides.out, options.stream);
  if (is_new) return finished_list(out, options.stream);
  return out;
}

nb::object reduce_scatter(CommunicatorObject& self,
                          nb::handle arrays,
                          nb::handle out,
                          nb::handle op,
                          nb::handle deadline,
                          nb::handle stream) {
  ReduceOptions options;
  Sides sides = read_arguments(self, [&] {
    Sides read = read_sides(read_in_c_order(arrays), out);
    options = {
        op_argument(op), limit_argument(deadline, "deadline"), stream_of_sides(stream, read)};
    return read;
  });
  const Views views = read_arguments(self, [&] { return views_of(sides); });
  without_gil([&] { self.comm.reduce_scatter_coalesced(views.in, views.out, options); });
  retain_on_gpu(self, sides.in, options.stream);
  retain_on_gpu(self, sides.out, options.stream);
  return nb::borrow(out);
}

}  // namespace

void bind_coalesced(CommunicatorClass& cls) {
  using nb::arg;
  cls.def("all_reduce_coalesced",
          &all_reduce,
          arg("arrays").none(),
          arg("op").none() = "sum",
          arg("deadline") = nb::none(),
          arg("stream") = nb::none(),
          nb::sig("def all_reduce_coalesced(self, arrays: Sequence[Array], op: Op = 'sum', "
                  "deadline: Timeout = None, stream: Stream = None) -> Sequence[Array]"),
          docstring_of("Communicator.all_reduce_coalesced"));
  cls.def("broadcast_coalesced",
          &broadcast,
          arg("arrays").none(),
          arg("root").none() = 0,
          arg("deadline") = nb::none(),
          arg("stream") = nb::none(),
          nb::sig("def broadcast_coalesced(self, arrays: Sequence[Array], root: int = 0, "
                  "deadline: Timeout = None, stream: Stream = None) -> Sequence[Array]"),
          "Like `broadcast` of each array, in one call. Returns `arrays`.");
  cls.def(
      "all_gather_coalesced",
      &all_gather,
      arg("arrays").none(),
      arg("out") = nb::none(),
      arg("deadline") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig(
          "def all_gather_coalesced(self, arrays: Sequence[Array], "
          "out: Optional[Sequence[Array]] = None, deadline: Timeout = None, stream: Stream = None) "
          "-> Sequence[Array]"),
      "Like `all_gather` of arrays[i] into out[i], in one call. Returns `out`, or new arrays.");
  cls.def(
      "reduce_scatter_coalesced",
      &reduce_scatter,
      arg("arrays").none(),
      arg("out").none(),
      arg("op").none() = "sum",
      arg("deadline") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig(
          "def reduce_scatter_coalesced(self, arrays: Sequence[Array], "
          "out: Sequence[Array], op: Op = 'sum', deadline: Timeout = None, stream: Stream = None) "
          "-> Sequence[Array]"),
      "Like `reduce_scatter` of arrays[i] into out[i], in one call. Returns `out`.");
}

}  // namespace hocket::python
