#include "membership/rendezvous/wire/wire.h"

#include <array>

namespace hocket::rendezvous {
namespace {

std::uint64_t read_little_endian(std::span<const std::byte> bytes) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  }
  return value;
}

}  // namespace

void WireWriter::integer(std::uint64_t value, int width) {
  std::array<std::byte, sizeof value> little_endian;
  for (std::size_t i = 0; i < sizeof value; ++i) {
    little_endian[i] = static_cast<std::byte>(value >> (8 * i));
  }
  raw(std::span<const std::byte>(little_endian).first(static_cast<std::size_t>(width)));
}

void WireWriter::raw(std::span<const std::byte> bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

void WireWriter::blob(std::span<const std::byte> bytes) {
  u32(static_cast<std::uint32_t>(bytes.size()));
  raw(bytes);
}

Bytes WireWriter::frame(std::size_t bytes_to_follow) && {
  const std::size_t length = bytes_.size() - kFrameHeaderBytes + bytes_to_follow;
  for (std::size_t i = 0; i < kFrameHeaderBytes; ++i) {
    bytes_[i] = static_cast<std::byte>(length >> (8 * i));
  }
  return std::move(bytes_);
}

std::span<const std::byte> WireReader::raw(std::size_t size) noexcept {
  if (!ok_ || size > rest_.size()) {
    ok_ = false;
    return {};
  }
  const auto taken = rest_.first(size);
  rest_ = rest_.subspan(size);
  return taken;
}

std::span<const std::byte> WireReader::blob(std::size_t limit) noexcept {
  const std::size_t size = u32();
  if (size > limit) ok_ = false;
  return raw(size);
}

std::uint64_t WireReader::integer(int width) noexcept {
  return read_little_endian(raw(static_cast<std::size_t>(width)));
}

Frame parse_frame(std::span<const std::byte> received, std::size_t max_payload) noexcept {
  if (received.size() < kFrameHeaderBytes) return {};
  const auto length =
      static_cast<std::size_t>(read_little_endian(received.first(kFrameHeaderBytes)));
  if (length > max_payload) return {.state = Frame::State::kTooLong};
  const auto body = received.subspan(kFrameHeaderBytes);
  if (body.size() < length) return {};
  return {.state = Frame::State::kComplete,
          .payload = body.first(length),
          .size = kFrameHeaderBytes + length};
}

}  // namespace hocket::rendezvous
