// Messages: send, recv, probe, send_recv, exchange.
#include <string>
#include <vector>

#include "device.h"
#include "docstrings.h"
#include "immutable.h"
#include "strided.h"

namespace hocket::python {

nb::object to_python(const Received& received) {
  return nb::module_::import_("hocket._calls.types")
      .attr("Received")(received.source, received.tag, received.count);
}

namespace {

MessageOptions message_options(nb::handle tag,
                               nb::handle deadline,
                               std::optional<StreamRef> stream,
                               bool allow_shorter = false) {
  return {
      integer_argument(tag, "tag"), limit_argument(deadline, "deadline"), stream, allow_shorter};
}

nb::object envelope(const Received& waiting) {
  return nb::module_::import_("hocket._calls.types")
      .attr("Envelope")(
          waiting.source, waiting.tag, waiting.count, std::string(name_of(waiting.dtype)).c_str());
}

// The arguments of a send, after they have been read. A value.
struct Sending {
  Array in;
  int destination;
  MessageOptions options;
};
Sending read_send(
    nb::handle x, nb::handle destination, nb::handle tag, nb::handle deadline, nb::handle stream) {
  Array in = array_to_send(x, "x");
  const int to = integer_argument(destination, "destination");
  const MessageOptions options = message_options(tag, deadline, stream_of(stream, in, {}));
  return {std::move(in), to, options};
}

// The arguments of a receive, after they have been read. A value.
struct Receiving {
  Array out;
  int source;
  MessageOptions options;
};
Receiving read_receive(nb::handle x,
                       nb::handle source,
                       nb::handle tag,
                       nb::handle deadline,
                       nb::handle stream,
                       nb::handle allow_shorter) {
  const int from = integer_argument(source, "source");
  const bool shorter = flag_argument(allow_shorter, "allow_shorter");
  Array out = array_to_receive(x, "x", from == kNullRank || shorter);
  const MessageOptions options =
      message_options(tag, deadline, stream_of(stream, {}, out), shorter);
  return {std::move(out), from, options};
}

nb::object send_recv(CommunicatorObject& self,
                     nb::handle x,
                     nb::handle destination,
                     nb::handle out,
                     nb::handle source,
                     nb::handle tag,
                     nb::handle deadline,
                     nb::handle stream,
                     nb::handle allow_shorter) {
  const bool shorter = flag_argument(allow_shorter, "allow_shorter");
  Array in = array_to_send(x, "x");
  const int to = integer_argument(destination, "destination");
  const int from = source.is_none() ? to : integer_argument(source, "source");
  if (from == kNullRank && out.is_none()) {
    throw InvalidArgument(
        "out is missing, and from NULL_RANK nothing comes that a new one would hold");
  }
  nb::object result = out.is_none() ? new_array_like(in, shape_of(in)) : nb::borrow(out);
  Array target = array_to_receive(result, "out", from == kNullRank || shorter);
  require_same_order(in, "x", target, "out");
  const MessageOptions options =
      message_options(tag, deadline, stream_of(stream, in, target), shorter);
  const ArrayView place = target.output();
  Received came;
  without_gil([&] { came = self.comm.send_recv(in.input(), to, place, from, options); });
  copy_back(target);
  if (in.is_on_gpu()) retain(self, {&in, &target}, options.stream);
  if (shorter && from != kNullRank) {
    result = result.attr("reshape")(-1)[nb::slice(came.count)];
  }
  return finished(std::move(result), options.stream);
}

// One direction of an exchange: the arrays to send, or those to receive into, each with its peer's
// rank.
struct Side {
  std::vector<Array> arrays;
  std::vector<int> peers;
};

Side read_side(nb::handle messages, const char* name, Array (*read)(nb::handle, const char*, int)) {
  Side side;
  require_iterable(messages, name, "a list of pairs of an array and a rank");
  for (nb::handle message : messages) {
    const std::string element = element_name(name, side.peers.size());
    if (!nb::isinstance<nb::sequence>(message) || nb::len(message) != 2) {
      throw InvalidArgument(element + " is not a pair of an array and a rank");
    }
    side.peers.push_back(integer_argument(nb::object(message[1]), (element + "'s rank").c_str()));
    const nb::object array = message[0];
    side.arrays.push_back(read(array, element.c_str(), side.peers.back()));
  }
  return side;
}

void exchange(CommunicatorObject& self,
              nb::handle outgoing,
              nb::handle incoming,
              nb::handle tag,
              nb::handle deadline,
              nb::handle stream) {
  Side out = read_side(outgoing, "outgoing", [](nb::handle x, const char* name, int) {
    return array_to_send(x, name);
  });
  Side in = read_side(incoming, "incoming", [](nb::handle x, const char* name, int source) {
    return array_to_receive(x, name, source == kNullRank);
  });
  std::vector<Outgoing> sent;
  std::vector<Incoming> received;
  for (std::size_t i = 0; i < out.peers.size(); ++i) {
    sent.push_back({out.arrays[i].input(), out.peers[i]});
  }
  for (std::size_t i = 0; i < in.peers.size(); ++i) {
    received.push_back({in.arrays[i].output(), in.peers[i]});
  }
  if (sent.empty() && received.empty()) return;
  const MessageOptions options = message_options(
      tag,
      deadline,
      stream_of(stream, out.arrays.empty() ? in.arrays.front() : out.arrays.front(), {}));
  for (const Side* side : {&out, &in}) {
    for (const Array& array : side->arrays) follow(array, options.stream);
  }
  without_gil([&] { self.comm.exchange(sent, received, options); });
  for (const Array& array : in.arrays) copy_back(array);
  for (Side* side : {&out, &in}) {
    if (!side->arrays.empty() && side->arrays.front().is_on_gpu()) {
      retain(self, side->arrays, options.stream);
    }
  }
}

using nb::arg;

void bind_blocking(CommunicatorClass& cls) {
  cls.def(
      "send",
      [](CommunicatorObject& s,
         nb::handle x,
         nb::handle destination,
         nb::handle tag,
         nb::handle deadline,
         nb::handle stream) {
        Sending sent = read_send(x, destination, tag, deadline, stream);
        without_gil([&] { s.comm.send(sent.in.input(), sent.destination, sent.options); });
        if (sent.in.is_on_gpu()) retain(s, {&sent.in}, sent.options.stream);
      },
      arg("x").none(),
      arg("destination").none(),
      arg("tag").none() = 0,
      arg("deadline") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def send(self, x: Array, destination: int, tag: int = 0, "
              "deadline: Timeout = None, stream: Stream = None) -> None"),
      docstring_of("Communicator.send"));
  cls.def(
      "recv",
      [](CommunicatorObject& s,
         nb::handle x,
         nb::handle source,
         nb::handle tag,
         nb::handle deadline,
         nb::handle stream,
         nb::handle allow_shorter) {
        Receiving into = read_receive(x, source, tag, deadline, stream, allow_shorter);
        const Received received =
            without_gil([&] { return s.comm.recv(into.out.output(), into.source, into.options); });
        copy_back(into.out);
        if (into.out.is_on_gpu()) retain(s, {&into.out}, into.options.stream);
        return to_python(received);
      },
      arg("x").none(),
      arg("source").none() = kAnySource,
      arg("tag").none() = 0,
      arg("deadline") = nb::none(),
      arg("stream") = nb::none(),
      arg("allow_shorter").none() = false,
      nb::sig("def recv(self, x: Array, source: int = -1, tag: int = 0, deadline: Timeout = None, "
              "stream: Stream = None, allow_shorter: bool = False) -> Received"),
      docstring_of("Communicator.recv"));
}

void bind_async(CommunicatorClass& cls) {
  cls.def(
      "send_async",
      [](CommunicatorObject& s,
         nb::handle x,
         nb::handle destination,
         nb::handle tag,
         nb::handle deadline,
         nb::handle stream) {
        Sending sent = read_send(x, destination, tag, deadline, stream);
        WorkHandle handle{.result = nb::none()};
        handle.work = without_gil(
            [&] { return s.comm.send_async(sent.in.input(), sent.destination, sent.options); });
        handle.call = "send";
        keep(handle, sent.in);
        return handle;
      },
      arg("x").none(),
      arg("destination").none(),
      arg("tag").none() = 0,
      arg("deadline") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def send_async(self, x: Array, destination: int, tag: int = 0, "
              "deadline: Timeout = None, stream: Stream = None) -> Work"),
      "Start a `send`; the array must be left alone until the Work is done.");
  cls.def(
      "recv_async",
      [](CommunicatorObject& s,
         nb::handle x,
         nb::handle source,
         nb::handle tag,
         nb::handle deadline,
         nb::handle stream,
         nb::handle allow_shorter) {
        Receiving into = read_receive(x, source, tag, deadline, stream, allow_shorter);
        WorkHandle handle{.result = nb::borrow(x)};
        handle.work = without_gil(
            [&] { return s.comm.recv_async(into.out.output(), into.source, into.options); });
        handle.call = "recv";
        keep(handle, into.out);
        return handle;
      },
      arg("x").none(),
      arg("source").none() = kAnySource,
      arg("tag").none() = 0,
      arg("deadline") = nb::none(),
      arg("stream") = nb::none(),
      arg("allow_shorter").none() = false,
      nb::sig("def recv_async(self, x: Array, source: int = -1, tag: int = 0, "
              "deadline: Timeout = None, stream: Stream = None, allow_shorter: bool = False) "
              "-> Work"),
      docstring_of("Communicator.recv_async"));
}

void bind_probes(CommunicatorClass& cls) {
  cls.def(
      "probe",
      [](CommunicatorObject& s, nb::handle source, nb::handle tag, nb::handle deadline) {
        const int from = integer_argument(source, "source");
        const MessageOptions options = message_options(tag, deadline, {});
        return envelope(without_gil([&] { return s.comm.probe(from, options); }));
      },
      arg("source").none() = kAnySource,
      arg("tag").none() = 0,
      arg("deadline") = nb::none(),
      nb::sig("def probe(self, source: int = -1, tag: int = 0, deadline: Timeout = None) "
              "-> Envelope"),
      docstring_of("Communicator.probe"));
  cls.def(
      "probe_now",
      [](CommunicatorObject& s, nb::handle source, nb::handle tag) -> nb::object {
        const int from = integer_argument(source, "source");
        const MessageOptions options = message_options(tag, nb::none(), {});
        const auto found = without_gil([&] { return s.comm.probe_now(from, options); });
        return found ? envelope(*found) : nb::none();
      },
      arg("source").none() = kAnySource,
      arg("tag").none() = 0,
      nb::sig("def probe_now(self, source: int = -1, tag: int = 0) -> Optional[Envelope]"),
      "`probe` without waiting; None if no message has arrived.");
}

void bind_receives(CommunicatorClass& cls) {
  cls.def(
      "receives",
      [](nb::handle self,
         nb::handle shape,
         nb::handle dtype,
         nb::handle source,
         nb::handle tag,
         nb::handle count,
         nb::handle deadline) {
        return nb::module_::import_("hocket._waiting.works")
            .attr("receives")(self, shape, dtype, source, tag, count, deadline);
      },
      arg("shape").none(),
      arg("dtype").none() = "float64",
      arg("source").none() = kAnySource,
      arg("tag").none() = 0,
      arg("count") = nb::none(),
      arg("deadline") = nb::none(),
      nb::sig("def receives(self, shape: Any, dtype: Any = 'float64', source: int = -1, "
              "tag: int = 0, count: Optional[int] = None, deadline: Timeout = None) -> "
              "AsyncIterator[tuple[Array, Received]]"),
      docstring_of("Communicator.receives"));
}

void bind_exchanges(CommunicatorClass& cls) {
  cls.def("send_recv",
          &send_recv,
          arg("x").none(),
          arg("destination").none(),
          arg("out") = nb::none(),
          arg("source") = nb::none(),
          arg("tag").none() = 0,
          arg("deadline") = nb::none(),
          arg("stream") = nb::none(),
          arg("allow_shorter").none() = false,
          nb::sig("def send_recv(self, x: ArrayT, destination: int, out: Optional[ArrayT] = None, "
                  "source: Optional[int] = None, tag: int = 0, deadline: Timeout = None, stream: "
                  "Stream = None, allow_shorter: bool = False) -> ArrayT"),
          docstring_of("Communicator.send_recv"));
  cls.def("exchange",
          &exchange,
          arg("outgoing").none(),
          arg("incoming").none(),
          arg("tag").none() = 0,
          arg("deadline") = nb::none(),
          arg("stream") = nb::none(),
          nb::sig("def exchange(self, outgoing: Sequence[tuple[Array, int]], "
                  "incoming: Sequence[tuple[Array, int]], tag: int = 0, deadline: Timeout = None, "
                  "stream: Stream = None) -> None"),
          docstring_of("Communicator.exchange"));
}

}  // namespace

void bind_messages(CommunicatorClass& cls) {
  bind_blocking(cls);
  bind_async(cls);
  bind_probes(cls);
  bind_receives(cls);
  bind_exchanges(cls);
}

}  // namespace hocket::python
