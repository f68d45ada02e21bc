// The store's parsers against hostile bytes. Bytes that are accepted must result again if the
// parsed value is written.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "membership/rendezvous/store/request.h"
#include "membership/rendezvous/wire/handshake.h"
#include "membership/rendezvous/wire/wire.h"

namespace {

using namespace hocket::rendezvous;

void require(bool holds) {
  if (!holds) std::abort();
}

bool equals(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

void parse_frames(std::span<const std::byte> bytes) {
  for (;;) {
    const Frame frame = parse_frame(bytes, 300);
    if (frame.state != Frame::State::kComplete) return;
    require(frame.size == kFrameHeaderBytes + frame.payload.size() && frame.size <= bytes.size());
    bytes = bytes.subspan(frame.size);
  }
}

template <typename Message>
void parse_message(std::span<const std::byte> payload) {
  if (const auto parsed = Message::parse(payload)) require(equals(parsed->encode(), payload));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (bytes.empty()) return 0;
  const auto payload = bytes.subspan(1);
  switch (std::to_integer<int>(bytes[0]) % 8) {
    case 0:
      parse_frames(payload);
      break;
    case 1:
      parse_message<Hello>(payload);
      break;
    case 2:
      parse_message<Challenge>(payload);
      break;
    case 3:
      parse_message<Proof>(payload);
      break;
    case 4:
      parse_message<Verdict>(payload);
      break;
    case 5:
      if (const auto parsed = parse_request(payload)) {
        // A flag's byte may have been any but zero: the second writing settles it.
        const auto again = encode_request(parsed->id, parsed->request);
        const auto second = parse_request(std::span(again).subspan(kFrameHeaderBytes));
        require(second && encode_request(second->id, second->request) == again);
      }
      break;
    case 6:
      if (const auto parsed = parse_reply(payload)) {
        auto again = encode_reply(parsed->id, parsed->reply);
        if (const auto& value = parsed->reply.value) {
          again.insert(again.end(), value->begin(), value->end());
        }
        require(parse_reply(std::span(again).subspan(kFrameHeaderBytes)).has_value());
      }
      break;
    default:
      if (const auto parts = parse_parts(payload, std::to_integer<std::size_t>(bytes[0]) / 8)) {
        const std::vector<std::span<const std::byte>> spans(parts->begin(), parts->end());
        require(equals(encode_parts(spans), payload));
      }
  }
  return 0;
}
