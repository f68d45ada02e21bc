// Conversions between a message's envelope and the header of its records.
#pragma once

#include "engine/point_to_point.h"
#include "engines/shm/channel.h"

namespace hocket::engines::shm {

inline engine::Envelope envelope_of(const RecordHeader& header, int peer) {
  // The peer wrote the header. An unknown dtype becomes 0, so that it is never used as an index.
  return {.peer = peer,
          .tag = header.tag,
          .dtype = static_cast<DType>(header.dtype < kDTypeCount ? header.dtype : 0),
          .order = engine::order_of(header.order),
          .count = header.count};
}

inline RecordHeader header_of(RecordType type, const engine::Envelope& envelope, std::uint32_t id) {
  return {.type = type,
          .dtype = static_cast<std::uint8_t>(envelope.dtype),
          .order = static_cast<std::uint8_t>(envelope.order),
          .tag = envelope.tag,
          .count = envelope.count,
          .id = id};
}

}  // namespace hocket::engines::shm
