// The public verbs of messages between two ranks.
#include "call/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <iterator>
#include <vector>

#include "call/operation.h"
#include "device/calls.h"
#include "world/communicator_impl.h"

namespace hocket {

namespace {

using call::OwnedMessage;
using engine::Envelope;
using world::CommunicatorImpl;

std::span<const std::byte> bytes_of(ConstArrayView view) {
  return {static_cast<const std::byte*>(view.data()), view.bytes()};
}
std::span<std::byte> bytes_of(ArrayView view) {
  return {static_cast<std::byte*>(view.data()), view.bytes()};
}

call::OwnedMessage begin_send(CommunicatorImpl& impl, const Envelope& to, ConstArrayView in) {
  return {impl.messages(), impl.messages().send(to, bytes_of(in))};
}
call::OwnedMessage begin_recv(CommunicatorImpl& impl, const Envelope& from, ArrayView out) {
  return {impl.messages(), impl.messages().recv(from, bytes_of(out))};
}

// Whether a message is through within moments, as short ones are; disagreement is left to whoever
// waits in earnest.
bool is_through(call::OwnedMessage& message, int polls, Envelope* received) {
  try {
    for (; polls >= 0; --polls) {
      if (message.done(received)) return true;
      message.via().progress();
    }
  } catch (const engine::EnvelopeMismatch&) {
  }
  return false;
}
// The same of two, one each way.
bool are_through(call::OwnedMessage& outgoing, call::OwnedMessage& incoming, int polls) {
  return is_through(incoming, polls, nullptr) && is_through(outgoing, 0, nullptr);
}

bool is_on_gpu(ConstArrayView array) { return array.memory() == MemoryKind::kCuda; }

void require_one_memory(ConstArrayView a, ConstArrayView b) {
  if (a.memory() != b.memory()) {
    throw InvalidArgument("in and out lie in different kinds of memory");
  }
}

// What is put on a stream comes from whom it names, but where the call may wait to learn that.
int named(const Envelope& from) {
  if (from.peer == engine::kAnyPeer) {
    throw InvalidArgument(
        "source is any rank, and an asynchronous call on a GPU's array cannot wait to learn which; "
        "name it, or call recv");
  }
  return from.peer;
}

Envelope envelope(CommunicatorImpl& impl,
                  int peer,
                  bool sends,
                  ConstArrayView array,
                  const MessageOptions& options) {
  call::require_array(array, sends ? "in" : "out");
  const bool any = !sends && peer == kAnySource;
  if (impl.rank() >= 0 && !any && peer != kNullRank && (peer < 0 || peer >= impl.size())) {
    throw InvalidArgument(fmt::format("{} is {}, expected a rank from 0 to {}{}, or -2 for nobody",
                                      sends ? "destination" : "source",
                                      peer,
                                      impl.size() - 1,
                                      sends ? "" : ", -1 for any"));
  }
  const bool any_tag = !sends && options.tag == kAnyTag;
  if (options.tag < 0 && !any_tag) {
    throw InvalidArgument(fmt::format(
        "tag is {}, expected at least 0{}", options.tag, sends ? "" : ", or -1 for any"));
  }
  if (options.allow_shorter && (sends || is_on_gpu(array))) {
    throw InvalidArgument(sends ? "allow_shorter is of what is received"
                                : "allow_shorter is for arrays on the host, and out is on a GPU");
  }
  return {.peer = any ? engine::kAnyPeer : peer,
          .tag = any_tag ? engine::kAnyTag : static_cast<engine::Tag>(options.tag),
          .dtype = array.dtype(),
          .order = array.order(),
          .count = array.count(),
          .allows_shorter = options.allow_shorter};
}

// Of calls that do not tell what came.
void require_plain(const MessageOptions& options) {
  if (options.tag == kAnyTag) {
    throw InvalidArgument("tag is -1, any, which is for recv, recv_async and probe");
  }
  if (options.allow_shorter) {
    throw InvalidArgument("allow_shorter is for recv and recv_async");
  }
}

Received nothing_received(DType dtype, const MessageOptions& options) {
  return {.source = kNullRank, .tag = options.tag, .count = 0, .dtype = dtype};
}

// What a probe looks for: of any count and dtype.
Envelope probed(CommunicatorImpl& impl, int source, const MessageOptions& options) {
  if (options.stream) {
    throw InvalidArgument(
        "stream is given, but a probe tells of messages onto the host; leave it out");
  }
  if (options.allow_shorter) throw InvalidArgument("allow_shorter is for recv and recv_async");
  return envelope(impl, source, false, ConstArrayView(nullptr, 0, DType::kUInt8), options);
}

// Messages without those to or from nobody.
template <typename Message>
std::vector<Message> with_somebody(std::span<const Message> messages, int Message::*peer) {
  std::vector<Message> kept;
  std::ranges::copy_if(messages, std::back_inserter(kept), [&](const Message& one) {
    return one.*peer != kNullRank;
  });
  return kept;
}

// What two messages write would depend on which comes last.
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

void Communicator::send(ConstArrayView in, int destination, const MessageOptions& options) {
  const call::CallGuard guard(*impl_);
  impl_->require_usable();
  const Envelope to = envelope(*impl_, destination, true, in, options);
  if (to.peer == kNullRank) return;
  impl_->require_peer(to.peer);
  if (is_on_gpu(in)) {
    const Outgoing one{in, to.peer};
    impl_->devices().exchange({&one, 1}, {}, options);
    return;
  }
  call::TracedMessage traced = impl_->tracing().sends(to, in);
  call::trace_during(traced, [&] {
    call::OwnedMessage message = begin_send(*impl_, to, in);
    if (is_through(message, 0, nullptr)) return;
    impl_->run_message(call::finish(std::move(message), nullptr), {to, true}, options.deadline);
  });
}

Received Communicator::recv(ArrayView out, int source, const MessageOptions& options) {
  const call::CallGuard guard(*impl_);
  impl_->require_usable();
  const Envelope from = envelope(*impl_, source, false, out, options);
  if (from.peer == kNullRank) return nothing_received(out.dtype(), options);
  if (is_on_gpu(out)) {
    const Incoming one{out, source};
    const int sender = impl_->devices().exchange({}, {&one, 1}, options);
    return {sender, options.tag, out.count(), out.dtype()};
  }
  call::TracedMessage traced = impl_->tracing().receives(from, out);
  Received received;  // of this frame, which outlives the task
  call::trace_during(traced, [&] {
    call::OwnedMessage message = begin_recv(*impl_, from, out);
    Envelope sender;
    if (is_through(message, impl_->eager_polls(), &sender)) {
      received = call::received_of(sender);
    } else {
      impl_->run_message(call::finish(std::move(message), {std::shared_ptr<Received>(), &received}),
                         {from, false},
                         options.deadline);
    }
    traced.set_sender(received);
  });
  return received;
}

Work Communicator::send_async(ConstArrayView in, int destination, const MessageOptions& options) {
  const call::CallGuard guard(*impl_);
  impl_->require_usable();
  const Envelope to = envelope(*impl_, destination, true, in, options);
  if (to.peer == kNullRank) return {};
  impl_->require_peer(to.peer);
  if (is_on_gpu(in)) {
    const Outgoing one{in, to.peer};
    return Work(impl_->devices().start_exchange({&one, 1}, {}, options));
  }
  return Work(impl_->start_message(call::finish(begin_send(*impl_, to, in), nullptr),
                                   {to, true},
                                   options.deadline,
                                   impl_->tracing().sends(to, in)));
}

Work Communicator::recv_async(ArrayView out, int source, const MessageOptions& options) {
  const call::CallGuard guard(*impl_);
  impl_->require_usable();
  const Envelope from = envelope(*impl_, source, false, out, options);
  auto received = std::make_shared<Received>();
  std::shared_ptr<call::Operation> operation;
  if (from.peer == kNullRank) {
    *received = nothing_received(out.dtype(), options);
    operation = std::make_shared<call::Operation>(
        impl_->shared_from_this(), base::Deadline::in(kForever), kForever);
    operation->received = std::move(received);
    operation->finish(nullptr);
    return Work(std::move(operation));
  }
  if (is_on_gpu(out)) {
    *received = {named(from), options.tag, out.count(), out.dtype()};
    const Incoming one{out, from.peer};
    operation = impl_->devices().start_exchange({}, {&one, 1}, options);
  } else {
    operation = impl_->start_message(call::finish(begin_recv(*impl_, from, out), received),
                                     {from, false},
                                     options.deadline,
                                     impl_->tracing().receives(from, out));
  }
  operation->received = std::move(received);
  return Work(std::move(operation));
}

std::optional<Received> Communicator::probe_now(int source, const MessageOptions& options) {
  const call::CallGuard guard(*impl_);
  impl_->require_usable();
  const Envelope from = probed(*impl_, source, options);
  if (from.peer == kNullRank) return nothing_received(DType::kUInt8, options);
  const auto found = impl_->find_message({.envelope = from, .probes = true});
  if (!found) return std::nullopt;
  return call::received_of(*found);
}

Received Communicator::probe(int source, const MessageOptions& options) {
  const call::CallGuard guard(*impl_);
  impl_->require_usable();
  const Envelope from = probed(*impl_, source, options);
  if (from.peer == kNullRank) return nothing_received(DType::kUInt8, options);
  Received found;  // of this frame, which outlives the task
  impl_->run_message(call::await(impl_->messages(), from, found),
                     {.envelope = from, .sends = false, .probes = true},
                     options.deadline);
  return found;
}

void Communicator::send_recv(ConstArrayView in,
                             ArrayView out,
                             int peer,
                             const MessageOptions& options) {
  send_recv(in, peer, out, peer, options);
}

void Communicator::send_recv(
    ConstArrayView in, int destination, ArrayView out, int source, const MessageOptions& options) {
  require_plain(options);
  if (destination == kNullRank || source == kNullRank) {
    send(in, destination, options);
    recv(out, source, options);
    return;
  }
  std::vector<std::byte> copy;
  Work sends;
  {
    const call::CallGuard guard(*impl_);
    impl_->require_usable();
    const Envelope to = envelope(*impl_, destination, true, in, options);
    const Envelope from = envelope(*impl_, source, false, out, options);
    impl_->require_peer(to.peer);
    if (is_on_gpu(in) || is_on_gpu(out)) {
      require_one_memory(in, out);
      const Outgoing sent{in, to.peer};
      const Incoming received{out, source};
      impl_->devices().exchange({&sent, 1}, {&received, 1}, options);
      return;
    }
    // What would be overwritten before it is sent goes through a copy.
    const Incoming comes{out, source};
    if (call::is_received_into(in, {&comes, 1})) {
      const auto* bytes = static_cast<const std::byte*>(in.data());
      copy.assign(bytes, bytes + in.bytes());
      in = ConstArrayView(copy.data(), in.count(), in.dtype()).in_order(in.order());
    }
    if (destination == source) {
      call::TracedMessage sent = impl_->tracing().sends(to, in);
      call::TracedMessage received = impl_->tracing().receives(from, out);
      const auto both = [&] {
        call::OwnedMessage outgoing = begin_send(*impl_, to, in);
        call::OwnedMessage incoming = begin_recv(*impl_, from, out);
        if (are_through(outgoing, incoming, impl_->eager_polls())) return;
        impl_->run_message(call::finish_both(std::move(outgoing), std::move(incoming)),
                           {from, false},
                           options.deadline);
      };
      return call::trace_during(received, [&] { call::trace_during(sent, both); });
    }
    // Two peers, each of whom is needed until its own message is through and no longer.
    call::TracedMessage sent = impl_->tracing().sends(to, in);
    call::OwnedMessage outgoing = begin_send(*impl_, to, in);
    if (is_through(outgoing, 0, nullptr)) {
      sent.end(false);
    } else {
      sends = Work(impl_->start_message(call::finish(std::move(outgoing), nullptr),
                                        {to, true},
                                        options.deadline,
                                        std::move(sent)));
    }
  }
  recv(out, source, options);
  sends.wait();
}

void Communicator::exchange(std::span<const Outgoing> outgoing,
                            std::span<const Incoming> incoming,
                            const MessageOptions& options) {
  require_plain(options);
  std::vector<Outgoing> sent;
  std::vector<Incoming> received;
  {
    const call::CallGuard guard(*impl_);
    impl_->require_usable();
    for (const Outgoing& one : outgoing) envelope(*impl_, one.destination, true, one.in, options);
    for (const Incoming& one : incoming) envelope(*impl_, one.source, false, one.out, options);
    require_apart(incoming);
    sent = with_somebody(outgoing, &Outgoing::destination);
    received = with_somebody(incoming, &Incoming::source);
    outgoing = sent;
    incoming = received;
    if (outgoing.empty() && incoming.empty()) return;
    const ConstArrayView first =
        outgoing.empty() ? ConstArrayView(incoming.front().out) : outgoing.front().in;
    for (const Outgoing& one : outgoing) {
      require_one_memory(first, one.in);
      impl_->require_peer(one.destination);
    }
    for (const Incoming& one : incoming) require_one_memory(first, one.out);
    if (is_on_gpu(first)) {
      impl_->devices().exchange(outgoing, incoming, options);
      return;
    }
  }
  std::deque<std::vector<std::byte>> copies;
  std::vector<Work> works;
  for (Outgoing one : outgoing) {
    if (call::is_received_into(one.in, incoming)) {
      const auto bytes = bytes_of(one.in);
      const auto& copy = copies.emplace_back(bytes.begin(), bytes.end());
      one.in = ConstArrayView(copy.data(), one.in.count(), one.in.dtype()).in_order(one.in.order());
    }
    works.push_back(send_async(one.in, one.destination, options));
  }
  for (const Incoming& one : incoming) {
    works.push_back(recv_async(one.out, one.source, options));
  }
  for (Work& work : works) work.wait();
}

}  // namespace hocket
