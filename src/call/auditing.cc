#include "call/auditing.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace hocket::call {

using engine::Has;
using engine::Kind;
using engine::Signature;
using observe::AuditArray;
using observe::AuditFile;
using observe::AuditRecord;
using observe::AuditState;

Auditing::Auditing(std::shared_ptr<AuditFile> file, const Membership& membership)
    : file_(membership.rank < 0 ? nullptr : std::move(file)),
      rank_(membership.rank),
      size_(membership.size()),
      name_(membership.name) {
  if (file_ != nullptr) group_ = file_->add_group(name_, size_, rank_);
}

// --- Where the arrays lie -----------------------------------------------------------------------

Auditing::Laid Auditing::laid(const void* data,
                              Has has,
                              const engine::PartsView& parts) const noexcept {
  const auto* const bytes = static_cast<const std::byte*>(data);
  if (bytes == nullptr) return {};
  switch (has) {
    case Has::kNothing:
      return {};
    case Has::kCount:
      return {.data = bytes, .bytes = engine::bytes_of(call_.signature)};
    case Has::kShare:
      return {.data = bytes, .bytes = engine::own_bytes(call_)};
    case Has::kAll:
      break;
  }
  if (!is_listed(call_.signature.kind)) {
    return {.data = bytes, .bytes = engine::whole_bytes(call_.signature, size_)};
  }
  Laid listed{.data = bytes, .parts = &parts};
  for (int r = 0; r < size_; ++r) listed.bytes += parts.bytes[r];
  return listed;
}
Auditing::Laid Auditing::given() const noexcept {
  const Signature& s = call_.signature;
  return laid(call_.in, engine::given(s.kind, rank_ == s.root), call_.in_parts);
}
Auditing::Laid Auditing::taken() const noexcept {
  const Signature& s = call_.signature;
  return laid(call_.out, engine::taken(s.kind, rank_ == s.root), call_.out_parts);
}

std::size_t Auditing::parts_of(const Laid& array) const noexcept {
  return array.parts == nullptr ? 0 : static_cast<std::size_t>(size_);
}
Auditing::Piece Auditing::piece(const Laid& array, std::size_t part) const noexcept {
  if (array.parts == nullptr) return {array.data, array.bytes};
  return {array.data + array.parts->offsets[part], array.parts->bytes[part]};
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
          .non_finite = 0,
          .blocks = static_cast<std::uint32_t>(blocks_of(array)),
          .parts = static_cast<std::uint32_t>(parts_of(array))};
}
std::uint64_t* Auditing::note_parts(const Laid& array, std::uint64_t* words) const noexcept {
  return std::copy_n(array.parts == nullptr ? nullptr : array.parts->bytes, parts_of(array), words);
}

void Auditing::digest(const Laid& array,
                      DType dtype,
                      AuditArray& into,
                      std::uint64_t* words) const noexcept {
  static_assert(sizeof(core::Digest) == observe::kDigestWords * observe::kWord);
  const std::size_t block = observe::audit_block_bytes(array.bytes);
  auto* digests = reinterpret_cast<core::Digest*>(words);
  std::size_t before = 0;  // elements
  for (std::size_t i = 0; i < std::max<std::size_t>(1, parts_of(array)); ++i) {
    const Piece here = piece(array, i);
    const auto found = core::digest_blocks(here.data, here.bytes, block, dtype, digests);
    if (found && into.non_finite == 0) {
      const std::size_t each = size_of(dtype);
      const std::size_t first = *found * block;
      const auto element = core::first_non_finite(
          here.data + first, std::min(block, here.bytes - first) / each, dtype);
      // Whatever another thread made of it meanwhile, the block had one.
      into.non_finite = before + first / each + element.value_or(0) + 1;
    }
    digests += core::block_count(here.bytes, block);
    before += here.bytes / size_of(dtype);
  }
}

// --- Collectives --------------------------------------------------------------------------------

void Auditing::begin(const engine::Call& call, const Signature& shown, Arrays arrays) noexcept {
  end(true);  // one that was given up
  call_ = call;
  arrays_ = arrays;
  // What communicators tell each other, addresses among it, is not what a program computes: neither
  // in calls of kinds of their own, nor on the host before a call of GPUs.
  const engine::KindRow& row = row_of(shown.kind);
  const bool is_of_data =
      (row.done == engine::Done::kByEngines || row.operates) &&
      (arrays == Arrays::kComing || (arrays == Arrays::kHere && shown.memory == MemoryKind::kHost));
  if (!is_of_data) call_.in = call_.out = nullptr;
  const Laid in = given();
  const Laid out = taken();
  const AuditArray in_shape = shape_of(in);
  const AuditArray out_shape = shape_of(out);
  record_ = file_->next(in_shape.parts + out_shape.parts +
                        observe::kDigestWords *
                            (std::size_t{in_shape.blocks} + std::size_t{out_shape.blocks}));
  if (record_ == nullptr) return;
  record_->dtype = static_cast<std::uint8_t>(call.signature.dtype);
  record_->op = static_cast<std::uint8_t>(shown.op);
  record_->group = group_;
  record_->peer = engine::is_rooted(shown.kind) ? shown.root : -1;
  record_->sequence = call.sequence;
  record_->in = in_shape;
  record_->out = out_shape;
  record_->name = name_of(shown.kind);
  auto* words = reinterpret_cast<std::uint64_t*>(record_ + 1);
  words = note_parts(in, words);
  words = note_parts(out, words);
  in_words_ = words;
  out_words_ = words + observe::kDigestWords * std::size_t{in_shape.blocks};
  if (arrays == Arrays::kElsewhere) {
    record_->in.bytes = engine::whole_bytes(shown, size_);
  } else if (arrays == Arrays::kHere) {
    arrived();
  }
  AuditFile::publish(*record_, AuditState::kBegun);
}

void Auditing::arrived() noexcept {
  if (record_ == nullptr) return;
  if (record_->in.blocks != 0) {
    digest(given(), static_cast<DType>(record_->dtype), record_->in, in_words_);
  }
  record_->digested |= observe::kInDigested;
  if (record_->in.non_finite != 0) [[unlikely]]
    warn(*record_);
}

void Auditing::end(bool failed) noexcept {
  if (record_ == nullptr) return;
  AuditRecord& record = *std::exchange(record_, nullptr);
  if (!failed && arrays_ != Arrays::kElsewhere) {
    if (record.out.blocks != 0) {
      digest(taken(), static_cast<DType>(record.dtype), record.out, out_words_);
    }
    record.digested |= observe::kOutDigested;
    if (record.out.non_finite != 0) [[unlikely]]
      warn(record);
  }
  AuditFile::publish(record, failed ? AuditState::kFailed : AuditState::kDone);
}

void Auditing::unread(const Signature& shown, std::uint64_t sequence) const noexcept {
  if (file_ == nullptr) return;
  AuditRecord* const record = file_->next(0);
  if (record == nullptr) return;
  record->dtype = static_cast<std::uint8_t>(shown.dtype);
  record->op = static_cast<std::uint8_t>(shown.op);
  record->group = group_;
  record->peer = engine::is_rooted(shown.kind) ? shown.root : -1;
  record->sequence = sequence;
  record->in.bytes = engine::whole_bytes(shown, size_);
  record->name = name_of(shown.kind);
  AuditFile::publish(*record, AuditState::kDone);
}

// --- Messages -----------------------------------------------------------------------------------

void Auditing::note_message(const engine::Envelope& envelope,
                            bool sends,
                            ConstArrayView array) noexcept {
  const Laid laid{.data = static_cast<const std::byte*>(array.data()), .bytes = array.bytes()};
  const AuditArray shape = shape_of(laid);
  AuditRecord* const record = file_->next(observe::kDigestWords * std::size_t{shape.blocks});
  if (record == nullptr) return;
  record->dtype = static_cast<std::uint8_t>(array.dtype());
  record->group = group_;
  record->peer = envelope.peer;
  record->tag = static_cast<std::int32_t>(envelope.tag);
  record->name = name_of(sends ? Kind::kSend : Kind::kRecv);
  AuditArray& into = sends ? record->in : record->out;
  into = shape;
  auto* const words = reinterpret_cast<std::uint64_t*>(record + 1);
  if (shape.blocks != 0) digest(laid, array.dtype(), into, words);
  record->digested = observe::kInDigested | observe::kOutDigested;
  if (into.non_finite != 0) [[unlikely]]
    warn(*record);
  AuditFile::publish(*record, AuditState::kDone);
}

void Auditing::sent(const engine::Envelope& to, ConstArrayView in) noexcept {
  note_message(to, true, in);
}
void Auditing::received(const engine::Envelope& from, ConstArrayView out) noexcept {
  note_message(from, false, out);
}

// Once a communicator and rank: where one is, many follow.
void Auditing::warn(const AuditRecord& record) noexcept {
  if (std::exchange(warned_, true)) return;
  try {
    const bool given = record.in.non_finite != 0;
    const std::string number = record.sequence == 0 ? fmt::format(" of rank {}", record.peer)
                                                    : fmt::format(" #{}", record.sequence);
    base::log(
        base::LogLevel::kWarning,
        fmt::format("element {} of what {} {}{} of communicator {} on rank {} is infinite or no "
                    "number, the first such that is seen here",
                    (given ? record.in : record.out).non_finite - 1,
                    given ? "goes into" : "comes out of",
                    record.name.view(),
                    number,
                    name_,
                    rank_));
  } catch (...) {  // the audit has it all the same
  }
}

}  // namespace hocket::call
