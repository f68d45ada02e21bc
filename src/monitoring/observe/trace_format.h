// The format of a rank's trace file: a header, then records. Numbers have the machine's byte order,
// because a trace is read on the same kind of machine. The header's version shows the order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "foundation/base/short_text.h"

namespace hocket::observe {

inline constexpr std::array<char, 8> kTraceMagic = {'h', 'o', 'c', 'k', 'e', 't', 't', 'r'};
inline constexpr std::uint32_t kTraceVersion = 1;

struct TraceHeader {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::int32_t rank;
  std::int32_t size;
  std::int32_t host;
  std::int32_t pid;
  std::uint32_t record_bytes;
  std::int64_t wall_ns;  // the wall clock minus the clock of the records
  std::uint64_t dropped;
  base::ShortText<64> host_name;
};
inline constexpr std::size_t kTraceHeaderBytes = 4096;
static_assert(sizeof(TraceHeader) <= kTraceHeaderBytes);

enum class TraceState : std::uint8_t {
  kEmpty,  // not written, or written in part
  kGroup,  // a communicator: `sequence` is its id, `bytes` its size, `peer` this rank's number
  kName,   // a piece of its name, in `name` and `engine`; the pieces follow one another
  kBegun,
  kDone,
  kFailed,
};

struct TraceRecord {
  std::uint8_t state;  // a TraceState; written last
  std::uint8_t dtype;
  std::uint8_t on_gpu;
  std::uint8_t unused;
  std::uint32_t group;  // number of the communicator in this file, from 0
  std::int64_t begin_ns;
  std::int64_t end_ns;
  std::uint64_t sequence;
  std::uint64_t bytes;
  std::int32_t peer;
  base::ShortText<20> name;  // name of the call
  base::ShortText<16> engine;
};
static_assert(sizeof(TraceRecord) == 80 && std::is_trivially_copyable_v<TraceRecord>);

}  // namespace hocket::observe
