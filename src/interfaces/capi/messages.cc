// Messages between two ranks. An error of one rank is not reported to the other.
#include "interfaces/capi/options.h"

using hocket::Communicator;
using hocket::capi::as_c;
using hocket::capi::call_options;
using hocket::capi::guarded;
using hocket::capi::of;
using hocket::capi::place;
using hocket::capi::receive_options;
using hocket::capi::Refusal;
using hocket::capi::view;
using hocket::capi::with_tag;

namespace {

template <typename Message>
std::vector<Message> read_messages(const Refusal& refuse,
                                   const hocket_message* messages,
                                   std::size_t count,
                                   const std::string& name) {
  check_list(refuse, messages, count, sizeof *messages, name, name + "_count");
  std::vector<Message> read;
  read.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string array = name + "[" + std::to_string(i) + "].array";
    read.push_back({view(refuse, &messages[i].array, array.c_str()), messages[i].peer});
  }
  return read;
}

}  // namespace

int hocket_send(hocket_comm* comm,
                const hocket_array* in,
                int32_t destination,
                int32_t tag,
                const hocket_call_options* options) {
  return guarded("hocket_send", [&] {
    const Refusal refuse;
    of(comm, "comm")
        .comm.send(
            required(refuse, in, "in"), destination, with_tag(call_options(refuse, options), tag));
  });
}

int hocket_send_async(hocket_comm* comm,
                      const hocket_array* in,
                      int32_t destination,
                      int32_t tag,
                      const hocket_call_options* options,
                      hocket_work** work) {
  return guarded("hocket_send_async", [&] {
    const Refusal refuse;
    Communicator& c = of(comm, "comm").comm;
    const auto o = with_tag(call_options(refuse, options), tag);
    const hocket::ConstArrayView sent = required(refuse, in, "in");
    start_work(refuse, work, [&] { return c.send_async(sent, destination, o); });
  });
}

int hocket_recv(hocket_comm* comm,
                const hocket_array* out,
                int32_t source,
                int32_t tag,
                const hocket_call_options* options,
                hocket_received* received) {
  return guarded("hocket_recv", [&] {
    const Refusal refuse;
    const hocket::Received came =
        of(comm, "comm")
            .comm.recv(required(refuse, out, "out"), source, receive_options(refuse, options, tag));
    if (received != nullptr) *received = as_c(came);
  });
}

int hocket_recv_async(hocket_comm* comm,
                      const hocket_array* out,
                      int32_t source,
                      int32_t tag,
                      const hocket_call_options* options,
                      hocket_work** work) {
  return guarded("hocket_recv_async", [&] {
    const Refusal refuse;
    Communicator& c = of(comm, "comm").comm;
    const auto o = receive_options(refuse, options, tag);
    const hocket::ArrayView received = required(refuse, out, "out");
    start_work(refuse, work, [&] { return c.recv_async(received, source, o); });
  });
}

int hocket_probe(hocket_comm* comm,
                 int32_t source,
                 int32_t tag,
                 const hocket_call_options* options,
                 hocket_received* received) {
  return guarded("hocket_probe", [&] {
    const Refusal refuse;
    Communicator& c = of(comm, "comm").comm;
    hocket_received& told = place(received, "received");
    told = as_c(c.probe(source, with_tag(call_options(refuse, options), tag)));
  });
}

int hocket_probe_now(
    hocket_comm* comm, int32_t source, int32_t tag, hocket_received* received, int* found) {
  return guarded("hocket_probe_now", [&] {
    Communicator& c = of(comm, "comm").comm;
    hocket_received& told = place(received, "received");
    int& is_there = place(found, "found");
    const auto waiting = c.probe_now(source, {.tag = tag});
    is_there = waiting ? 1 : 0;
    if (waiting) told = as_c(*waiting);
  });
}

int hocket_send_recv(hocket_comm* comm,
                     const hocket_array* in,
                     int32_t destination,
                     const hocket_array* out,
                     int32_t source,
                     int32_t tag,
                     const hocket_call_options* options) {
  return guarded("hocket_send_recv", [&] {
    const Refusal refuse;
    hocket_received* told = nullptr;
    const auto o = receive_options(refuse, options, tag, &told);
    const hocket::Received came =
        of(comm, "comm")
            .comm.send_recv(
                required(refuse, in, "in"), destination, required(refuse, out, "out"), source, o);
    if (told != nullptr) *told = as_c(came);
  });
}

int hocket_exchange(hocket_comm* comm,
                    const hocket_message* outgoing,
                    size_t outgoing_count,
                    const hocket_message* incoming,
                    size_t incoming_count,
                    int32_t tag,
                    const hocket_call_options* options) {
  return guarded("hocket_exchange", [&] {
    const Refusal refuse;
    Communicator& c = of(comm, "comm").comm;
    const auto out = read_messages<hocket::Outgoing>(refuse, outgoing, outgoing_count, "outgoing");
    const auto in = read_messages<hocket::Incoming>(refuse, incoming, incoming_count, "incoming");
    c.exchange(out, in, with_tag(call_options(refuse, options), tag));
  });
}
