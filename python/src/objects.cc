// Calls of objects between ranks.
#include <string>
#include <vector>

#include "arguments.h"
#include "hocket/error.h"
#include "hocket/object.h"
#include "object_values.h"
#include "verbs.h"

namespace hocket::python {
namespace {

// None: as the communicator has it.
Pickle pickle_argument(const CommunicatorObject& self, nb::handle allow) {
  const bool is_allowed =
      allow.is_none() ? self.allows_pickle : flag_argument(allow, "allow_pickle");
  return is_allowed ? Pickle::kAllow : Pickle::kRefuse;
}

nb::object broadcast_object(CommunicatorObject& self,
                            nb::handle object,
                            nb::handle root,
                            nb::handle allow_pickle,
                            nb::handle deadline) {
  RootOptions options;
  Reading reading{};
  const Object mine = read_arguments(self, [&] {
    options = root_options(root, deadline);
    reading.pickle = pickle_argument(self, allow_pickle);
    return self.comm.rank() == options.root ? read_object(object, reading) : Object();
  });
  const Object result =
      without_gil([&] { return hocket::broadcast_object(self.comm, mine, options); });
  // The root also returns what the others get. If that equals the original, the original is
  // returned.
  if (self.comm.rank() == options.root && !reading.changes) return nb::borrow(object);
  return from_object(result, reading.pickle);
}

nb::object gather_object(CommunicatorObject& self,
                         nb::handle object,
                         nb::handle root,
                         nb::handle allow_pickle,
                         nb::handle deadline) {
  RootOptions options;
  Reading reading{};
  const Object mine = read_arguments(self, [&] {
    options = root_options(root, deadline);
    reading.pickle = pickle_argument(self, allow_pickle);
    return read_object(object, reading);
  });
  const auto all = without_gil([&] { return hocket::gather_object(self.comm, mine, options); });
  if (self.comm.rank() != options.root) return nb::none();
  return from_items(all, reading.pickle);
}

nb::object all_gather_object(CommunicatorObject& self,
                             nb::handle object,
                             nb::handle allow_pickle,
                             nb::handle deadline) {
  CallOptions options;
  Reading reading{};
  const Object mine = read_arguments(self, [&] {
    options = {limit_argument(deadline, "deadline")};
    reading.pickle = pickle_argument(self, allow_pickle);
    return read_object(object, reading);
  });
  const auto all = without_gil([&] { return hocket::all_gather_object(self.comm, mine, options); });
  return from_items(all, reading.pickle);
}

// The objects that the root scatters; nothing elsewhere.
std::vector<Object> read_scattered(CommunicatorObject& self,
                                   nb::handle objects,
                                   int root,
                                   Pickle pickle) {
  Reading reading{.pickle = pickle};
  std::vector<Object> read;
  if (self.comm.rank() != root) return read;
  require_iterable(objects, "objects", "a list of objects, one for each rank");
  for (nb::handle object : objects) read.push_back(read_object(object, reading));
  return read;
}

nb::object scatter_object(CommunicatorObject& self,
                          nb::handle objects,
                          nb::handle root,
                          nb::handle allow_pickle,
                          nb::handle deadline) {
  RootOptions options;
  Pickle pickle{};
  const std::vector<Object> all = read_arguments(self, [&] {
    options = root_options(root, deadline);
    pickle = pickle_argument(self, allow_pickle);
    return read_scattered(self, objects, options.root, pickle);
  });
  const Object mine = without_gil([&] { return hocket::scatter_object(self.comm, all, options); });
  return from_object(mine, pickle);
}

// --- Without waiting --------------------------------------------------------------------------

// A started call, whose result `convert` makes of the one of C++.
template <typename Result, typename Convert>
WorkHandle work_of(const char* name, ObjectWork<Result> started, Convert convert) {
  WorkHandle handle{.call = name};
  handle.work = std::move(started.work);
  handle.make = [result = std::move(started.result), convert = std::move(convert)]() -> nb::object {
    return convert(without_gil(result));
  };
  return handle;
}

WorkHandle broadcast_object_async(CommunicatorObject& self,
                                  nb::handle object,
                                  nb::handle root,
                                  nb::handle allow_pickle,
                                  nb::handle deadline) {
  RootOptions options;
  Reading reading{};
  const Object mine = read_arguments(self, [&] {
    options = root_options(root, deadline);
    reading.pickle = pickle_argument(self, allow_pickle);
    return self.comm.rank() == options.root ? read_object(object, reading) : Object();
  });
  const bool keeps = self.comm.rank() == options.root && !reading.changes;
  return work_of(
      "broadcast_object",
      without_gil([&] { return hocket::broadcast_object_async(self.comm, mine, options); }),
      [pickle = reading.pickle, own = keeps ? nb::borrow(object) : nb::object()](
          const Object& came) { return own.is_valid() ? own : from_object(came, pickle); });
}

WorkHandle gather_object_async(CommunicatorObject& self,
                               nb::handle object,
                               nb::handle root,
                               nb::handle allow_pickle,
                               nb::handle deadline) {
  RootOptions options;
  Reading reading{};
  const Object mine = read_arguments(self, [&] {
    options = root_options(root, deadline);
    reading.pickle = pickle_argument(self, allow_pickle);
    return read_object(object, reading);
  });
  const bool is_root = self.comm.rank() == options.root;
  return work_of("gather_object",
                 without_gil([&] { return hocket::gather_object_async(self.comm, mine, options); }),
                 [pickle = reading.pickle, is_root](const std::vector<Object>& all) -> nb::object {
                   if (!is_root) return nb::none();
                   return from_items(all, pickle);
                 });
}

WorkHandle all_gather_object_async(CommunicatorObject& self,
                                   nb::handle object,
                                   nb::handle allow_pickle,
                                   nb::handle deadline) {
  CallOptions options;
  Reading reading{};
  const Object mine = read_arguments(self, [&] {
    options = {limit_argument(deadline, "deadline")};
    reading.pickle = pickle_argument(self, allow_pickle);
    return read_object(object, reading);
  });
  return work_of(
      "all_gather_object",
      without_gil([&] { return hocket::all_gather_object_async(self.comm, mine, options); }),
      [pickle = reading.pickle](const std::vector<Object>& all) {
        return from_items(all, pickle);
      });
}

WorkHandle scatter_object_async(CommunicatorObject& self,
                                nb::handle objects,
                                nb::handle root,
                                nb::handle allow_pickle,
                                nb::handle deadline) {
  RootOptions options;
  Pickle pickle{};
  const std::vector<Object> all = read_arguments(self, [&] {
    options = root_options(root, deadline);
    pickle = pickle_argument(self, allow_pickle);
    return read_scattered(self, objects, options.root, pickle);
  });
  return work_of("scatter_object",
                 without_gil([&] { return hocket::scatter_object_async(self.comm, all, options); }),
                 [pickle](const Object& mine) { return from_object(mine, pickle); });
}

nb::object to_python(const ReceivedObject& received, Pickle pickle) {
  return nb::module_::import_("hocket._calls.types")
      .attr("ReceivedObject")(
          from_object(received.object, pickle), received.from.source, received.from.tag);
}

MessageOptions message_options(nb::handle tag, nb::handle deadline) {
  return {integer_argument(tag, "tag"), limit_argument(deadline, "deadline")};
}

void send_object(CommunicatorObject& self,
                 nb::handle object,
                 nb::handle destination,
                 nb::handle tag,
                 nb::handle allow_pickle,
                 nb::handle deadline) {
  Reading reading{.pickle = pickle_argument(self, allow_pickle)};
  const Object sent = read_object(object, reading);
  const int to = integer_argument(destination, "destination");
  const MessageOptions options = message_options(tag, deadline);
  without_gil([&] { hocket::send_object(self.comm, sent, to, options); });
}

nb::object recv_object(CommunicatorObject& self,
                       nb::handle source,
                       nb::handle tag,
                       nb::handle allow_pickle,
                       nb::handle deadline) {
  const Pickle pickle = pickle_argument(self, allow_pickle);
  const int from = integer_argument(source, "source");
  const MessageOptions options = message_options(tag, deadline);
  return to_python(without_gil([&] { return hocket::recv_object(self.comm, from, options); }),
                   pickle);
}

WorkHandle send_object_async(CommunicatorObject& self,
                             nb::handle object,
                             nb::handle destination,
                             nb::handle tag,
                             nb::handle allow_pickle,
                             nb::handle deadline) {
  Reading reading{.pickle = pickle_argument(self, allow_pickle)};
  const Object sent = read_object(object, reading);
  const int to = integer_argument(destination, "destination");
  const MessageOptions options = message_options(tag, deadline);
  WorkHandle handle{.result = nb::none(), .call = "send_object"};
  handle.work =
      without_gil([&] { return hocket::send_object_async(self.comm, sent, to, options); });
  return handle;
}

WorkHandle recv_object_async(CommunicatorObject& self,
                             nb::handle source,
                             nb::handle tag,
                             nb::handle allow_pickle,
                             nb::handle deadline) {
  const Pickle pickle = pickle_argument(self, allow_pickle);
  const int from = integer_argument(source, "source");
  const MessageOptions options = message_options(tag, deadline);
  return work_of("recv_object",
                 without_gil([&] { return hocket::recv_object_async(self.comm, from, options); }),
                 [pickle](const ReceivedObject& received) { return to_python(received, pickle); });
}

}  // namespace

void bind_objects(CommunicatorClass& cls) {
  using nb::arg;
  cls.def("broadcast_object",
          &broadcast_object,
          arg("obj").none() = nb::none(),
          arg("root").none() = 0,
          arg("allow_pickle") = nb::none(),
          arg("deadline") = nb::none(),
          nb::sig("def broadcast_object(self, obj: Any = None, root: int = 0, "
                  "allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Any"),
          R"(Send the root's object to all ranks.

Parameters
----------
obj : object
    At the root what is sent: None, bool, int, float, complex, str, bytes, bytearray, arrays, NumPy's
    scalars, and lists, tuples and dicts of those. Elsewhere ignored. All arrive as they were sent,
    but for arrays that are not NumPy's: those arrive as NumPy's. Refused are subclasses of these
    types, and a list, dict, bytearray or array that the object holds twice.
root : int
    The rank that sends.
allow_pickle : bool, optional
    Send an object that holds anything else by pickle, as a whole. Unpickling runs the code that
    the sender asks for: only where all ranks are trusted, and all must say it. By default the
    communicator's `allow_pickle`.

Returns
-------
object
    The same on all ranks. At the root `obj` itself, unless arrays in it arrive as NumPy's.
)");
  cls.def(
      "gather_object",
      &gather_object,
      arg("obj").none(),
      arg("root").none() = 0,
      arg("allow_pickle") = nb::none(),
      arg("deadline") = nb::none(),
      nb::sig(
          "def gather_object(self, obj: Any, root: int = 0, allow_pickle: Optional[bool] = None, "
          "deadline: Timeout = None) -> Optional[list[Any]]"),
      "The objects of all ranks, in order, at the root; None elsewhere. For the arguments see "
      "`broadcast_object`.");
  cls.def("all_gather_object",
          &all_gather_object,
          arg("obj").none(),
          arg("allow_pickle") = nb::none(),
          arg("deadline") = nb::none(),
          nb::sig("def all_gather_object(self, obj: Any, allow_pickle: Optional[bool] = None, "
                  "deadline: Timeout = None) -> list[Any]"),
          "The objects of all ranks, in order, on every rank. For the arguments see "
          "`broadcast_object`.");
  cls.def(
      "scatter_object",
      &scatter_object,
      arg("objects").none() = nb::none(),
      arg("root").none() = 0,
      arg("allow_pickle") = nb::none(),
      arg("deadline") = nb::none(),
      nb::sig(
          "def scatter_object(self, objects: Optional[Sequence[Any]] = None, "
          "root: int = 0, allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Any"),
      "Rank r gets objects[r] of the root. For the other arguments see `broadcast_object`.");
  cls.def("send_object",
          &send_object,
          arg("obj").none(),
          arg("destination").none(),
          arg("tag").none() = 0,
          arg("allow_pickle") = nb::none(),
          arg("deadline") = nb::none(),
          nb::sig("def send_object(self, obj: Any, destination: int, tag: int = 0, "
                  "allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> None"),
          R"(Send an object to one rank, which receives it by `recv_object`.

`obj` and `allow_pickle` are those of
`broadcast_object`, `destination` and `tag` those of `send`.
)");
  cls.def(
      "recv_object",
      &recv_object,
      arg("source").none() = kAnySource,
      arg("tag").none() = 0,
      arg("allow_pickle") = nb::none(),
      arg("deadline") = nb::none(),
      nb::sig("def recv_object(self, source: int = -1, tag: int = 0, "
              "allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> ReceivedObject"),
      R"(Receive what a rank sent by `send_object`.

Parameters
----------
source : int
    The rank to receive from; `hocket.ANY_SOURCE` (-1) for whoever sends first.
tag : int
    At least 0; `hocket.ANY_TAG` (-1) for whichever comes first, which must be an object.
allow_pickle : bool, optional
    Also take what only pickle can carry; see `broadcast_object`.

Returns
-------
ReceivedObject
    Named tuple (object, source, tag).
)");
  const auto start = [&cls](const char* name,
                            auto call,
                            const char* signature,
                            const char* help,
                            const auto&... arguments) {
    cls.def(name,
            call,
            arguments...,
            arg("allow_pickle") = nb::none(),
            arg("deadline") = nb::none(),
            nb::sig(signature),
            help);
  };
  start("broadcast_object_async",
        &broadcast_object_async,
        "def broadcast_object_async(self, obj: Any = None, root: int = 0, "
        "allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Work",
        "Start a `broadcast_object`; the Work's `wait()` returns the object. It is read at once.",
        arg("obj").none() = nb::none(),
        arg("root").none() = 0);
  start("gather_object_async",
        &gather_object_async,
        "def gather_object_async(self, obj: Any, root: int = 0, "
        "allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Work",
        "Start a `gather_object`; the Work's `wait()` returns the objects at the root.",
        arg("obj").none(),
        arg("root").none() = 0);
  start("all_gather_object_async",
        &all_gather_object_async,
        "def all_gather_object_async(self, obj: Any, allow_pickle: Optional[bool] = None, "
        "deadline: Timeout = None) -> Work",
        "Start an `all_gather_object`; the Work's `wait()` returns the objects.",
        arg("obj").none());
  start("scatter_object_async",
        &scatter_object_async,
        "def scatter_object_async(self, objects: Optional[Sequence[Any]] = None, root: int = 0, "
        "allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Work",
        "Start a `scatter_object`; the Work's `wait()` returns this rank's object.",
        arg("objects").none() = nb::none(),
        arg("root").none() = 0);
  start("send_object_async",
        &send_object_async,
        "def send_object_async(self, obj: Any, destination: int, tag: int = 0, "
        "allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Work",
        "Start a `send_object`. The object is read at once, and may be changed afterwards.",
        arg("obj").none(),
        arg("destination").none(),
        arg("tag").none() = 0);
  start("recv_object_async",
        &recv_object_async,
        "def recv_object_async(self, source: int = -1, tag: int = 0, "
        "allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Work",
        "Start a `recv_object`; the Work's `wait()` returns the ReceivedObject.",
        arg("source").none() = kAnySource,
        arg("tag").none() = 0);
}

}  // namespace hocket::python
