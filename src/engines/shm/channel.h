// One direction between two ranks: a ring of records in shared memory.
//
// One writer, one reader. A record is a few cache lines side by side: a header, the stamp that
// announces it, and the bytes of the shortest messages, so that such a message is one journey of
// its lines. Longer payloads lie in a second ring, where they never wrap. A record's stamp is its
// number, from 1: the reader knows which one comes next. The reader says how many records it has
// done with; only the writer knows what payload that frees, so that it believes nothing but that
// number. What the reader finds was written by a peer: headers are copied once and checked against
// what is there.
#pragma once

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
  kRequest,  // a message too long to send unasked; its bytes follow when they are granted, unless
             // the payload, an ArrayOffer, says where they can be read
  kGrant,    // the reader of message `id` is ready for its bytes
  kRead,     // the reader of message `id` has read its bytes where they lay
  kBulk,     // bytes of message `id`, which was begun or granted
  kRefuse,   // the reader of message `id` expected something else, or gave up
  kCancel,   // the writer of message `id` took it back
};

// A value.
struct RecordHeader {
  RecordType type = RecordType::kEager;
  std::uint8_t dtype = 0;
  std::uint8_t claimable = 0;  // of the payload, see Stager; `write` sets it
  std::uint8_t order = 0;
  std::uint32_t bytes = 0;  // of payload; `write` sets it
  std::uint64_t tag = 0;
  std::uint64_t count = 0;  // elements of the message
  std::uint32_t id = 0;     // the sender's number of the message
  std::uint32_t at = 0;     // where the payload lies in the ring, if not here; `write` sets it
};

// An array of the writer's that is exposed; see exposure.h. A value.
struct ArrayOffer {
  std::uint64_t address = 0;
  std::uint64_t ticket = 0;
  std::uint64_t place = 0;  // in ChannelShared::exposed
};

struct alignas(control::kCacheLine) RecordLines {
  static constexpr std::size_t kInline = 216;
  base::Atomic<std::uint64_t> stamp{0};
  base::Plain<RecordHeader> header;
  std::byte payload[kInline];
};
static_assert(sizeof(RecordLines) == 4 * control::kCacheLine);

// What both ends share, beside the ring of payloads. Zeros to begin with.
struct ChannelShared {
  static constexpr std::size_t kRecords = 32;
  alignas(control::kApart) base::Atomic<std::uint64_t> done{0};  // records the reader has done with
  static constexpr std::size_t kExposed = 64;
  alignas(control::kApart) TicketWord exposed[kExposed] = {};  // the writer's arrays
  alignas(control::kApart) TicketWord reading{0};  // 1 more than the place that the reader reads
  alignas(control::kApart) RecordLines records[kRecords];
};

// A view of one channel; each end keeps its own count.
class RingChannel {
 public:
  // `capacity`: bytes of `ring`, a multiple of 64.
  RingChannel(ChannelShared* shared, std::byte* ring, std::size_t capacity) noexcept
      : shared_(shared), ring_(ring), capacity_(capacity) {}

  std::size_t capacity() const noexcept { return capacity_; }

  // --- The writer's end -------------------------------------------------------------------------
  // Whether a record without payload can be written now.
  bool has_record() noexcept;
  // The most payload that can be written now, at most `wanted`; none when not even `least` fits.
  std::size_t room(std::size_t wanted, std::size_t least) noexcept;
  // Writes a record whose payload `room` allowed, and publishes it. `message`: bytes of all of it.
  void write(RecordHeader header, std::span<const std::byte> payload, std::size_t message) noexcept;
  // Exposes an array; absent where as many are exposed as can be.
  std::optional<ArrayOffer> expose(const void* array, std::uint64_t ticket) noexcept;
  // The array's message has ended; the reader, that rank of the group, does not read it any more.
  void withdraw(const control::GroupControl& control, int reader, std::size_t place) noexcept;
  // Whether two copies through the ring were not found to be slow.
  bool is_near() const noexcept { return stager_.claims_well(); }
  // Has the lines come here that a next short payload of about so many bytes will be written to.
  void claim_next(std::size_t bytes) const noexcept;

  // --- The reader's end -------------------------------------------------------------------------
  struct Record {
    RecordHeader header;
    Staged payload;
  };
  // The oldest record, which stays until `pop`.
  std::optional<Record> front() const noexcept;
  void pop() noexcept;
  // The stamp of the next record: its place and its value. Both change with `pop`.
  struct Expected {
    const base::Atomic<std::uint64_t>* stamp;
    std::uint64_t value;
    // Whether the record may be there; `front` says whether it is.
    bool is_there() const noexcept { return stamp->load(std::memory_order_relaxed) == value; }
  };
  Expected expected() const noexcept { return {&lines().stamp, count_ + 1}; }
  // Reads what the writer, rank `owner` of the group, has offered; see read_exposed. EINVAL where
  // it is no offer.
  int read(const control::GroupControl& control,
           int owner,
           const ArrayOffer& offer,
           void* to,
           std::size_t offset,
           std::size_t bytes) noexcept;

 private:
  RecordLines& lines() const noexcept { return shared_->records[count_ % ChannelShared::kRecords]; }
  void learn_what_is_done() noexcept;

  ChannelShared* shared_;
  std::byte* ring_;
  std::size_t capacity_;
  std::uint64_t count_ = 0;  // records written, or read
  // The writer's own. Positions count payload bytes for ever, padding included.
  std::uint64_t done_ = 0;  // records known to be done with
  std::uint64_t position_ = 0;
  std::uint64_t freed_ = 0;
  Stager stager_{Readers::kOne};
  std::array<std::uint64_t, ChannelShared::kRecords> ends_{};  // position after each record
};

}  // namespace hocket::engines::shm
