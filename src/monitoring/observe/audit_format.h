// How a rank's audit lies in its file: a header, then records of different lengths, each of which
// begins on a line of the cache and lies in one chunk. What calls of a kind have in common, their
// shape, is told once, so that a small call takes a line. In the byte order of the machine;
// the header's version tells.
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
  std::int64_t wall_ns;  // the wall clock's lead over the one that records have
  std::uint64_t dropped;
};
inline constexpr std::size_t kAuditHeaderBytes = 4096;
static_assert(sizeof(AuditHeader) <= kAuditHeaderBytes);

inline constexpr std::size_t kAuditChunkBytes = std::size_t{1} << 22;
inline constexpr std::size_t kAuditLine = 64;

enum class AuditState : std::uint8_t {
  kEmpty,      // not written, or not whole
  kGroup,      // tells of a communicator: `sequence` its size, `peer` this rank; then its name
  kShape,      // tells of a shape: then it, as an AuditShape, and its parts
  kNonFinite,  // tells of a call: `sequence` the first element that is not finite, and one
  kBegun,      // a call: what went in is there, and what came out is not
  kDone,
  kFailed,
};

// Of a call digests follow: of what goes in, then of what comes out.
struct AuditRecord {
  std::uint8_t state;        // an AuditState; the last to be written
  std::uint8_t digested;     // kInDigested, kOutDigested or both; of kNonFinite which it is
  std::uint16_t name_bytes;  // of a group's name
  std::uint32_t words;       // of 8 bytes, of it and what comes behind it; the first written
  std::uint32_t number;      // of the group or shape, from 0, that this tells of or is a call of
  std::int32_t peer;
  std::uint64_t sequence;
  std::int64_t begin_ns;  // of kNonFinite: where the call is, in bytes behind the header
};
static_assert(sizeof(AuditRecord) == 32 && std::is_trivially_copyable_v<AuditRecord>);

// How an array falls into blocks.
struct AuditArray {
  std::uint64_t bytes;
  std::uint32_t blocks;
  std::uint32_t parts;  // that are listed; 0: it is whole
};

// The numbers of each of the listed parts' bytes come behind: those of what goes in, then those of
// what comes out. A shape that lists any is that of one call.
struct AuditShape {
  std::uint32_t group;  // number of the communicator in this file, from 0
  std::int32_t peer;
  std::int32_t tag;
  std::uint8_t dtype;
  std::uint8_t op;
  std::uint16_t unused;
  AuditArray in;
  AuditArray out;
  base::ShortText<24> name;  // of the call
};
static_assert(sizeof(AuditShape) == 72 && std::is_trivially_copyable_v<AuditShape>);

inline constexpr std::uint8_t kInDigested = 1;
inline constexpr std::uint8_t kOutDigested = 2;
inline constexpr std::size_t kWord = 8;
inline constexpr std::size_t kDigestWords = 2;

// How long the blocks of an array are: about 64 of them, of 1 KiB or more. Whole elements of every
// type.
constexpr std::size_t audit_block_bytes(std::size_t bytes) noexcept {
  constexpr std::size_t kLeast = 1024;
  constexpr std::size_t kMost = 64;
  const std::size_t each = (bytes + kMost - 1) / kMost;
  return std::max(kLeast, (each + kLeast - 1) / kLeast * kLeast);
}

}  // namespace hocket::observe
