// send, recv, probe, send_recv.
#include <string>
#include <vector>

#include "device.h"
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
  land(target);
  if (in.is_on_gpu()) retain(self, {&in, &target}, options.stream);
  if (shorter && from != kNullRank) {
    result = result.attr("reshape")(-1)[nb::slice(came.count)];
  }
  return finished(std::move(result), options.stream);
}

// One side of an exchange: arrays and ranks.
struct Side {
  std::vector<Array> arrays;
  std::vector<int> peers;
};

Side read_side(nb::handle messages, const char* name, Array (*read)(nb::handle, const char*, int)) {
  Side side;
  require_iterable(messages, name, "a list of pairs of an array and a rank");
  for (nb::handle message : messages) {
    const std::string element = std::string(name) + "[" + std::to_string(side.peers.size()) + "]";
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
  const MessageOptions options =
      message_options(tag,
                      deadline,
                      out.arrays.empty() ? stream_of(stream, {}, in.arrays.front())
                                         : stream_of(stream, out.arrays.front(), {}));
  without_gil([&] { self.comm.exchange(sent, received, options); });
  for (const Array& array : in.arrays) land(array);
  for (Side* side : {&out, &in}) {
    if (!side->arrays.empty() && side->arrays.front().is_on_gpu()) {
      retain(self, side->arrays, options.stream);
    }
  }
}

}  // namespace

void bind_messages(CommunicatorClass& cls) {
  using nb::arg;
  cls.def(
      "send",
      [](CommunicatorObject& s,
         nb::handle x,
         nb::handle destination,
         nb::handle tag,
         nb::handle deadline,
         nb::handle stream) {
        Array in = array_to_send(x, "x");
        const int to = integer_argument(destination, "destination");
        const MessageOptions options = message_options(tag, deadline, stream_of(stream, in, {}));
        without_gil([&] { s.comm.send(in.input(), to, options); });
        if (in.is_on_gpu()) retain(s, {&in}, options.stream);
      },
      arg("x").none(),
      arg("destination").none(),
      arg("tag").none() = 0,
      arg("deadline") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def send(self, x: Array, destination: int, tag: int = 0, "
              "deadline: Timeout = None, stream: Stream = None) -> None"),
      R"(Send an array to one rank, which receives it by `recv`.

Messages pair by peer, tag and order, outside the order of collectives.

Parameters
----------
x : array
    What is sent. The receiver's array has as many elements, of the same dtype. One of NumPy need
    not be contiguous: it is packed, in C order.
destination : int
    The rank to send to; `hocket.NULL_RANK` (-2) is nobody, and nothing is sent.
tag : int
    At least 0.
)");
  cls.def(
      "recv",
      [](CommunicatorObject& s,
         nb::handle x,
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
        const Received received =
            without_gil([&] { return s.comm.recv(out.output(), from, options); });
        land(out);
        if (out.is_on_gpu()) retain(s, {&out}, options.stream);
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
      R"(Receive an array into `x`.

Parameters
----------
x : array
    Where it goes: as many elements as were sent, of the same dtype. One of NumPy need not be
    contiguous: it is written to in C order.
source : int
    The rank to receive from; `hocket.ANY_SOURCE` (-1) for whoever sends first; `hocket.NULL_RANK`
    (-2) for nobody: `x` stays as it is.
tag : int
    At least 0; `hocket.ANY_TAG` (-1) for whichever comes first, onto the host.
allow_shorter : bool
    What comes may have fewer elements than `x`, and fills its beginning; what is behind stays as it
    is. For arrays on the host.

Returns
-------
Received
    Named tuple (source, tag, count): who sent it, and how many elements came.
)");
  cls.def(
      "send_async",
      [](CommunicatorObject& s,
         nb::handle x,
         nb::handle destination,
         nb::handle tag,
         nb::handle deadline,
         nb::handle stream) {
        Array in = array_to_send(x, "x");
        const int to = integer_argument(destination, "destination");
        const MessageOptions options = message_options(tag, deadline, stream_of(stream, in, {}));
        WorkHandle handle{.result = nb::none()};
        handle.work = without_gil([&] { return s.comm.send_async(in.input(), to, options); });
        handle.call = "send";
        keep(handle, in);
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
        const int from = integer_argument(source, "source");
        const bool shorter = flag_argument(allow_shorter, "allow_shorter");
        Array out = array_to_receive(x, "x", from == kNullRank || shorter);
        const MessageOptions options =
            message_options(tag, deadline, stream_of(stream, {}, out), shorter);
        WorkHandle handle{.result = nb::borrow(x)};
        handle.work = without_gil([&] { return s.comm.recv_async(out.output(), from, options); });
        handle.call = "recv";
        keep(handle, out);
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
      "Start a `recv`; the Work's result is `x`, its `received` who sent. An array that is not "
      "contiguous is written to by whichever method of the Work says first that it is done.");
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
      R"(Wait until a message onto the host is there, and tell of it without taking it.

The next `recv` from that source with that tag takes it, where no other thread comes before. An
object's message, which `recv_object` takes, shows as its first part: 256 elements of uint8.

Parameters
----------
source : int
    The rank that sends; `hocket.ANY_SOURCE` (-1) for whoever does.
tag : int
    At least 0; `hocket.ANY_TAG` (-1) for any.

Returns
-------
Envelope
    Named tuple (source, tag, count, dtype): who sent it, and how many elements of which dtype,
    a string, an array for it must have.
)");
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
      "`probe` without waiting: None where no message is there yet.");
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
      R"(Messages one after the other: ``async for x, received in comm.receives(1000)``.

A receive is under way only while the loop waits, so that leaving the loop gives nothing up.

Parameters
----------
shape, dtype
    Of each message, which comes in a new NumPy array.
source : int
    The rank to receive from; by default whoever sends first.
tag : int
    At least 0.
count : int, optional
    How many to wait for; by default the loop does not end.
deadline : float or datetime.timedelta, optional
    Seconds that each message may take; by default the communicator's `deadline`.
)");
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
          R"(Send to one rank and receive from one, at once: an exchange, a ring, a shift.

Parameters
----------
x : array
    What is sent.
destination : int
    The rank to send to.
out : array, optional
    Where the received goes, as many elements as come, of any shape; may be `x` itself. Needed
    where `source` is `hocket.NULL_RANK`, from whom nothing comes.
source : int, optional
    The rank to receive from; by default `destination`.
tag : int
    At least 0.
allow_shorter : bool
    True: the message may have fewer elements than `out`, and fills its beginning. Host only.

Returns
-------
array
    `out`, or a new array of the shape and dtype of `x`. With `allow_shorter` the elements that
    came, along one axis.
)");
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
          R"(Any number of messages at once, which progress together, whatever their order.

Messages between two ranks pair in their order; the other side may `exchange`, `send` or `recv`. On
GPUs it returns when they are on the stream.

Parameters
----------
outgoing : sequence of (array, int)
    What is sent, and to whom.
incoming : sequence of (array, int)
    Where what comes goes, and from whom it comes; arrays that are sent may be received into.
tag : int
    At least 0; of all messages.
)");
}

}  // namespace hocket::python
