// A message's envelope, and the header of a record that tells of it.
#pragma once

#include "engine/point_to_point.h"
#include "engines/shm/channel.h"

namespace hocket::engines::shm {

inline bool same_kind(const engine::Envelope& a, const engine::Envelope& b) {
  return a.dtype == b.dtype && a.count == b.count;
}

inline engine::Envelope envelope_of(const RecordHeader& header, int peer) {
  // An unknown dtype compares unequal to all and is never looked up by.
  return {.peer = peer,
          .tag = header.tag,
          .dtype = static_cast<DType>(header.dtype < kDTypeCount ? header.dtype : 0),
          .count = header.count};
}

inline RecordHeader header_of(RecordType type, const engine::Envelope& envelope, std::uint32_t id) {
  return {.type = type,
          .dtype = static_cast<std::uint8_t>(envelope.dtype),
          .tag = envelope.tag,
          .count = envelope.count,
          .id = id};
}

}  // namespace hocket::engines::shm
