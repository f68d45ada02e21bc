#include "calls/call/tracing.h"

#include <algorithm>
#include <utility>

namespace hocket::call {

using engine::Kind;

void TracedMessage::Traced::set_sender(const Received& received) noexcept {
  span.set_peer(received.source);
  from.peer = received.source;
  from.tag = static_cast<engine::Tag>(received.tag);
  if (received.count > out.count()) receiving = nullptr;  // only part of the sent data is here
  if (received.count < out.count()) {
    out = ConstArrayView(out.data(), received.count, out.dtype());
    counted.set_bytes(out.bytes());
  }
}

void TracedMessage::Traced::end(bool failed) noexcept {
  span.end(failed);
  counted.end(failed);
  Auditing* const audit = std::exchange(receiving, nullptr);
  if (audit != nullptr && !failed) audit->received(from, out);
}

Tracing::Tracing(std::shared_ptr<observe::TraceFile> file,
                 std::shared_ptr<observe::AuditFile> audit,
                 const Membership& membership,
                 control::HostMemory& memory)
    : file_(membership.rank < 0 ? nullptr : std::move(file)),
      size_(membership.size()),
      meter_(memory, membership.name),
      auditing_(std::move(audit), membership) {
  is_on_ = file_ != nullptr || meter_.is_on() || auditing_.is_on();
  if (file_ != nullptr)
    group_ = file_->add_group(membership.id(), membership.name, size_, membership.rank);
}

void Tracing::audit_in(std::shared_ptr<observe::AuditFile> audit) noexcept {
  auditing_.keep_in(std::move(audit));
  is_on_ = file_ != nullptr || meter_.is_on() || auditing_.is_on();
}

// A collective still in progress has been given up.
Tracing::~Tracing() { collective_.end(true); }

observe::TracedBegin Tracing::describe(const engine::Signature& signature,
                                       std::uint64_t sequence) const {
  return {.group = group_,
          .name = name_of(signature.kind),
          .sequence = sequence,
          .dtype = signature.dtype,
          .bytes = engine::whole_bytes(signature, size_),
          .peer = engine::is_rooted(signature.kind) ? signature.root : -1};
}

void Tracing::begin(const engine::Call& call,
                    const engine::Signature& shown,
                    std::string_view engine,
                    Arrays arrays) {
  if (auditing_.is_on()) auditing_.begin(call, shown, arrays);
  const std::size_t bytes = std::max(engine::whole_bytes(shown, size_), call.own_bytes);
  counted_.end(true);
  counted_ = meter_.begin({.kind = shown.kind, .engine = engine, .bytes = bytes});
  if (file_ == nullptr) return;
  auto begun = describe(shown, call.sequence);
  begun.engine = engine;
  begun.bytes = bytes;
  collective_.end(true);
  collective_ = observe::Span(file_.get(), begun);
}

TracedLaunch Tracing::device(const engine::Signature& call,
                             std::uint64_t sequence,
                             std::string_view engine) const {
  auditing_.unread(call, sequence);
  if (file_ == nullptr && !meter_.is_on()) return {};
  auto begun = describe(call, sequence);
  begun.engine = engine;
  begun.on_gpu = true;
  return {observe::Span(file_.get(), begun),
          meter_.begin({.kind = call.kind,
                        .engine = engine,
                        .bytes = begun.bytes,
                        .timed = LiveTimed::kLaunch})};
}

CountedTogether Tracing::on_stream(const engine::Signature& call, std::string_view engine) const {
  CountedTogether counted;
  counted.add(meter_.begin({.kind = call.kind,
                            .engine = engine,
                            .bytes = engine::whole_bytes(call, size_),
                            .timed = LiveTimed::kOnStream}));
  return counted;
}

void Tracing::messages(CountedTogether& counted,
                       LiveTimed timed,
                       std::span<const Outgoing> outgoing,
                       std::span<const Incoming> incoming,
                       std::string_view engine) const {
  if (!meter_.is_on()) return;
  const auto add = [&](Kind kind, ConstArrayView array) {
    counted.add(
        meter_.begin({.kind = kind, .engine = engine, .bytes = array.bytes(), .timed = timed}));
  };
  for (const Outgoing& one : outgoing) add(Kind::kSend, one.in);
  for (const Incoming& one : incoming) add(Kind::kRecv, one.out);
}

TracedMessage Tracing::message(const engine::Envelope& envelope,
                               bool sends,
                               ConstArrayView array) const {
  if (sends && auditing_.is_on()) auditing_.sent(envelope, array);
  const Kind kind = sends ? Kind::kSend : Kind::kRecv;
  observe::Span span;
  if (file_ != nullptr) {
    span = {file_.get(),
            {.group = group_,
             .name = name_of(kind),
             .engine = {},
             .dtype = envelope.dtype,
             .bytes = array.bytes(),
             .peer = envelope.peer}};
  }
  return {std::move(span),
          meter_.begin({.kind = kind, .bytes = array.bytes()}),
          !sends && auditing_.is_on() ? &auditing_ : nullptr,
          envelope,
          array};
}

}  // namespace hocket::call
