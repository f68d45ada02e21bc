// The format of a rank's audit file: a header, then records of different lengths. Each record
// begins on a cache line and lies in one chunk. A shape, which is the data that calls of a kind
// share, is stored once. So a small call takes one line. Numbers have the machine's byte order; the
// header's version shows it.
//
//   | header | group | shape | call, digests | call, digests | ...
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "foundation/base/short_text.h"

namespace hocket::observe {

inline constexpr std::array<char, 8> kAuditMagic = {'h', 'o', 'c', 'k', 'e', 't', 'a', 'u'};
inline constexpr std::uint32_t kAuditVersion = 2;

struct AuditHeader {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::int32_t rank;
  std::int32_t size;
  std::int32_t pid;
  std::int64_t wall_ns;  // the wall clock minus the clock of the records
  std::uint64_t dropped;
};
inline constexpr std::size_t kAuditHeaderBytes = 4096;
static_assert(sizeof(AuditHeader) <= kAuditHeaderBytes);

inline constexpr std::size_t kAuditChunkBytes = std::size_t{1} << 22;
inline constexpr std::size_t kAuditLine = 64;

enum class AuditState : std::uint8_t {
  kEmpty,      // not written, or not whole
  kGroup,      // a communicator: `sequence` is its size, `peer` this rank; its name follows
  kShape,      // a shape: an AuditShape and its parts follow
  kNonFinite,  // note to a call: `sequence` is 1 + the index of the first element not finite
  kBegun,      // a call that has begun; its output is missing
  kDone,
  kFailed,
};

// A record. For a call, digests follow: those of the input, then those of the output.
struct AuditRecord {
  std::uint8_t state;  // an AuditState; written last
  // kInDigested, kOutDigested or both; for kNonFinite, the array concerned
  std::uint8_t digested;
  std::uint16_t name_bytes;  // length of a group's name
  std::uint32_t words;       // length in units of 8 bytes, with the data behind it; written first
  std::uint32_t number;      // of the group or shape that this describes or belongs to, from 0
  std::int32_t peer;
  std::uint64_t sequence;
  std::int64_t begin_ns;  // for kNonFinite: the call's offset, in bytes behind the header
};
static_assert(sizeof(AuditRecord) == 32 && std::is_trivially_copyable_v<AuditRecord>);

// The division of an array into blocks.
struct AuditArray {
  std::uint64_t bytes;
  std::uint32_t blocks;
  std::uint32_t parts;  // number of listed parts; 0 if the array is whole
};

// A shape. The sizes in bytes of its listed parts follow: first those of the input, then those of
// the output. A shape with listed parts belongs to one call.
struct AuditShape {
  std::uint32_t group;  // number of the communicator in this file, from 0
  std::int32_t peer;
  std::int32_t tag;
  std::uint8_t dtype;
  std::uint8_t op;
  std::uint16_t unused;
  AuditArray in;
  AuditArray out;
  base::ShortText<24> name;  // name of the call
};
static_assert(sizeof(AuditShape) == 72 && std::is_trivially_copyable_v<AuditShape>);

inline constexpr std::uint8_t kInDigested = 1;
inline constexpr std::uint8_t kOutDigested = 2;
inline constexpr std::size_t kWord = 8;
inline constexpr std::size_t kDigestWords = 2;

// Length of the blocks of an array: about 64 blocks, of 1 KiB or more. A block has whole elements
// of every type.
constexpr std::size_t audit_block_bytes(std::size_t bytes) noexcept {
  constexpr std::size_t kLeast = 1024;
  constexpr std::size_t kMost = 64;
  const std::size_t each = (bytes + kMost - 1) / kMost;
  return std::max(kLeast, (each + kLeast - 1) / kLeast * kLeast);
}

}  // namespace hocket::observe
