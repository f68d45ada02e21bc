// One direction between two ranks: a ring of records in shared memory.
//
// One writer, one reader. A record is a header and its bytes, padded to 64; a record never wraps
// (a skip record fills the end). Both ends count bytes for ever; head - tail is what is in the
// ring. The writer owns what is not in it, the reader what is. What the reader finds was written by
// a peer: headers are copied once and checked against what is there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "control/host.h"

namespace hocket::engines::shm {

enum class RecordType : std::uint32_t {
  kSkip,     // nothing; to the end of the ring
  kEager,    // a whole message
  kRequest,  // a message too long to send unasked; its bytes follow when they are granted
  kGrant,    // the reader of message `id` is ready for its bytes
  kBulk,     // bytes of the granted message `id`
  kRefuse,   // the reader of message `id` expected something else, or gave up
  kCancel,   // the writer of message `id` took it back
};

// A value.
struct alignas(64) RecordHeader {
  RecordType type = RecordType::kSkip;
  std::uint32_t bytes = 0;  // behind this header
  std::uint64_t tag = 0;
  std::uint64_t count = 0;  // elements of the message
  std::uint64_t total = 0;  // bytes of the message
  std::uint32_t id = 0;     // the sender's number of the message
  std::uint32_t dtype = 0;
};

struct ChannelWords {
  alignas(control::kApart) std::atomic<std::uint64_t> head{0};  // written by the writer
  alignas(control::kApart) std::atomic<std::uint64_t> tail{0};  // written by the reader
};

// A view of one ring; value-like, but each end keeps its own count.
class Channel {
 public:
  Channel(ChannelWords* words, std::byte* ring, std::size_t capacity) noexcept
      : words_(words), ring_(ring), capacity_(capacity) {}

  std::size_t capacity() const noexcept { return capacity_; }

  // --- The writer's end -------------------------------------------------------------------------
  // The most payload that can be written now, at most `wanted`; none when not even `least` fits.
  std::size_t room(std::size_t wanted, std::size_t least) noexcept;
  // Writes a record whose payload `room` allowed, and publishes it.
  void write(RecordHeader header, std::span<const std::byte> payload) noexcept;

  // --- The reader's end -------------------------------------------------------------------------
  struct Record {
    RecordHeader header;
    const std::byte* payload;
  };
  // The oldest record, which stays until `pop`.
  std::optional<Record> front() noexcept;
  void pop(const Record& record) noexcept;

 private:
  std::size_t contiguous(std::uint64_t at) const noexcept { return capacity_ - at % capacity_; }

  ChannelWords* words_;
  std::byte* ring_;
  std::size_t capacity_;
  std::uint64_t position_ = 0;  // head at the writer, tail at the reader
  std::uint64_t limit_ = 0;     // the other end's, as last seen
};

}  // namespace hocket::engines::shm
