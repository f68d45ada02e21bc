// The three forms of one collective call (blocking, async, prepared), written once for all
// collectives.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "device.h"
#include "hocket/error.h"
#include "immutable.h"

namespace hocket::python {

using Counts = std::vector<std::size_t>;

// A call whose arguments have been read.
template <typename Options>
struct Plan {
  Array in;
  Array out;
  bool in_place = false;  // `out` is the input, too
  Counts in_counts;       // lengths of the parts in v-forms, in elements
  Counts out_counts;
  Counts in_places;  // where the parts begin, in elements; empty if the parts are adjacent
  Counts out_places;
  Options options;
  nb::object result = nb::none();  // the object that Python's caller gets

  ConstArrayView input() const noexcept { return in_place ? out.input() : in.input(); }
  ArrayView output() const noexcept { return out.output(); }
  Parts in_parts() const noexcept { return {in_counts, in_places}; }
  Parts out_parts() const noexcept { return {out_counts, out_places}; }
};

// Prepares an in-place call. `out` is the caller's array. A writable array stays as it is. If the
// array is immutable, it becomes `in`, and `out` is a new array, which is the result.
template <typename Options>
void write_in_place(Plan<Options>& plan, nb::handle x) {
  if (plan.out.writable) return;
  if (!is_immutable(x) && !is_number(x)) refuse_unwritable(x, "x");
  plan.in = std::move(plan.out);
  plan.result = is_number(x) ? new_number(x) : new_array_like(plan.in, shape_of(plan.in));
  plan.out = writable_array(plan.result, "out");
  plan.in_place = false;
}

// Reads the array that a call writes to. In a call with a root, a number in its place is probably
// the root; then the error says how to pass a root.
template <typename Options>
Array read_out(nb::handle out) {
  if (is_number(out)) {
    constexpr bool has_root = requires(Options options) { options.root; };
    throw InvalidArgument(
        "out is " + type_in_words(out) +
        (has_root ? "; where the root is meant, give root=" + std::string(nb::str(out).c_str())
                  : ", a number, which cannot be written to; give an array, or "
                    "leave it away"));
  }
  return writable_array(out, "out");
}

// Returns advice for an array whose first axis is no multiple of the number of ranks.
inline std::string mend_of_axis(const Array& x, int size) {
  if (is_number(x.object) || shape_of(x).empty()) {
    return "Give an array of " + std::to_string(size) + " entries";
  }
  if (x.count % static_cast<std::size_t>(size) == 0) return "Reshape it, or give out=";
  return "Its " + std::to_string(x.count) + " elements do not divide among " +
         std::to_string(size) + " ranks; use the _v form";
}

// Reads a collective call's arguments by `read`. If `read` throws, the other ranks are told.
template <typename Read>
auto read_arguments(CommunicatorObject& self, Read&& read, Refuse refuse = &refuse_next_call) {
  try {
    return read();
  } catch (...) {
    announce_refusal(self, refuse);
    throw;
  }
}

inline RootOptions root_options(nb::handle root, nb::handle deadline) {
  return {integer_argument(root, "root"), limit_argument(deadline, "deadline")};
}

// Refuses a scatter without `out` on a rank that is not the root.
[[noreturn]] inline void refuse_without_out(const char* name, int root, int size) {
  if (root < 0 || root >= size) {
    throw InvalidArgument(std::string(name) + ": root is " + std::to_string(root) +
                          ", expected a rank from 0 to " + std::to_string(size - 1));
  }
  throw InvalidArgument(std::string(name) +
                        " wants out= at the ranks other than the root: how large their part is, "
                        "and of which dtype, they cannot know");
}

// The C++ functions of one collective, one for each form.
template <typename Options>
struct Verbs {
  void (*block)(Communicator&, const Plan<Options>&);
  Work (*start)(Communicator&, const Plan<Options>&);
  Prepared (*prepare)(Communicator&, const Plan<Options>&) = nullptr;  // null: no prepared form
};

// The functions of a collective that takes one input and one output array.
template <typename Options,
          void (Communicator::*kBlock)(ConstArrayView, ArrayView, const Options&),
          Work (Communicator::*kStart)(BorrowedView, ArrayView, const Options&),
          Prepared (Communicator::*kPrepare)(BorrowedView, ArrayView, const Options&)>
constexpr Verbs<Options> regular_verbs() {
  using P = Plan<Options>;
  return {
      [](Communicator& c, const P& p) { (c.*kBlock)(p.input(), p.output(), p.options); },
      [](Communicator& c, const P& p) { return (c.*kStart)(p.input(), p.output(), p.options); },
      [](Communicator& c, const P& p) { return (c.*kPrepare)(p.input(), p.output(), p.options); }};
}

// The signature and help of a collective for `help()` and type checkers.
struct Text {
  std::string name;
  std::string arguments;  // without deadline and stream, which every call takes
  std::string result;
  const char* help;
};

// Defines the methods `name`, `name_async` and, if the collective has this form, `prepare_name`.
// `read` reads the arguments, the deadline last, and tells the other ranks if it refuses them.
// `arguments` are nanobind's descriptions of the arguments before the deadline.
template <typename Options, typename... Given, typename... Arguments>
void define(CommunicatorClass& cls,
            const Verbs<Options>& verbs,
            const Text& text,
            Plan<Options> (*read)(CommunicatorObject&, Given...),
            const Arguments&... arguments) {
  const auto plan = [read](CommunicatorObject& self, nb::handle stream, Given... given) {
    Plan<Options> read_plan = read(self, given...);
    read_arguments(self, [&] { choose_stream(read_plan, stream); });
    return read_plan;
  };
  // Only the blocking form returns an array of the argument's type. So the signatures of the other
  // forms say Array instead of the type variable ArrayT.
  std::string started = text.arguments;
  for (std::size_t at; (at = started.find("ArrayT")) != std::string::npos;)
    started.erase(at + 5, 1);
  const auto add =
      [&](const std::string& name, const std::string& result, const std::string& help, auto call) {
        const std::string signature =
            "def " + name + "(self, " + (name == text.name ? text.arguments : started) +
            ", deadline: Timeout = None, stream: Stream = None) -> " + result;
        cls.def(name.c_str(),
                call,
                arguments...,
                nb::arg("deadline") = nb::none(),
                nb::arg("stream") = nb::none(),
                nb::sig(signature.c_str()),
                help.c_str());
      };

  add(text.name,
      text.result,
      text.help,
      [plan, block = verbs.block](CommunicatorObject& self, Given... given, nb::handle stream) {
        auto call = plan(self, stream, given...);
        without_gil([&] { block(self.comm, call); });
        retain(self, call);
        return finished(std::move(call.result), call.options.stream);
      });
  add(text.name + "_async",
      "Work",
      "Start `" + text.name + "`; the arrays must be left alone until the Work is done.",
      [plan, start = verbs.start, name = text.name](
          CommunicatorObject& self, Given... given, nb::handle stream) {
        auto call = plan(self, stream, given...);
        WorkHandle handle{.work = without_gil([&] { return start(self.comm, call); })};
        retain_lent(self, call);
        if constexpr (requires { call.options.own; }) handle.own = call.options.own;
        keep(handle, call.in, call.out);
        handle.result = std::move(call.result);
        handle.call = name;
        return handle;
      });
  if (verbs.prepare == nullptr) return;
  add("prepare_" + text.name,
      "Prepared",
      "Check `" + text.name + "` once, to call it again and again on the same arrays.",
      [plan, prepare = verbs.prepare, name = text.name](
          CommunicatorObject& self, Given... given, nb::handle stream) {
        auto call = plan(self, stream, given...);
        read_arguments(self, [&] { require_reusable(call.result); });
        PreparedHandle handle{.comm = nb::find(self),
                              .call = without_gil([&] { return prepare(self.comm, call); })};
        keep(handle, call.in, call.out);
        if constexpr (requires { call.options.own; }) handle.own = call.options.own;
        handle.stream = nb::borrow(stream);
        handle.result = std::move(call.result);
        handle.name = name;
        return handle;
      });
}

}  // namespace hocket::python
