#include "comm/messages.h"

#include <fmt/format.h>

#include "comm/communicator_impl.h"
#include "comm/operation.h"

namespace hocket {
namespace comm {

using engine::Envelope;
using engine::MessageId;
using engine::PointToPoint;
using engine::Task;

namespace {

// A message under way: cancelled, synchronously, unless it was seen done.
class Pending {
 public:
  Pending(PointToPoint& via, MessageId id) : via_(via), id_(id) {}
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  ~Pending() {
    if (!done_) via_.cancel(id_);
  }
  bool done(Envelope* received = nullptr) {
    if (!done_) done_ = via_.test(id_, received);
    return done_;
  }

 private:
  PointToPoint& via_;
  MessageId id_;
  bool done_ = false;
};

std::span<const std::byte> bytes_of(ConstArrayView view) {
  return {static_cast<const std::byte*>(view.data()), view.bytes()};
}
std::span<std::byte> bytes_of(ArrayView view) {
  return {static_cast<std::byte*>(view.data()), view.bytes()};
}

}  // namespace

Task send_message(PointToPoint& via, Envelope to, ConstArrayView in) {
  Pending message(via, via.send(to, bytes_of(in)));
  co_await engine::until([&] {
    if (message.done()) return true;
    via.progress();
    return message.done();
  });
}

Task receive_message(PointToPoint& via, Envelope from, ArrayView out, Received* received) {
  Pending message(via, via.recv(from, bytes_of(out)));
  Envelope sender;
  co_await engine::until([&] {
    via.progress();
    return message.done(&sender);
  });
  if (received != nullptr) *received = {sender.peer, static_cast<int>(sender.tag)};
}

Task send_and_receive(
    PointToPoint& via, Envelope to, ConstArrayView in, Envelope from, ArrayView out) {
  Pending outgoing(via, via.send(to, bytes_of(in)));
  Pending incoming(via, via.recv(from, bytes_of(out)));
  co_await engine::until([&] {
    via.progress();
    return static_cast<int>(outgoing.done()) + static_cast<int>(incoming.done()) == 2;
  });
}

}  // namespace comm

// --- The public verbs ---------------------------------------------------------------------------

namespace {

using comm::CommunicatorImpl;
using engine::Envelope;

void check_array(const void* data, std::size_t count, MemoryKind memory, const char* name) {
  if (data == nullptr && count != 0) {
    throw InvalidArgument(fmt::format("{} has {} elements at a null address", name, count));
  }
  if (memory != MemoryKind::kHost) {
    throw InvalidArgument(
        fmt::format("{} lies in GPU memory, which no engine of this communicator carries", name));
  }
}

Envelope envelope(CommunicatorImpl& impl,
                  int peer,
                  bool sends,
                  ConstArrayView array,
                  const MessageOptions& options) {
  check_array(array.data(), array.count(), array.memory(), sends ? "in" : "out");
  const bool any = !sends && peer == kAnySource;
  if (impl.rank() >= 0 && !any && (peer < 0 || peer >= impl.size())) {
    throw InvalidArgument(fmt::format("{} is {}, expected a rank from 0 to {}{}",
                                      sends ? "destination" : "source",
                                      peer,
                                      impl.size() - 1,
                                      sends ? "" : " or kAnySource"));
  }
  if (options.tag < 0) {
    throw InvalidArgument(fmt::format("tag is {}, expected at least 0", options.tag));
  }
  return {.peer = any ? engine::kAnyPeer : peer,
          .tag = static_cast<engine::Tag>(options.tag),
          .dtype = array.dtype(),
          .count = array.count()};
}

RankCall describe(const CommunicatorImpl& impl, const Envelope& e, bool sends) {
  return {
      .rank = impl.rank(),
      .sequence = 0,
      .call = fmt::format("{} of {}[{}] {} {} tag {}",
                          sends ? "send" : "recv",
                          name_of(e.dtype),
                          e.count,
                          sends ? "to" : "from",
                          e.peer == engine::kAnyPeer ? "any rank" : fmt::format("rank {}", e.peer),
                          e.tag)};
}

}  // namespace

void Communicator::send(ConstArrayView in, int destination, const MessageOptions& options) {
  const comm::Seat seat(*impl_);
  impl_->require_usable();
  const Envelope to = envelope(*impl_, destination, true, in, options);
  impl_->run_message(
      comm::send_message(impl_->messages(), to, in),
      to.peer,
      [&] { return describe(*impl_, to, true); },
      options.deadline);
}

Received Communicator::recv(ArrayView out, int source, const MessageOptions& options) {
  const comm::Seat seat(*impl_);
  impl_->require_usable();
  const Envelope from = envelope(*impl_, source, false, out, options);
  Received received;
  impl_->run_message(
      comm::receive_message(impl_->messages(), from, out, &received),
      from.peer,
      [&] { return describe(*impl_, from, false); },
      options.deadline);
  return received;
}

Work Communicator::send_async(ConstArrayView in, int destination, const MessageOptions& options) {
  const comm::Seat seat(*impl_);
  impl_->require_usable();
  const Envelope to = envelope(*impl_, destination, true, in, options);
  return Work(impl_->start_message(comm::send_message(impl_->messages(), to, in),
                                   to.peer,
                                   describe(*impl_, to, true),
                                   options.deadline));
}

Work Communicator::recv_async(ArrayView out, int source, const MessageOptions& options) {
  const comm::Seat seat(*impl_);
  impl_->require_usable();
  const Envelope from = envelope(*impl_, source, false, out, options);
  return Work(impl_->start_message(comm::receive_message(impl_->messages(), from, out, nullptr),
                                   from.peer,
                                   describe(*impl_, from, false),
                                   options.deadline));
}

void Communicator::send_recv(ConstArrayView in,
                             ArrayView out,
                             int peer,
                             const MessageOptions& options) {
  send_recv(in, peer, out, peer, options);
}

void Communicator::send_recv(
    ConstArrayView in, int destination, ArrayView out, int source, const MessageOptions& options) {
  std::vector<std::byte> copy;
  {
    const comm::Seat seat(*impl_);
    impl_->require_usable();
    const Envelope to = envelope(*impl_, destination, true, in, options);
    const Envelope from = envelope(*impl_, source, false, out, options);
    // In place: what is sent goes through a copy.
    if (in.data() == out.data() && in.bytes() != 0) {
      const auto* bytes = static_cast<const std::byte*>(in.data());
      copy.assign(bytes, bytes + in.bytes());
      in = ConstArrayView(copy.data(), in.count(), in.dtype());
    }
    if (destination == source) {
      impl_->run_message(
          comm::send_and_receive(impl_->messages(), to, in, from, out),
          from.peer,
          [&] { return describe(*impl_, from, false); },
          options.deadline);
      return;
    }
  }
  // Two peers, each of whom is needed until its own message is through and no longer.
  Work sends = send_async(in, destination, options);
  recv(out, source, options);
  sends.wait();
}

}  // namespace hocket
