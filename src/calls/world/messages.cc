// The public verbs of messages between two ranks.
#include "calls/call/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <vector>

#include "calls/call/operation.h"
#include "calls/device/calls.h"
#include "calls/world/communicator_impl.h"
#include "foundation/base/limit.h"

namespace hocket {

namespace {

using call::MessageInFlight;
using engine::Envelope;
using world::CommunicatorImpl;

std::span<const std::byte> bytes_of(ConstArrayView view) {
  return {static_cast<const std::byte*>(view.data()), view.bytes()};
}
std::span<std::byte> bytes_of(ArrayView view) {
  return {static_cast<std::byte*>(view.data()), view.bytes()};
}

// Returns true if the message completes within moments, as short ones do. If the two ends disagree,
// it returns false, and the wait that follows reports this.
bool completes_soon(MessageInFlight& message, int polls) {
  try {
    for (; polls >= 0; --polls) {
      if (message.owned.done(&message.sender)) {
        message.end(false);
        return true;
      }
      if (polls > 0) message.owned.via().progress_wanted();
    }
  } catch (const engine::EnvelopeMismatch&) {
  }
  return false;
}

// Sends a message. Returns nothing if the send has ended.
std::optional<MessageInFlight> send_now(CommunicatorImpl& impl,
                                        const Envelope& to,
                                        ConstArrayView in) {
  call::TracedMessage traced = impl.tracing().sends(to, in);
  const engine::MessageId id = impl.messages().send(to, bytes_of(in));
  if (id == engine::kComplete) {
    traced.end(false);
    return std::nullopt;
  }
  MessageInFlight message{.call = {to, true},
                          .owned = {impl.messages(), id},
                          .traced = std::move(traced),
                          .sender = {}};
  if (completes_soon(message, 0)) return std::nullopt;
  return message;
}

// Whether a receive waits for its message, or goes on in the background.
enum class Receive : std::uint8_t { kWaits, kStarts };
// The looks for the next message of a receive that only starts. Where messages follow each other
// closely, this receives them without a handle for each.
constexpr int kLooksAtStart = 100;

// Receives a message, or begins to. Returns nothing if the message has come, or comes within
// moments; then `received` describes it.
std::optional<MessageInFlight> recv_now(
    CommunicatorImpl& impl, const Envelope& from, ArrayView out, Receive how, Received& received) {
  call::TracedMessage traced = impl.tracing().receives(from, out);
  int polls = impl.message_calls.eager_polls();
  if (how == Receive::kStarts) polls = std::min(polls, kLooksAtStart);
  Envelope sender;
  if (impl.messages().recv_soon(from, bytes_of(out), polls, sender)) {
    received = call::received_of(sender);
    traced.set_sender(received);
    traced.end(false);
    return std::nullopt;
  }
  MessageInFlight message{.call = {from, false},
                          .owned = {impl.messages(), impl.messages().recv(from, bytes_of(out))},
                          .traced = std::move(traced),
                          .sender = {}};
  if (how == Receive::kStarts) polls = 1;
  if (!completes_soon(message, std::max(polls, 1))) return message;
  received = call::received_of(message.sender);
  return std::nullopt;
}

bool is_on_gpu(ConstArrayView array) { return array.memory() == MemoryKind::kCuda; }

void require_one_memory(ConstArrayView a, ConstArrayView b) {
  if (a.memory() != b.memory()) {
    throw InvalidArgument("in and out lie in different kinds of memory");
  }
}

// Returns the source of a receive on a stream. Throws if it is any rank: only a call that waits can
// find the source.
int named(const Envelope& from) {
  if (from.peer == engine::kAnyPeer) {
    throw InvalidArgument(
        "source is any rank, and an asynchronous call on a GPU's array cannot wait to learn which; "
        "name it, or call recv");
  }
  return from.peer;
}

void refuse_options_of_receives(const MessageOptions& options) {
  if (!options.allow_shorter && !options.allow_longer) return;
  throw InvalidArgument(fmt::format("{} is for recv, recv_async and send_recv",
                                    options.allow_shorter ? "allow_shorter" : "allow_longer"));
}

void refuse_options_of_hosts(const MessageOptions& options) {
  const char* const name = options.allow_shorter  ? "allow_shorter"
                           : options.allow_longer ? "allow_longer"
                           : options.synchronous  ? "synchronous"
                                                  : nullptr;
  if (name == nullptr) return;
  throw InvalidArgument(
      fmt::format("{} is for arrays on the host, and this one is on a GPU", name));
}

Envelope envelope(const CommunicatorImpl& impl,
                  int peer,
                  bool sends,
                  ConstArrayView array,
                  const MessageOptions& options) {
  return impl.envelope_of(peer, sends, array, options);
}

// Throws for options that send_recv and exchange do not take.
void require_plain(const MessageOptions& options) {
  if (options.tag == kAnyTag) {
    throw InvalidArgument("tag is -1, any, which is for recv, recv_async and probe");
  }
  if (options.synchronous) throw InvalidArgument("synchronous is for send and send_async");
}

Received nothing_received(DType dtype, const MessageOptions& options) {
  return {.source = kNullRank, .tag = options.tag, .count = 0, .dtype = dtype};
}

// Returns the envelope of a probe, which matches any count and dtype.
Envelope probed(CommunicatorImpl& impl, int source, const MessageOptions& options) {
  if (options.stream) {
    throw InvalidArgument(
        "stream is given, but a probe tells of messages onto the host; leave it out");
  }
  refuse_options_of_receives(options);
  return envelope(impl, source, false, ConstArrayView(nullptr, 0, DType::kUInt8), options);
}

// Copies messages, except messages to or from kNullRank.
template <typename One>
std::vector<One> with_somebody(std::span<const One> messages, int One::* peer) {
  std::vector<One> kept;
  std::ranges::copy_if(
      messages, std::back_inserter(kept), [&](const One& one) { return one.*peer != kNullRank; });
  return kept;
}

// Returns the array to send: `in`, or a copy in `copy` if an incoming message may overwrite `in`
// first.
ConstArrayView apart_from(std::span<const Incoming> incoming,
                          ConstArrayView in,
                          std::vector<std::byte>& copy) {
  if (!call::is_received_into(in, incoming)) return in;
  const auto bytes = bytes_of(in);
  copy.assign(bytes.begin(), bytes.end());
  return ConstArrayView(copy.data(), in.count(), in.dtype()).in_order(in.order());
}

// Refuses overlapping receives: the result would depend on which message comes last.
void require_apart(std::span<const Incoming> incoming) {
  if (incoming.size() < 2) return;
  const auto begins = [&](std::size_t i) {
    return static_cast<const std::byte*>(incoming[i].out.data());
  };
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < incoming.size(); ++i) {
    if (incoming[i].out.bytes() != 0 && incoming[i].source != kNullRank) order.push_back(i);
  }
  std::ranges::sort(order, std::less<>(), begins);
  for (std::size_t k = 1; k < order.size(); ++k) {
    const std::size_t a = order[k - 1], b = order[k];
    if (begins(a) + incoming[a].out.bytes() <= begins(b)) continue;
    throw InvalidArgument(
        fmt::format("incoming[{}] and incoming[{}] overlap; give each message memory of its own",
                    std::min(a, b),
                    std::max(a, b)));
  }
}

}  // namespace

engine::Envelope world::CommunicatorImpl::envelope_of(int peer,
                                                      bool sends,
                                                      ConstArrayView array,
                                                      const MessageOptions& options) const {
  call::require_array(array, sends ? "in" : "out");
  base::require_limit(options.deadline, "deadline");
  const bool any = !sends && peer == kAnySource;
  if (rank() >= 0 && !any && peer != kNullRank && (peer < 0 || peer >= size())) {
    throw InvalidArgument(fmt::format("{} is {}, expected a rank from 0 to {}{}, or -2 for nobody",
                                      sends ? "destination" : "source",
                                      peer,
                                      size() - 1,
                                      sends ? "" : ", -1 for any"));
  }
  const bool any_tag = !sends && options.tag == kAnyTag;
  if (options.tag < 0 && !any_tag) {
    throw InvalidArgument(fmt::format(
        "tag is {}, expected at least 0{}", options.tag, sends ? "" : ", or -1 for any"));
  }
  if (sends) refuse_options_of_receives(options);
  if (is_on_gpu(array)) refuse_options_of_hosts(options);
  if (options.synchronous && !sends) {
    throw InvalidArgument("synchronous is for send and send_async");
  }
  return {.peer = any ? engine::kAnyPeer : peer,
          .tag = any_tag ? engine::kAnyTag : static_cast<engine::Tag>(options.tag),
          .dtype = array.dtype(),
          .order = array.order(),
          .count = array.count(),
          .allows_shorter = options.allow_shorter,
          .allows_longer = options.allow_longer,
          .synchronous = options.synchronous};
}

void Communicator::send(ConstArrayView in, int destination, const MessageOptions& options) {
  const call::CallGuard guard(*impl_);
  impl_->require_usable();
  const Envelope to = envelope(*impl_, destination, true, in, options);
  if (to.peer == kNullRank) return;
  impl_->require_peer(to.peer);
  if (is_on_gpu(in)) {
    const Outgoing one{in, to.peer};
    impl_->devices().messages.exchange({&one, 1}, {}, options);
    return;
  }
  if (auto message = send_now(*impl_, to, in)) impl_->message_calls.run(*message, options.deadline);
}

Received Communicator::recv(ArrayView out, int source, const MessageOptions& options) {
  const call::CallGuard guard(*impl_);
  impl_->require_usable();
  const Envelope from = envelope(*impl_, source, false, out, options);
  if (from.peer == kNullRank) return nothing_received(out.dtype(), options);
  if (is_on_gpu(out)) {
    const Incoming one{out, source};
    const int sender = impl_->devices().messages.exchange({}, {&one, 1}, options);
    return {sender, options.tag, out.count(), out.dtype()};
  }
  Received received;
  auto message = recv_now(*impl_, from, out, Receive::kWaits, received);
  if (!message) return received;
  impl_->message_calls.run(*message, options.deadline);
  return call::received_of(message->sender);
}

Work Communicator::send_async(BorrowedView in, int destination, const MessageOptions& options) {
  const call::CallGuard guard(*impl_);
  impl_->require_usable();
  const Envelope to = envelope(*impl_, destination, true, in, options);
  if (to.peer == kNullRank) return Work(impl_->message_calls.ended());
  impl_->require_peer(to.peer);
  if (is_on_gpu(in)) {
    const Outgoing one{in, to.peer};
    return Work(impl_->devices().messages.start_exchange({&one, 1}, {}, options));
  }
  auto message = send_now(*impl_, to, in);
  if (!message) return Work(impl_->message_calls.ended());
  return Work(impl_->message_calls.start(std::move(*message), options.deadline));
}

Work Communicator::recv_async(ArrayView out, int source, const MessageOptions& options) {
  const call::CallGuard guard(*impl_);
  impl_->require_usable();
  const Envelope from = envelope(*impl_, source, false, out, options);
  if (from.peer == kNullRank) {
    return Work(impl_->message_calls.ended(), nothing_received(out.dtype(), options));
  }
  if (is_on_gpu(out)) {
    const Received received{named(from), options.tag, out.count(), out.dtype()};
    const Incoming one{out, from.peer};
    auto operation = impl_->devices().messages.start_exchange({}, {&one, 1}, options);
    operation->received = received;
    return Work(std::move(operation));
  }
  Received received;
  auto message = recv_now(*impl_, from, out, Receive::kStarts, received);
  if (!message) return Work(impl_->message_calls.ended(), received);
  return Work(impl_->message_calls.start(std::move(*message), options.deadline));
}

std::optional<Received> Communicator::probe_now(int source, const MessageOptions& options) {
  const call::CallGuard guard(*impl_);
  impl_->require_usable();
  const Envelope from = probed(*impl_, source, options);
  if (from.peer == kNullRank) return nothing_received(DType::kUInt8, options);
  const auto found = impl_->message_calls.find({.envelope = from, .probes = true});
  if (!found) return std::nullopt;
  return call::received_of(*found);
}

Received Communicator::probe(int source, const MessageOptions& options) {
  const call::CallGuard guard(*impl_);
  impl_->require_usable();
  const Envelope from = probed(*impl_, source, options);
  if (from.peer == kNullRank) return nothing_received(DType::kUInt8, options);
  Received found;  // outlives the task
  impl_->message_calls.run(call::await(impl_->messages(), from, found),
                           {.envelope = from, .sends = false, .probes = true},
                           options.deadline);
  return found;
}

Received Communicator::send_recv(ConstArrayView in,
                                 ArrayView out,
                                 int peer,
                                 const MessageOptions& options) {
  return send_recv(in, peer, out, peer, options);
}

Received Communicator::send_recv(
    ConstArrayView in, int destination, ArrayView out, int source, const MessageOptions& options) {
  require_plain(options);
  MessageOptions sending = options;
  sending.allow_shorter = sending.allow_longer = false;
  if (destination == kNullRank || source == kNullRank) {
    send(in, destination, sending);
    return recv(out, source, options);
  }
  const call::CallGuard guard(*impl_);
  impl_->require_usable();
  const Envelope to = envelope(*impl_, destination, true, in, sending);
  const Envelope from = envelope(*impl_, source, false, out, options);
  impl_->require_peer(to.peer);
  if (is_on_gpu(in) || is_on_gpu(out)) {
    require_one_memory(in, out);
    const Outgoing sent{in, to.peer};
    const Incoming received{out, source};
    const int sender = impl_->devices().messages.exchange({&sent, 1}, {&received, 1}, options);
    return {sender, options.tag, out.count(), out.dtype()};
  }
  const Incoming comes{out, source};
  std::vector<std::byte> copy;
  in = apart_from({&comes, 1}, in, copy);
  Received received;
  std::vector<MessageInFlight> left;  // allocates nothing in the usual case
  auto sends = send_now(*impl_, to, in);
  auto receives = recv_now(*impl_, from, out, Receive::kWaits, received);
  if (sends && !completes_soon(*sends, 0)) left.push_back(std::move(*sends));
  if (receives) left.push_back(std::move(*receives));
  if (!left.empty()) impl_->message_calls.run(left, options.deadline);
  return receives ? call::received_of(left.back().sender) : received;
}

void Communicator::exchange(std::span<const Outgoing> outgoing,
                            std::span<const Incoming> incoming,
                            const MessageOptions& options) {
  require_plain(options);
  refuse_options_of_receives(options);
  base::require_limit(options.deadline, "deadline");
  const call::CallGuard guard(*impl_);
  impl_->require_usable();
  for (const Outgoing& one : outgoing) envelope(*impl_, one.destination, true, one.in, options);
  for (const Incoming& one : incoming) envelope(*impl_, one.source, false, one.out, options);
  require_apart(incoming);
  const std::vector<Outgoing> sent = with_somebody(outgoing, &Outgoing::destination);
  const std::vector<Incoming> received = with_somebody(incoming, &Incoming::source);
  if (sent.empty() && received.empty()) return;
  const ConstArrayView first =
      sent.empty() ? ConstArrayView(received.front().out) : ConstArrayView(sent.front().in);
  for (const Outgoing& one : sent) {
    require_one_memory(first, one.in);
    impl_->require_peer(one.destination);
  }
  for (const Incoming& one : received) require_one_memory(first, one.out);
  if (is_on_gpu(first))
    return static_cast<void>(impl_->devices().messages.exchange(sent, received, options));
  std::vector<std::vector<std::byte>> copies(sent.size());
  std::vector<MessageInFlight> messages;
  messages.reserve(sent.size() + received.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const ConstArrayView in = apart_from(received, sent[i].in, copies[i]);
    const Envelope to = envelope(*impl_, sent[i].destination, true, in, options);
    if (auto message = send_now(*impl_, to, in)) messages.push_back(std::move(*message));
  }
  for (const Incoming& one : received) {
    const Envelope from = envelope(*impl_, one.source, false, one.out, options);
    Received ignored;
    if (auto message = recv_now(*impl_, from, one.out, Receive::kStarts, ignored)) {
      messages.push_back(std::move(*message));
    }
  }
  if (!messages.empty()) impl_->message_calls.run(messages, options.deadline);
}

}  // namespace hocket
