// Objects between two ranks. The first message has the size, and as many bytes as fit. A second
// message, under its own tag, has the rest. So other messages may come between the two.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "calls/call/messages.h"
#include "calls/world/communicator_impl.h"
#include "hocket/communicator.h"
#include "hocket/error.h"
#include "hocket/object.h"

namespace hocket {
namespace {

using call::OwnedMessage;
using engine::Envelope;
using engine::PointToPoint;
using engine::Task;

// The tag of a rest is this tag plus the object's number.
constexpr engine::Tag kObjectTag = engine::kStagedTag << 1;

// The first message of an object.
struct Opening {
  static constexpr std::uint64_t kObject = 0x32746a626f6b6368;
  std::uint64_t what = kObject;
  std::uint64_t size = 0;
  std::uint64_t number = 0;  // the number in the tag of the rest
  std::array<std::byte, 232> part{};

  std::size_t part_size() const { return std::min<std::size_t>(size, part.size()); }
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(this, 1)); }
  Envelope rest(int peer) const {
    return {.peer = peer,
            .tag = kObjectTag + (number & 0xffffffff),
            .dtype = DType::kUInt8,
            .count = size - part_size()};
  }
};

ConstArrayView view_of(std::span<const std::byte> bytes) {
  return {bytes.data(), bytes.size(), DType::kUInt8};
}

// The state of an object that is being sent or received.
struct Travelling {
  std::vector<std::byte> bytes;
  Opening opening;
  Received from;
  std::string fault;  // the error, if the received bytes are no object

  std::span<std::byte> rest() { return std::span(bytes).subspan(opening.part_size()); }
};
using SharedTravelling = std::shared_ptr<Travelling>;

Task send_both(PointToPoint& via, Envelope to, SharedTravelling sent) {
  OwnedMessage first(via, via.send(to, sent->opening.bytes()));
  OwnedMessage rest;
  if (!sent->rest().empty()) {
    rest = OwnedMessage(via, via.send(sent->opening.rest(to.peer), sent->rest()));
  }
  co_await engine::until([&] {
    if (first.done() && rest.done()) return true;
    via.progress_wanted();
    return first.done() && rest.done();
  });
}

Task receive_first(PointToPoint& via, Envelope from, Travelling& taken) {
  Envelope sender;
  OwnedMessage first(via, via.recv(from, taken.opening.bytes()));
  co_await engine::until([&] {
    if (first.done(&sender)) return true;
    via.progress_wanted();
    return first.done(&sender);
  });
  taken.from = call::received_of(sender);
}

// Receives the rest of an object. Allocates memory only after a rest of the announced size has
// arrived, because a sender could forge the announced size.
Task receive_rest(PointToPoint& via, Travelling& taken) {
  const Envelope wanted = taken.opening.rest(taken.from.source);
  std::optional<Envelope> next;
  co_await engine::until([&] {
    via.progress();
    next = via.waiting(wanted);
    return next.has_value();
  });
  if (next->count != wanted.count || next->dtype != wanted.dtype) {
    taken.fault = fmt::format("rank {} announced {} bytes more of its object, and sent {}[{}]",
                              taken.from.source,
                              wanted.count,
                              name_of(next->dtype),
                              next->count);
    co_return;
  }
  taken.bytes.resize(taken.opening.size);
  OwnedMessage rest(via, via.recv(wanted, taken.rest()));
  co_await engine::until([&] {
    if (rest.done()) return true;
    via.progress_wanted();
    return rest.done();
  });
}

// Stores errors in the received data instead of throwing them, which would end all pending calls.
Task receive_both(PointToPoint& via, Envelope from, SharedTravelling taken) {
  co_await receive_first(via, from, *taken);
  Opening& opening = taken->opening;
  if (opening.what != Opening::kObject) {
    taken->fault = fmt::format("what rank {} sent under tag {} is an array; it is received by recv",
                               taken->from.source,
                               taken->from.tag);
    co_return;
  }
  if (opening.size > opening.part.size()) {
    co_await receive_rest(via, *taken);
    if (!taken->fault.empty()) co_return;
  } else {
    taken->bytes.resize(opening.size);
  }
  std::copy_n(opening.part.begin(), opening.part_size(), taken->bytes.begin());
}

void require_host(const MessageOptions& options) {
  if (!options.stream) return;
  throw InvalidArgument("stream is given, but objects lie in the host's memory; leave it out");
}

// The description of an object's message in errors.
failure::MessageCall whole(const Envelope& first, bool sends) {
  return {.envelope = first, .sends = sends, .is_object = true};
}

SharedTravelling packed(world::CommunicatorImpl& impl, std::vector<std::byte> bytes) {
  auto sent = std::make_shared<Travelling>();
  sent->bytes = std::move(bytes);
  sent->opening.size = sent->bytes.size();
  sent->opening.number = impl.next_object();
  std::copy_n(sent->bytes.begin(), sent->opening.part_size(), sent->opening.part.begin());
  return sent;
}

ReceivedObject unpacked(const Travelling& taken) {
  if (taken.from.source == kNullRank) return {Object(), taken.from};
  if (!taken.fault.empty()) throw InvalidArgument("recv_object: " + taken.fault);
  return {decode(taken.bytes), taken.from};
}

// Calls `run` in the turn, with the envelope and the state of an object's message to send or
// receive.
template <typename Run>
void sending(Communicator& comm,
             const Object& object,
             int destination,
             const MessageOptions& options,
             const Run& run) {
  require_host(options);
  std::vector<std::byte> bytes = encode(object);
  world::CommunicatorImpl& impl = *comm.impl();
  const call::CallGuard guard(impl);
  impl.require_usable();
  const SharedTravelling sent = packed(impl, std::move(bytes));
  const Envelope to = impl.envelope_of(destination, true, view_of(sent->opening.bytes()), options);
  if (to.peer != kNullRank) impl.require_peer(to.peer);
  run(impl, to, sent);
}
template <typename Run>
void receiving(Communicator& comm, int source, const MessageOptions& options, const Run& run) {
  require_host(options);
  world::CommunicatorImpl& impl = *comm.impl();
  const call::CallGuard guard(impl);
  impl.require_usable();
  const auto taken = std::make_shared<Travelling>();
  const Envelope from = impl.envelope_of(source, false, view_of(taken->opening.bytes()), options);
  taken->from = {.source = kNullRank, .tag = options.tag};
  run(impl, from, taken);
}

}  // namespace

void send_object(Communicator& comm,
                 const Object& object,
                 int destination,
                 const MessageOptions& options) {
  sending(comm,
          object,
          destination,
          options,
          [&](auto& impl, const Envelope& to, SharedTravelling sent) {
            if (to.peer == kNullRank) return;
            auto traced = impl.tracing().sends(to, view_of(sent->opening.bytes()));
            impl.message_calls.run(
                send_both(impl.messages(), to, sent), whole(to, true), options.deadline);
            traced.end(false);
          });
}

ReceivedObject recv_object(Communicator& comm, int source, const MessageOptions& options) {
  SharedTravelling received;
  receiving(comm, source, options, [&](auto& impl, const Envelope& from, SharedTravelling taken) {
    received = taken;
    if (from.peer == kNullRank) return;
    auto traced = impl.tracing().receives(
        from, {taken->opening.bytes().data(), sizeof(Opening), DType::kUInt8});
    impl.message_calls.run(
        receive_both(impl.messages(), from, taken), whole(from, false), options.deadline);
    traced.set_sender(taken->from);
    traced.end(false);
  });
  return unpacked(*received);
}

Work send_object_async(Communicator& comm,
                       const Object& object,
                       int destination,
                       const MessageOptions& options) {
  std::shared_ptr<call::Operation> started;
  sending(comm,
          object,
          destination,
          options,
          [&](auto& impl, const Envelope& to, SharedTravelling sent) {
            started =
                to.peer == kNullRank
                    ? impl.message_calls.ended()
                    : impl.message_calls.start(
                          send_both(impl.messages(), to, sent), whole(to, true), options.deadline);
          });
  return Work(std::move(started));
}

ObjectWork<ReceivedObject> recv_object_async(Communicator& comm,
                                             int source,
                                             const MessageOptions& options) {
  std::shared_ptr<call::Operation> started;
  SharedTravelling received;
  receiving(comm, source, options, [&](auto& impl, const Envelope& from, SharedTravelling taken) {
    received = taken;
    started =
        from.peer == kNullRank
            ? impl.message_calls.ended()
            : impl.message_calls.start(
                  receive_both(impl.messages(), from, taken), whole(from, false), options.deadline);
  });
  return {Work(std::move(started)), [received] { return unpacked(*received); }};
}

}  // namespace hocket
