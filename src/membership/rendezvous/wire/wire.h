// Frames, and fields within them, as bytes on the wire. Numbers are little-endian.
//
//   | length of the payload, 4 bytes | payload |
//
// All functions are pure. The bytes that they read are untrusted: a length field alone never causes
// an allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "hocket/store.h"

namespace hocket::rendezvous {

inline constexpr std::size_t kFrameHeaderBytes = 4;

// Builds a payload, with room for a frame's header in front of it. A value.
class WireWriter {
 public:
  WireWriter() {
    bytes_.reserve(kUsualBytes);
    bytes_.resize(kFrameHeaderBytes);
  }

  void u8(std::uint8_t value) { integer(value, 1); }
  void u16(std::uint16_t value) { integer(value, 2); }
  void u32(std::uint32_t value) { integer(value, 4); }
  void i64(std::int64_t value) { integer(static_cast<std::uint64_t>(value), 8); }
  void raw(std::span<const std::byte> bytes);
  // Appends the number of bytes, and then the bytes.
  void blob(std::span<const std::byte> bytes);
  void text(std::string_view text) { blob(as_bytes(text)); }

  // Returns the finished frame. `bytes_to_follow` is the number of further bytes of its payload,
  // which the caller sends itself.
  Bytes frame(std::size_t bytes_to_follow = 0) &&;
  // Returns the payload without the frame's header.
  Bytes payload() const { return Bytes(bytes_.begin() + kFrameHeaderBytes, bytes_.end()); }

 private:
  // The initial capacity. Most messages need no more.
  static constexpr std::size_t kUsualBytes = 128;
  void integer(std::uint64_t value, int width);

  Bytes bytes_;
};

// Decodes a payload. A value. The span must outlive it. After an attempt to read past the end, or
// to read a length above its limit, all further reads give zeros, and `ok` stays false.
class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> bytes) noexcept : rest_(bytes) {}

  std::uint8_t u8() noexcept { return static_cast<std::uint8_t>(integer(1)); }
  std::uint16_t u16() noexcept { return static_cast<std::uint16_t>(integer(2)); }
  std::uint32_t u32() noexcept { return static_cast<std::uint32_t>(integer(4)); }
  std::int64_t i64() noexcept { return static_cast<std::int64_t>(integer(8)); }
  std::span<const std::byte> raw(std::size_t size) noexcept;
  std::span<const std::byte> blob(std::size_t limit) noexcept;
  std::string text(std::size_t limit) { return hocket::to_string(blob(limit)); }
  std::span<const std::byte> rest() noexcept { return raw(rest_.size()); }

  bool ok() const noexcept { return ok_; }
  // Returns whether all bytes were read, and none was missing.
  bool finished() const noexcept { return ok_ && rest_.empty(); }

 private:
  std::uint64_t integer(int width) noexcept;

  std::span<const std::byte> rest_;
  bool ok_ = true;
};

// The frame at the start of the bytes that were received so far.
struct Frame {
  enum class State { kIncomplete, kComplete, kTooLong };
  State state = State::kIncomplete;
  std::span<const std::byte> payload = {};
  std::size_t size = 0;  // size of the complete frame, with its header
};
Frame parse_frame(std::span<const std::byte> received, std::size_t max_payload) noexcept;

}  // namespace hocket::rendezvous
