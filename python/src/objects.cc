// Collective calls and messages that carry Python objects.
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "arguments.h"
#include "docstrings.h"
#include "hocket/error.h"
#include "hocket/object.h"
#include "object_values.h"
#include "verbs.h"

namespace hocket::python {
namespace {

// Reads the argument `allow_pickle`. None stands for the communicator's setting.
Pickle pickle_argument(const CommunicatorObject& self, nb::handle allow) {
  const bool is_allowed =
      allow.is_none() ? self.allows_pickle : flag_argument(allow, "allow_pickle");
  return is_allowed ? Pickle::kAllow : Pickle::kRefuse;
}

// Converts the C++ result of a call to Python's. A value.
struct Conversion {
  Pickle pickle = Pickle::kRefuse;
  bool is_taken = true;  // false: this rank gets None instead of the objects
  nb::object own = {};   // the result, if this rank knows it before the call

  nb::object operator()(const Object& object) const {
    return own.is_valid() ? own : from_object(object, pickle);
  }
  nb::object operator()(const std::vector<Object>& all) const {
    return is_taken ? nb::object(from_items(all, pickle)) : nb::none();
  }
  nb::object operator()(const ReceivedObject& received) const {
    return nb::module_::import_("hocket._calls.types")
        .attr("ReceivedObject")(
            from_object(received.object, pickle), received.from.source, received.from.tag);
  }
};

// A call whose arguments have been read. `sent` holds this rank's objects; `peer` is the other rank
// of a message.
template <typename Sent, typename Options>
struct ObjectCall {
  Sent sent = {};
  Options options = {};
  Conversion convert = {};
  int peer = 0;
};
using RootCall = ObjectCall<Object, RootOptions>;
using AllCall = ObjectCall<Object, CallOptions>;
using ScatterCall = ObjectCall<std::vector<Object>, RootOptions>;
using MessageCall = ObjectCall<Object, MessageOptions>;

RootCall read_broadcast(CommunicatorObject& self,
                        nb::handle object,
                        nb::handle root,
                        nb::handle allow_pickle,
                        nb::handle deadline) {
  return read_arguments(self, [&] {
    RootCall call{.options = root_options(root, deadline)};
    Reading reading{.pickle = call.convert.pickle = pickle_argument(self, allow_pickle)};
    if (self.comm.rank() != call.options.root) return call;
    call.sent = read_object(object, reading);
    // The root returns an object like those that the other ranks get. If no part changes its type
    // on the way, the original is equal to them and is returned.
    if (!reading.changes) call.convert.own = nb::borrow(object);
    return call;
  });
}

RootCall read_gather(CommunicatorObject& self,
                     nb::handle object,
                     nb::handle root,
                     nb::handle allow_pickle,
                     nb::handle deadline) {
  return read_arguments(self, [&] {
    RootCall call{.options = root_options(root, deadline)};
    Reading reading{.pickle = call.convert.pickle = pickle_argument(self, allow_pickle)};
    call.sent = read_object(object, reading);
    call.convert.is_taken = self.comm.rank() == call.options.root;
    return call;
  });
}

AllCall read_all_gather(CommunicatorObject& self,
                        nb::handle object,
                        nb::handle allow_pickle,
                        nb::handle deadline) {
  return read_arguments(self, [&] {
    AllCall call{.options = {limit_argument(deadline, "deadline")}};
    Reading reading{.pickle = call.convert.pickle = pickle_argument(self, allow_pickle)};
    call.sent = read_object(object, reading);
    return call;
  });
}

ScatterCall read_scatter(CommunicatorObject& self,
                         nb::handle objects,
                         nb::handle root,
                         nb::handle allow_pickle,
                         nb::handle deadline) {
  return read_arguments(self, [&] {
    ScatterCall call{.options = root_options(root, deadline)};
    Reading reading{.pickle = call.convert.pickle = pickle_argument(self, allow_pickle)};
    if (self.comm.rank() != call.options.root) return call;
    require_iterable(objects, "objects", "a list of objects, one for each rank");
    for (nb::handle object : objects) call.sent.push_back(read_object(object, reading));
    return call;
  });
}

MessageOptions message_options(nb::handle tag, nb::handle deadline) {
  return {integer_argument(tag, "tag"), limit_argument(deadline, "deadline")};
}

MessageCall read_send(CommunicatorObject& self,
                      nb::handle object,
                      nb::handle destination,
                      nb::handle tag,
                      nb::handle allow_pickle,
                      nb::handle deadline) {
  Reading reading{.pickle = pickle_argument(self, allow_pickle)};
  MessageCall call{.sent = read_object(object, reading)};
  call.peer = integer_argument(destination, "destination");
  call.options = message_options(tag, deadline);
  return call;
}

MessageCall read_recv(CommunicatorObject& self,
                      nb::handle source,
                      nb::handle tag,
                      nb::handle allow_pickle,
                      nb::handle deadline) {
  MessageCall call{.convert = {.pickle = pickle_argument(self, allow_pickle)}};
  call.peer = integer_argument(source, "source");
  call.options = message_options(tag, deadline);
  return call;
}

// The signature and help of a call, for `help()` and type checkers.
struct ObjectText {
  std::string name;
  std::string arguments;  // without allow_pickle and deadline, which every call takes
  std::string result;
  const char* help;
  const char* help_of_start;
};

template <typename Result>
WorkHandle handle_of(ObjectWork<Result> started, const Conversion& convert) {
  WorkHandle handle;
  handle.work = std::move(started.work);
  handle.make = [result = std::move(started.result), convert]() -> nb::object {
    return convert(without_gil(result));
  };
  return handle;
}
WorkHandle handle_of(Work started, const Conversion&) {
  WorkHandle handle{.result = nb::none()};
  handle.work = std::move(started);
  return handle;
}

// Defines the methods `name` and `name_async`. `arguments` are nanobind's descriptions of the
// arguments before allow_pickle.
template <typename Call, typename... Given, typename Block, typename Start, typename... Arguments>
void define(CommunicatorClass& cls,
            const ObjectText& text,
            Call (*read)(CommunicatorObject&, Given...),
            Block block,
            Start start,
            const Arguments&... arguments) {
  const auto add =
      [&](const std::string& name, const std::string& result, const char* help, auto call) {
        const std::string signature =
            "def " + name + "(self, " + text.arguments +
            ", allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> " + result;
        cls.def(name.c_str(),
                call,
                arguments...,
                nb::arg("allow_pickle") = nb::none(),
                nb::arg("deadline") = nb::none(),
                nb::sig(signature.c_str()),
                help);
      };
  add(text.name,
      text.result,
      text.help,
      [read, block](CommunicatorObject& self, Given... given) -> nb::object {
        const Call call = read(self, given...);
        const auto run = [&] { return block(self.comm, call); };
        if constexpr (std::is_void_v<decltype(run())>) {
          without_gil(run);
          return nb::none();
        } else {
          return call.convert(without_gil(run));
        }
      });
  add(text.name + "_async",
      "Work",
      text.help_of_start,
      [read, start, name = text.name](CommunicatorObject& self, Given... given) {
        const Call call = read(self, given...);
        WorkHandle handle =
            handle_of(without_gil([&] { return start(self.comm, call); }), call.convert);
        handle.call = name;
        return handle;
      });
}

}  // namespace

void bind_objects(CommunicatorClass& cls) {
  using nb::arg;
  define(
      cls,
      {.name = "broadcast_object",
       .arguments = "obj: Any = None, root: int = 0",
       .result = "Any",
       .help = docstring_of("Communicator.broadcast_object"),
       .help_of_start = docstring_of("Communicator.broadcast_object_async")},
      &read_broadcast,
      [](Communicator& c, const RootCall& call) {
        return hocket::broadcast_object(c, call.sent, call.options);
      },
      [](Communicator& c, const RootCall& call) {
        return hocket::broadcast_object_async(c, call.sent, call.options);
      },
      arg("obj").none() = nb::none(),
      arg("root").none() = 0);
  define(
      cls,
      {.name = "gather_object",
       .arguments = "obj: Any, root: int = 0",
       .result = "Optional[list[Any]]",
       .help = docstring_of("Communicator.gather_object"),
       .help_of_start =
           "Start a `gather_object`; the Work's `wait()` returns the objects at the root."},
      &read_gather,
      [](Communicator& c, const RootCall& call) {
        return hocket::gather_object(c, call.sent, call.options);
      },
      [](Communicator& c, const RootCall& call) {
        return hocket::gather_object_async(c, call.sent, call.options);
      },
      arg("obj").none(),
      arg("root").none() = 0);
  define(
      cls,
      {.name = "all_gather_object",
       .arguments = "obj: Any",
       .result = "list[Any]",
       .help = docstring_of("Communicator.all_gather_object"),
       .help_of_start = "Start an `all_gather_object`; the Work's `wait()` returns the objects."},
      &read_all_gather,
      [](Communicator& c, const AllCall& call) {
        return hocket::all_gather_object(c, call.sent, call.options);
      },
      [](Communicator& c, const AllCall& call) {
        return hocket::all_gather_object_async(c, call.sent, call.options);
      },
      arg("obj").none());
  define(
      cls,
      {.name = "scatter_object",
       .arguments = "objects: Optional[Sequence[Any]] = None, root: int = 0",
       .result = "Any",
       .help =
           "Rank r gets objects[r] of the root. For the other arguments see `broadcast_object`.",
       .help_of_start =
           "Start a `scatter_object`; the Work's `wait()` returns this rank's object."},
      &read_scatter,
      [](Communicator& c, const ScatterCall& call) {
        return hocket::scatter_object(c, call.sent, call.options);
      },
      [](Communicator& c, const ScatterCall& call) {
        return hocket::scatter_object_async(c, call.sent, call.options);
      },
      arg("objects").none() = nb::none(),
      arg("root").none() = 0);
  define(
      cls,
      {.name = "send_object",
       .arguments = "obj: Any, destination: int, tag: int = 0",
       .result = "None",
       .help = docstring_of("Communicator.send_object"),
       .help_of_start =
           "Start a `send_object`. The object is read at once, and may be changed afterwards."},
      &read_send,
      [](Communicator& c, const MessageCall& call) {
        hocket::send_object(c, call.sent, call.peer, call.options);
      },
      [](Communicator& c, const MessageCall& call) {
        return hocket::send_object_async(c, call.sent, call.peer, call.options);
      },
      arg("obj").none(),
      arg("destination").none(),
      arg("tag").none() = 0);
  define(
      cls,
      {.name = "recv_object",
       .arguments = "source: int = -1, tag: int = 0",
       .result = "ReceivedObject",
       .help = docstring_of("Communicator.recv_object"),
       .help_of_start = "Start a `recv_object`; the Work's `wait()` returns the ReceivedObject."},
      &read_recv,
      [](Communicator& c, const MessageCall& call) {
        return hocket::recv_object(c, call.peer, call.options);
      },
      [](Communicator& c, const MessageCall& call) {
        return hocket::recv_object_async(c, call.peer, call.options);
      },
      arg("source").none() = kAnySource,
      arg("tag").none() = 0);
}

}  // namespace hocket::python
