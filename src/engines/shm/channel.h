// One direction of communication between two ranks: a ring of records in shared memory.
//
// A ring has one writer and one reader. A record is a few adjacent cache lines: a stamp, a header,
// and the bytes of a short message. So a short message moves only these cache lines. Longer
// payloads lie in a second ring. A payload never wraps around the end of that ring: padding fills
// the rest instead.
//
//   records    [stamp header data][stamp header data] ...   a power of two of them
//   payloads   [ payload 1 | payload 2 | padding ]          `capacity` bytes
//
// The stamp announces a record and holds its number, counted from 1. The reader knows which number
// comes next. It publishes how many records it has consumed, and the writer computes which payloads
// are free again. This number is all that the writer reads from its peer. The reader does not trust
// its peer either: it copies a header once and checks the copy against the ring.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engines/shm/exposure.h"
#include "engines/shm/staging.h"
#include "foundation/base/atomic.h"
#include "membership/control/host/view.h"

namespace hocket::engines::shm {

enum class RecordType : std::uint8_t {
  kEager,    // a whole message
  kBegin,    // a longer message, whose bytes follow at once
  kRequest,  // a message too long to send without a request. If the payload is an ArrayOffer, the
             // receiver reads the bytes from that array. Otherwise the bytes follow a kGrant.
  kGrant,    // the receiver of message `id` is ready for the first `count` bytes of the message
  kRead,     // the receiver of message `id` has read all bytes from the sender's memory
  kWriteOffer,  // the receiver of message `id` lets the sender write the first `count` bytes to the
                // receiver's array, which the payload, an ArrayOffer, names
  kWritten,  // the sender of message `id` has written all pieces that it claimed. If `count` is not
             // 0, a write failed.
  kBulk,     // bytes of message `id`, after kBegin or kGrant
  kRefuse,   // the envelope of message `id` does not match the receive, whose envelope is sent here
  kCancel,   // the sender of message `id` cancelled it
};

// The header of a record. A value.
struct RecordHeader {
  RecordType type = RecordType::kEager;
  std::uint8_t dtype = 0;
  std::uint8_t claimable = 0;  // 1: the payload's lines can be claimed, see Stager; set by `write`
  std::uint8_t order = 0;
  std::uint32_t bytes = 0;  // bytes of the payload; set by `write`
  std::uint64_t tag = 0;
  std::uint64_t count = 0;  // elements of the message; bytes in kGrant and kWriteOffer
  std::uint32_t id = 0;     // the sender's number for the message
  // position in the payload ring, in bytes, if the payload is not in the record; set by `write`
  std::uint32_t at = 0;
};

// An exposed array of the writer; see exposure.h. A value.
struct ArrayOffer {
  std::uint64_t address = 0;
  std::uint64_t ticket = 0;
  std::uint64_t place = 0;  // index in ChannelShared::exposed
};

// The pieces of a message that both ends copy at the same time. The receiver claims pieces from the
// front and reads them. The sender claims pieces from the back and writes them. So neither end
// waits for a peer that is busy. A view of the word that both ends share.
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
  // Return the next piece from the front or the back, or nothing if all pieces are claimed.
  std::optional<Piece> claim_front() noexcept { return claim(kFront); }
  std::optional<Piece> claim_back() noexcept { return claim(kBack); }
  bool all_claimed() const noexcept {
    const std::uint64_t word = word_.load(std::memory_order_acquire);
    return (word & (kBack - 1)) + word / kBack >= (bytes_ + piece_ - 1) / piece_;
  }
  // Returns whether the sender has claimed pieces. The answer is final when all pieces are claimed.
  bool has_back() const noexcept { return word_.load(std::memory_order_acquire) >= kBack; }
  // Returns the length of a piece in bytes. With shorter pieces, the cost of the system calls would
  // dominate.
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
  base::NonAtomic<RecordHeader> header;
  std::byte payload[kInline];
};
static_assert(sizeof(RecordLines) == 4 * control::kCacheLine);

// The memory that both ends share, except the ring of payloads. It is zero at first. The records
// follow directly behind it.
struct ChannelShared {
  static constexpr std::size_t bytes(std::size_t records) noexcept {
    return sizeof(ChannelShared) + records * sizeof(RecordLines);
  }
  RecordLines* records() noexcept { return reinterpret_cast<RecordLines*>(this + 1); }

  // the number of records that the reader has consumed
  alignas(control::kApart) base::Atomic<std::uint64_t> done{0};
  static constexpr std::size_t kExposed = 64;
  alignas(control::kApart) TicketWord exposed[kExposed] = {};  // the writer's arrays
  // For each exposed array, the pieces that have been claimed; see PieceClaims.
  alignas(control::kApart) TicketWord claims[kExposed] = {};
  // 1 + the index of the array that the reader copies from or to; 0: none
  alignas(control::kApart) TicketWord copying{0};
};

// One end's view of a channel. Each end counts its records itself. Used by one thread at a time.
class RingChannel {
 public:
  // `capacity` is the size of `ring` in bytes, a multiple of 64.
  RingChannel(ChannelShared* shared, std::size_t records, std::byte* ring, std::size_t capacity)
      : shared_(shared), records_(records), ring_(ring), capacity_(capacity), ends_(records) {}

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
  // Exposes an array. Returns nothing if kExposed arrays are already exposed.
  std::optional<ArrayOffer> expose(const void* array, std::uint64_t ticket) noexcept;
  // Withdraws an array when its message has ended. `reader` is the group rank of the peer. When
  // this returns, the peer no longer copies from or to the array.
  void withdraw(const control::GroupControl& control, int reader, std::size_t place) noexcept;
  // Returns whether the cores of both ends share their caches, so that both copies through the ring
  // are fast.
  bool is_near() const noexcept { return stager_.claims_well(); }
  // Claims the cache lines of the next short payload, of about `bytes` bytes, for this core.
  void claim_next(std::size_t bytes) const noexcept;

  // --- The reader's end -------------------------------------------------------------------------

  struct Record {
    RecordHeader header;
    Staged payload;
  };
  // Returns the oldest record, or nothing if the ring is empty. The record stays in the ring until
  // `pop`.
  std::optional<Record> front() const noexcept;
  void pop() noexcept;
  // The address of the next record's stamp, and the value that announces the record. `pop` changes
  // both.
  struct Expected {
    const base::Atomic<std::uint64_t>* stamp;
    std::uint64_t value;
    // Returns whether the record seems to have arrived. The load is relaxed, so call `front` before
    // reading the record.
    bool is_there() const noexcept { return stamp->load(std::memory_order_relaxed) == value; }
  };
  Expected expected() const noexcept { return {&lines().stamp, count_ + 1}; }
  // Reads an array that the writer, group rank `owner`, has offered. Returns EINVAL if the offer is
  // not valid; see read_exposed for the other results.
  int read(const control::GroupControl& control,
           int owner,
           const ArrayOffer& offer,
           void* to,
           std::size_t offset,
           std::size_t bytes) noexcept;
  // Writes to an array that the writer has offered; see `read` and write_exposed.
  int write_to(const control::GroupControl& control,
               int owner,
               const ArrayOffer& offer,
               const void* from,
               std::size_t offset,
               std::size_t bytes) noexcept;

  // --- Both ends --------------------------------------------------------------------------------

  // Returns the word of claimed pieces of the array that the offer names.
  TicketWord& claims(const ArrayOffer& offer) const noexcept {
    return shared_->claims[offer.place % ChannelShared::kExposed];
  }

 private:
  std::optional<ExposedArray> array_of(int owner, const ArrayOffer& offer) const noexcept;
  std::size_t place_of(std::uint64_t record) const noexcept { return record & (records_ - 1); }
  RecordLines& lines() const noexcept { return shared_->records()[place_of(count_)]; }
  void learn_what_is_done() noexcept;

  ChannelShared* shared_;
  std::size_t records_;
  std::byte* ring_;
  std::size_t capacity_;
  std::uint64_t count_ = 0;  // records written, or read
  // Used only by the writer. Positions count all payload bytes ever written, including padding.
  std::uint64_t done_ = 0;  // records that the reader is known to have consumed
  std::uint64_t position_ = 0;
  std::uint64_t freed_ = 0;
  Stager stager_{Readers::kOne};
  std::vector<std::uint64_t> ends_;  // position after each record
};

}  // namespace hocket::engines::shm
