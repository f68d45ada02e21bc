// One direction of communication between two ranks: a ring of records in shared memory.
//
// There is one writer and one reader. A record is a few adjacent cache lines: a header, a stamp,
// and the bytes of a short message. So a short message moves only these lines. Longer payloads lie
// in a second ring, in which they never wrap around.
//
//   records    [header stamp data][header stamp data] ...   kRecords of them
//   payloads   [ payload 1 | payload 2 | padding ]          `capacity` bytes
//
// The stamp announces a record and holds its number, from 1. The reader knows which number comes
// next. The reader publishes how many records it has consumed, and the writer knows which payloads
// that frees. So the writer trusts only this number. The reader does not trust its peer: it copies
// a header once and checks it against the ring.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "engines/shm/exposure.h"
#include "engines/shm/staging.h"
#include "foundation/base/atomic.h"
#include "membership/control/host.h"

namespace hocket::engines::shm {

enum class RecordType : std::uint8_t {
  kEager,    // a whole message
  kBegin,    // a longer message, whose bytes follow at once
  kRequest,  // a message too long to send unasked; its bytes follow a grant, or the receiver reads
             // them where the payload, an ArrayOffer, says
  kGrant,    // the reader of message `id` is ready for its first `count` bytes
  kRead,     // the reader of message `id` has its bytes, which it read from the sender's memory
  kLanding,  // the reader of message `id` also lets the sender write: its first `count` bytes go to
             // the array that the payload, an ArrayOffer, says
  kWritten,  // the sender of message `id` has written all pieces that it claimed, or has failed if
             // `count` is not 0
  kBulk,     // bytes of message `id`, after kBegin or kGrant
  kRefuse,   // the reader of message `id` expected something else, or gave up
  kCancel,   // the writer of message `id` cancelled it
};

// The header of a record. A value.
struct RecordHeader {
  RecordType type = RecordType::kEager;
  std::uint8_t dtype = 0;
  std::uint8_t claimable = 0;  // the payload's lines can be claimed, see Stager; `write` sets it
  std::uint8_t order = 0;
  std::uint32_t bytes = 0;  // bytes of the payload; `write` sets it
  std::uint64_t tag = 0;
  std::uint64_t count = 0;  // elements of the message; bytes of a grant
  std::uint32_t id = 0;     // the sender's number for the message
  // position of the payload in the ring, if not in the record; `write` sets it
  std::uint32_t at = 0;
};

// An exposed array of the writer; see exposure.h. A value.
struct ArrayOffer {
  std::uint64_t address = 0;
  std::uint64_t ticket = 0;
  std::uint64_t place = 0;  // index in ChannelShared::exposed
};

// The pieces of a message that both ends copy at the same time. The receiver claims pieces from the
// front and reads them, the sender claims from the back and writes them. So neither waits for an
// end that has other things to do. A view of a word that both share.
//
//     | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 |
//       receiver ->        <- sender
class PieceClaims {
 public:
  PieceClaims(TicketWord& word, std::size_t bytes) noexcept
      : word_(word), bytes_(bytes), piece_(piece_bytes(bytes)) {}

  struct Piece {
    std::size_t first;
    std::size_t length;
  };
  // Returns the next piece. Absent if all are claimed.
  std::optional<Piece> claim_front() noexcept { return claim(kFront); }
  std::optional<Piece> claim_back() noexcept { return claim(kBack); }
  bool all_claimed() const noexcept {
    const std::uint64_t word = word_.load(std::memory_order_acquire);
    return (word & (kBack - 1)) + word / kBack >= (bytes_ + piece_ - 1) / piece_;
  }
  // Returns whether the sender has claimed pieces. Final when all are claimed.
  bool has_back() const noexcept { return word_.load(std::memory_order_acquire) >= kBack; }
  // Returns the length of a piece. Shorter pieces would spend their time in the kernel's entry.
  static std::size_t piece_bytes(std::size_t bytes) noexcept {
    constexpr std::size_t kPage = 4096;
    return std::clamp(bytes / 8 / kPage * kPage, 4 * kPage, std::size_t{1} << 20);
  }

 private:
  static constexpr std::uint64_t kFront = 1;
  static constexpr std::uint64_t kBack = std::uint64_t{1} << 32;
  std::optional<Piece> claim(std::uint64_t end) noexcept {
    const std::uint64_t pieces = (bytes_ + piece_ - 1) / piece_;
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    std::uint64_t front = 0;
    std::uint64_t back = 0;
    do {
      front = word & (kBack - 1);
      back = word / kBack;
      if (front + back >= pieces) return std::nullopt;
    } while (!word_.compare_exchange_weak(word, word + end, std::memory_order_acq_rel));
    const std::size_t first = (end == kFront ? front : pieces - 1 - back) * piece_;
    return Piece{first, std::min(piece_, bytes_ - first)};
  }

  TicketWord& word_;
  std::size_t bytes_;
  std::size_t piece_;
};

struct alignas(control::kCacheLine) RecordLines {
  static constexpr std::size_t kInline = 216;
  base::Atomic<std::uint64_t> stamp{0};
  base::Plain<RecordHeader> header;
  std::byte payload[kInline];
};
static_assert(sizeof(RecordLines) == 4 * control::kCacheLine);

// The memory that both ends share, besides the ring of payloads. It starts as zeros.
struct ChannelShared {
  static constexpr std::size_t kRecords = 32;
  // records that the reader has consumed
  alignas(control::kApart) base::Atomic<std::uint64_t> done{0};
  static constexpr std::size_t kExposed = 64;
  alignas(control::kApart) TicketWord exposed[kExposed] = {};  // the writer's arrays
  // For each of them, the pieces that have been claimed; see PieceClaims.
  alignas(control::kApart) TicketWord claims[kExposed] = {};
  // 1 more than the index of the array that the reader copies from or to
  alignas(control::kApart) TicketWord copying{0};
  alignas(control::kApart) RecordLines records[kRecords];
};

// A view of one channel. Each end keeps its own count of records. One thread at a time.
class RingChannel {
 public:
  // `capacity` is the size of `ring` in bytes, a multiple of 64.
  RingChannel(ChannelShared* shared, std::byte* ring, std::size_t capacity) noexcept
      : shared_(shared), ring_(ring), capacity_(capacity) {}

  std::size_t capacity() const noexcept { return capacity_; }

  // --- The writer's end -------------------------------------------------------------------------
  // Returns whether a record without payload can be written now.
  bool has_record() noexcept;
  // Returns the largest payload that can be written now, at most `wanted` bytes. Returns 0 if not
  // even `least` bytes fit.
  std::size_t room(std::size_t wanted, std::size_t least) noexcept;
  // Writes and publishes a record. `room` must have allowed the payload. `message` is the size of
  // the whole message in bytes.
  void write(RecordHeader header, std::span<const std::byte> payload, std::size_t message) noexcept;
  // Exposes an array. Returns nothing if the limit of exposed arrays is reached.
  std::optional<ArrayOffer> expose(const void* array, std::uint64_t ticket) noexcept;
  // Withdraws an array because its message has ended. `reader` is the group rank of the peer, which
  // no longer copies from or to the array when this returns.
  void withdraw(const control::GroupControl& control, int reader, std::size_t place) noexcept;
  // Returns whether the copy in and the copy out are both fast: the two cores share their caches.
  bool is_near() const noexcept { return stager_.claims_well(); }
  // Claims the lines of the next short payload, of about `bytes` bytes, for this core.
  void claim_next(std::size_t bytes) const noexcept;

  // --- The reader's end -------------------------------------------------------------------------
  struct Record {
    RecordHeader header;
    Staged payload;
  };
  // Returns the oldest record. It stays in the ring until `pop`.
  std::optional<Record> front() const noexcept;
  void pop() noexcept;
  // The position and value of the next record's stamp. `pop` changes both.
  struct Expected {
    const base::Atomic<std::uint64_t>* stamp;
    std::uint64_t value;
    // Returns whether the record may have arrived. Only `front` is certain.
    bool is_there() const noexcept { return stamp->load(std::memory_order_relaxed) == value; }
  };
  Expected expected() const noexcept { return {&lines().stamp, count_ + 1}; }
  // Reads an array that the writer, group rank `owner`, has offered; see read_exposed. Returns
  // EINVAL if the offer is not valid.
  int read(const control::GroupControl& control,
           int owner,
           const ArrayOffer& offer,
           void* to,
           std::size_t offset,
           std::size_t bytes) noexcept;
  // Writes to such an array; see write_exposed.
  int write_to(const control::GroupControl& control,
               int owner,
               const ArrayOffer& offer,
               const void* from,
               std::size_t offset,
               std::size_t bytes) noexcept;

  // --- Both ends --------------------------------------------------------------------------------
  // Returns the claims of an exposed array, which the offer names.
  TicketWord& claims(const ArrayOffer& offer) const noexcept {
    return shared_->claims[offer.place % ChannelShared::kExposed];
  }

 private:
  std::optional<ExposedArray> array_of(int owner, const ArrayOffer& offer) const noexcept;
  RecordLines& lines() const noexcept { return shared_->records[count_ % ChannelShared::kRecords]; }
  void learn_what_is_done() noexcept;

  ChannelShared* shared_;
  std::byte* ring_;
  std::size_t capacity_;
  std::uint64_t count_ = 0;  // records written, or read
  // The writer's own. Positions count all payload bytes ever written, including padding.
  std::uint64_t done_ = 0;  // records known to be consumed
  std::uint64_t position_ = 0;
  std::uint64_t freed_ = 0;
  Stager stager_{Readers::kOne};
  std::array<std::uint64_t, ChannelShared::kRecords> ends_{};  // position after each record
};

}  // namespace hocket::engines::shm
