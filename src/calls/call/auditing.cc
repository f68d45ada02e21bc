#include "calls/call/auditing.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "foundation/base/log.h"

namespace hocket::call {

using engine::Has;
using engine::Kind;
using engine::Signature;
using observe::AuditArray;
using observe::AuditFile;
using observe::AuditRecord;
using observe::AuditState;

Auditing::Auditing(std::shared_ptr<AuditFile> file, const Membership& membership)
    : rank_(membership.rank), size_(membership.size()), name_(membership.name) {
  keep_in(std::move(file));
}

void Auditing::keep_in(std::shared_ptr<AuditFile> file) noexcept {
  under_.place = {};  // the output of the call in progress is not digested
  is_on_ = file != nullptr && rank_ >= 0;
  if (!is_on_ || file_ != nullptr) return;
  file_ = std::move(file);
  group_ = file_->add_group(name_, size_, rank_);
}

// --- Where the arrays lie -----------------------------------------------------------------------

Auditing::Laid Auditing::laid(const engine::Call& call,
                              const void* data,
                              Has has,
                              const engine::PartsView& parts) const noexcept {
  const auto* const bytes = static_cast<const std::byte*>(data);
  if (bytes == nullptr) return {};
  switch (has) {
    case Has::kNothing:
      return {};
    case Has::kCount:
      return {.data = bytes, .bytes = engine::bytes_of(call.signature)};
    case Has::kShare:
      return {.data = bytes, .bytes = engine::own_bytes(call)};
    case Has::kAll:
      break;
  }
  if (!is_listed(call.signature.kind)) {
    return {.data = bytes, .bytes = engine::whole_bytes(call.signature, size_)};
  }
  Laid listed{.data = bytes, .parts = parts};
  for (int r = 0; r < size_; ++r) listed.bytes += parts.bytes[r];
  return listed;
}

std::size_t Auditing::parts_of(const Laid& array) const noexcept {
  return array.parts.bytes == nullptr ? 0 : static_cast<std::size_t>(size_);
}
Auditing::Extent Auditing::piece(const Laid& array, std::size_t part) const noexcept {
  if (array.parts.bytes == nullptr) return {array.data, array.bytes};
  return {array.data + array.parts.offsets[part], array.parts.bytes[part]};
}
std::size_t Auditing::blocks_of(const Laid& array) const noexcept {
  const std::size_t block = observe::audit_block_bytes(array.bytes);
  std::size_t blocks = 0;
  for (std::size_t i = 0; i < std::max<std::size_t>(1, parts_of(array)); ++i) {
    blocks += core::block_count(piece(array, i).bytes, block);
  }
  return blocks;
}
AuditArray Auditing::shape_of(const Laid& array) const noexcept {
  return {.bytes = array.bytes,
          .blocks = static_cast<std::uint32_t>(blocks_of(array)),
          .parts = static_cast<std::uint32_t>(parts_of(array))};
}

// --- Shapes -------------------------------------------------------------------------------------

const Auditing::KnownShape* Auditing::find(const Asked& asked) noexcept {
  // Searches from the last hit, because programs repeat the same calls.
  for (std::size_t i = 0; i < known_shapes_.size(); ++i) {
    const std::size_t at = (found_at_ + i) % known_shapes_.size();
    const KnownShape& shape = known_shapes_[at];
    if (shape.call == asked.call && shape.shown == asked.shown && shape.is_read == asked.is_read &&
        shape.has_in == asked.has_in && shape.has_out == asked.has_out) {
      found_at_ = at;
      return &shape;
    }
  }
  return nullptr;
}

const Auditing::KnownShape* Auditing::keep(const Asked& asked,
                                           const Laid& in,
                                           const Laid& out) noexcept {
  const Signature& shown = asked.shown;
  const bool is_message = shown.kind == Kind::kSend || shown.kind == Kind::kRecv;
  observe::AuditShape shape{.group = group_,
                            .peer = is_message || engine::is_rooted(shown.kind) ? shown.root : -1,
                            .tag = is_message ? static_cast<std::int32_t>(shown.digest) : 0,
                            .dtype = static_cast<std::uint8_t>(asked.call.dtype),
                            .op = static_cast<std::uint8_t>(shown.op),
                            .unused = 0,
                            .in = shape_of(in),
                            .out = shape_of(out),
                            .name = {}};
  if (!asked.is_read) shape.in.bytes = engine::whole_bytes(shown, size_);
  shape.name = name_of(shown.kind);
  const auto number = file_->add_shape(shape, in.parts.bytes, out.parts.bytes);
  if (!number) return nullptr;
  found_at_ = std::exchange(oldest_, (oldest_ + 1) % known_shapes_.size());
  known_shapes_[found_at_] = {.call = asked.call,
                              .shown = shown,
                              .number = *number,
                              .blocks = shape.in.blocks + shape.out.blocks,
                              .in_bytes = in.bytes,
                              .out_bytes = out.bytes,
                              .is_read = asked.is_read,
                              .has_in = asked.has_in,
                              .has_out = asked.has_out};
  return &known_shapes_[found_at_];
}

// --- Digests ------------------------------------------------------------------------------------

void Auditing::digest(Under& call, std::uint8_t which) noexcept {
  static_assert(sizeof(core::Digest) == observe::kDigestWords * observe::kWord);
  call.place.record->digested |= which;
  const Laid& array = which == observe::kInDigested ? call.in : call.out;
  if (array.bytes == 0) return;
  const std::size_t block = observe::audit_block_bytes(array.bytes);
  std::optional<std::size_t> first;  // element
  std::size_t before = 0;            // elements
  for (std::size_t i = 0; i < std::max<std::size_t>(1, parts_of(array)); ++i) {
    const Extent here = piece(array, i);
    const auto found = core::digest_blocks(
        here.data, here.bytes, block, call.dtype, reinterpret_cast<core::Digest*>(call.words));
    if (found && !first) [[unlikely]] {
      const std::size_t each = size_of(call.dtype);
      const std::size_t begin = *found * block;
      const auto element = core::first_non_finite(
          here.data + begin, std::min(block, here.bytes - begin) / each, call.dtype);
      // Another thread may have overwritten that element meanwhile. In that case no element is
      // found, and this reports the first element of the block.
      first = before + begin / each + element.value_or(0);
    }
    call.words += observe::kDigestWords * core::block_count(here.bytes, block);
    before += here.bytes / size_of(call.dtype);
  }
  if (first) [[unlikely]]
    note_non_finite(call, which, *first);
}

// Logs only the first infinite number or NaN of each communicator on this rank, because many
// follow.
void Auditing::note_non_finite(const Under& call,
                               std::uint8_t which,
                               std::size_t element) noexcept {
  file_->add_non_finite(call.place.at, which, element);
  if (std::exchange(warned_, true)) return;
  try {
    const std::uint64_t sequence = call.place.record->sequence;
    base::log(base::LogLevel::kWarning,
              fmt::format("element {} of what {} {}{} of communicator {} on rank {} is infinite or "
                          "no number, the first such that is seen here",
                          element,
                          which == observe::kInDigested ? "goes into" : "comes out of",
                          name_of(call.kind),
                          sequence == 0 ? fmt::format(" of rank {}", call.peer)
                                        : fmt::format(" #{}", sequence),
                          name_,
                          rank_));
  } catch (...) {  // the log failed; the audit file still has the element
  }
}

// --- Collectives --------------------------------------------------------------------------------

void Auditing::begin(const engine::Call& call, const Signature& shown, Arrays arrays) noexcept {
  end(true);  // ends an earlier collective that was given up
  // Audits only data that a program computes. Calls of internal kinds, such as a communicator's own
  // exchange of addresses, are left out. Host calls that precede a call on GPUs are left out, too.
  const engine::KindRow& row = row_of(shown.kind);
  const bool is_of_data =
      (row.done == engine::Done::kByEngines || row.operates) &&
      (arrays == Arrays::kComing || (arrays == Arrays::kHere && shown.memory == MemoryKind::kHost));
  const void* const in = is_of_data ? call.in : nullptr;
  const void* const out = is_of_data ? call.out : nullptr;
  const Asked asked{.call = call.signature,
                    .shown = shown,
                    .is_read = arrays != Arrays::kElsewhere,
                    .has_in = in != nullptr,
                    .has_out = out != nullptr};
  const bool listed = is_listed(call.signature.kind);
  // Calls in parts get no known shape, because their parts differ from call to call.
  const KnownShape* shape = listed ? nullptr : find(asked);
  if (shape != nullptr) {
    under_.in = {.data = static_cast<const std::byte*>(in), .bytes = shape->in_bytes};
    under_.out = {.data = static_cast<const std::byte*>(out), .bytes = shape->out_bytes};
  } else {
    const Kind kind = call.signature.kind;
    const bool at_root = rank_ == call.signature.root;
    under_.in = laid(call, in, engine::given(kind, at_root), call.in_parts);
    under_.out = laid(call, out, engine::taken(kind, at_root), call.out_parts);
    shape = keep(asked, under_.in, under_.out);
    if (shape == nullptr) return;
  }
  under_.place = file_->next(observe::kDigestWords * std::size_t{shape->blocks});
  AuditRecord* const record = under_.place.record;
  if (record == nullptr) return;
  record->number = shape->number;
  record->sequence = call.sequence;
  under_.words = reinterpret_cast<std::uint64_t*>(record + 1);
  under_.dtype = call.signature.dtype;
  under_.kind = shown.kind;
  under_.is_elsewhere = arrays == Arrays::kElsewhere;
  if (arrays == Arrays::kHere) arrived();
  AuditFile::publish(*record, AuditState::kBegun);
}

void Auditing::arrived() noexcept {
  if (under_.place.record != nullptr) digest(under_, observe::kInDigested);
}

void Auditing::end(bool failed) noexcept {
  AuditRecord* const record = under_.place.record;
  if (record == nullptr) return;
  if (!failed && !under_.is_elsewhere) digest(under_, observe::kOutDigested);
  AuditFile::publish(*record, failed ? AuditState::kFailed : AuditState::kDone);
  under_.place.record = nullptr;
}

void Auditing::unread(const Signature& shown, std::uint64_t sequence) noexcept {
  if (!is_on_) return;
  const Asked asked{.call = shown, .shown = shown};
  const KnownShape* shape = find(asked);
  if (shape == nullptr) shape = keep(asked, {}, {});
  if (shape == nullptr) return;
  AuditRecord* const record = file_->next(0).record;
  if (record == nullptr) return;
  record->number = shape->number;
  record->sequence = sequence;
  AuditFile::publish(*record, AuditState::kDone);
}

// --- Messages -----------------------------------------------------------------------------------

void Auditing::note_message(const engine::Envelope& envelope,
                            bool sends,
                            ConstArrayView array) noexcept {
  const Laid laid{.data = static_cast<const std::byte*>(array.data()), .bytes = array.bytes()};
  Under call{.in = sends ? laid : Laid(), .out = sends ? Laid() : laid};
  call.dtype = array.dtype();
  call.kind = sends ? Kind::kSend : Kind::kRecv;
  call.peer = envelope.peer;
  // The digest holds the tag, because both ranks must agree on it.
  const Signature signature{.kind = call.kind,
                            .dtype = array.dtype(),
                            .root = envelope.peer,
                            .count = array.count(),
                            .digest = static_cast<std::uint64_t>(envelope.tag)};
  const Asked asked{
      .call = signature, .shown = signature, .is_read = true, .has_in = sends, .has_out = !sends};
  const KnownShape* shape = find(asked);
  if (shape == nullptr) shape = keep(asked, call.in, call.out);
  if (shape == nullptr) return;
  call.place = file_->next(observe::kDigestWords * std::size_t{shape->blocks});
  AuditRecord* const record = call.place.record;
  if (record == nullptr) return;
  record->number = shape->number;
  call.words = reinterpret_cast<std::uint64_t*>(record + 1);
  digest(call, observe::kInDigested);
  digest(call, observe::kOutDigested);
  AuditFile::publish(*record, AuditState::kDone);
}

void Auditing::sent(const engine::Envelope& to, ConstArrayView in) noexcept {
  note_message(to, true, in);
}
void Auditing::received(const engine::Envelope& from, ConstArrayView out) noexcept {
  if (is_on_) note_message(from, false, out);
}

}  // namespace hocket::call
