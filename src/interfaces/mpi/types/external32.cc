// The data representation "external32", and counting of basic elements.
//
// In external32 numbers are big-endian and have the lengths of the standard's table. A C long takes
// 4 bytes. A long double takes 16, as IEEE 754's binary128.
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "interfaces/mpi/types/arguments.h"
#include "interfaces/mpi/types/datatype.h"
#include "interfaces/mpi/types/wide_numbers.h"

namespace hocket::mpi {
namespace {

using Shape = Layout::Shape;

// Calls body(kind, address, elements) for each run of basic elements of a layout at `user`, until
// it returns false.
template <typename Body>
bool for_each_run(const Layout& layout, Address user, const Body& body) {
  user += static_cast<Address>(layout.offset);
  const auto put = [&](std::int64_t offset) { return user + static_cast<Address>(offset); };
  switch (layout.shape) {
    case Shape::kEmpty:
      return true;
    case Shape::kRun:
      return body(layout.kind, user, layout.elements);
    case Shape::kLoop:
      for (std::int64_t i = 0; i < layout.count; ++i) {
        if (!for_each_run(*layout.body, put(i * layout.stride), body)) return false;
      }
      return true;
    case Shape::kList:
      for (const std::int64_t offset : *layout.list) {
        if (!for_each_run(*layout.body, put(offset), body)) return false;
      }
      return true;
    case Shape::kPieces:
      for (const ByteRun& piece : *layout.pieces) {
        const std::int64_t elements = piece.length / size_of(layout.kind);
        if (!body(layout.kind, put(piece.offset), elements)) return false;
      }
      return true;
    case Shape::kSequence:
      for (const Part& part : *layout.parts) {
        if (!for_each_run(part.layout, user, body)) return false;
      }
      return true;
  }
  return true;
}

// Returns the size in external32 of one element of a layout.
std::int64_t external_bytes_of(const Layout& layout) {
  const auto bytes_of = [](Kind kind) {
    return std::int64_t{facts_of(kind).numbers} * facts_of(kind).external_bytes;
  };
  if (!layout.is_mixed) return layout.elements * bytes_of(layout.kind);
  switch (layout.shape) {
    case Shape::kLoop:
    case Shape::kList:
      return layout.count * external_bytes_of(*layout.body);
    case Shape::kSequence: {
      std::int64_t bytes = 0;
      for (const Part& part : *layout.parts) bytes += external_bytes_of(part.layout);
      return bytes;
    }
    default:
      return 0;
  }
}

void swap_ends(unsigned char* bytes, std::size_t size) {
  if constexpr (std::endian::native == std::endian::big) return;
  for (std::size_t i = 0; i < size / 2; ++i) std::swap(bytes[i], bytes[size - 1 - i]);
}

// Copies an integer to another size, sign-extended or truncated. Returns false if it does not fit.
bool resize_integer(bool is_signed,
                    const unsigned char* from,
                    std::size_t from_size,
                    unsigned char* to,
                    std::size_t to_size) {
  // Both integers are in this machine's byte order. If the sizes differ, this must be
  // little-endian.
  const bool is_negative = is_signed && (from[from_size - 1] & 0x80) != 0;
  const unsigned char fill = is_negative ? 0xff : 0;
  for (std::size_t i = 0; i < to_size; ++i) to[i] = i < from_size ? from[i] : fill;
  for (std::size_t i = to_size; i < from_size; ++i) {
    if (from[i] != fill) return false;
  }
  return to_size >= from_size || !is_signed || ((to[to_size - 1] & 0x80) != 0) == is_negative;
}

bool is_signed(Number number) { return number >= Number::kInt8 && number <= Number::kInt128; }

// x87's long double has 10 bytes, followed by padding.
constexpr std::size_t kLongDoubleBytes =
    std::numeric_limits<long double>::digits == 64 ? 10 : sizeof(long double);

struct Conversion {
  Number number;
  std::size_t own, external;  // bytes
};

bool encode(const Conversion& of, const unsigned char* own, unsigned char* external) {
  if (of.number == Number::kLongDouble) {
    long double value = 0;
    std::memcpy(&value, own, sizeof value);
    const Quad quad = static_cast<Quad>(value);
    std::memcpy(external, &quad, sizeof quad);
  } else if (of.own == of.external) {
    std::memcpy(external, own, of.own);
  } else if (!resize_integer(is_signed(of.number), own, of.own, external, of.external)) {
    return false;
  }
  swap_ends(external, of.external);
  return true;
}

void decode(const Conversion& of, const unsigned char* external, unsigned char* own) {
  unsigned char bytes[16];
  std::memcpy(bytes, external, of.external);
  swap_ends(bytes, of.external);
  if (of.number == Number::kLongDouble) {
    Quad quad;
    std::memcpy(&quad, bytes, sizeof quad);
    const auto value = static_cast<long double>(quad);
    std::memset(own, 0, of.own);  // its padding too
    std::memcpy(own, &value, kLongDoubleBytes);
  } else if (of.own == of.external) {
    std::memcpy(own, bytes, of.own);
  } else {
    resize_integer(is_signed(of.number), bytes, of.external, own, of.own);
  }
}

// Converts `elements` of `kind` at `user`, and advances `external` by their size.
template <Way kWay>
bool convert(Kind kind, Address user, std::int64_t elements, unsigned char*& external) {
  const KindFacts& facts = facts_of(kind);
  const Conversion of{facts.number,
                      static_cast<std::size_t>(size_of(facts.number)),
                      static_cast<std::size_t>(facts.external_bytes)};
  auto* own = reinterpret_cast<unsigned char*>(user);
  for (std::int64_t i = 0; i < elements * facts.numbers; ++i) {
    if constexpr (kWay == Way::kPack) {
      if (!encode(of, own, external)) return false;
    } else {
      decode(of, external, own);
    }
    own += of.own;
    external += of.external;
  }
  return true;
}

template <Way kWay>
std::optional<Refusal> convert_all(const Datatype& type,
                                   std::int64_t count,
                                   Address user,
                                   unsigned char* external) {
  std::optional<Kind> too_long;
  const auto convert_run = [&](Kind kind, Address at, std::int64_t elements) {
    if (convert<kWay>(kind, at, elements, external)) return true;
    too_long = kind;
    return false;
  };
  for (std::int64_t i = 0; i < count && !too_long; ++i) {
    for_each_run(
        type.map().elements(), user + static_cast<Address>(i * type.extent()), convert_run);
  }
  if (!too_long) return {};
  return Refusal{ErrorClass::kConversion,
                 "a value of type " + std::string(facts_of(*too_long).name) +
                     " does not fit into its " +
                     std::to_string(facts_of(*too_long).external_bytes) +
                     " bytes of the data representation external32"};
}

// Returns the number of basic elements in the first `bytes` packed bytes; absent if those end
// within an element.
std::optional<std::int64_t> elements_within(const Layout& layout, std::int64_t bytes) {
  if (bytes == layout.size) return layout.elements;
  if (!layout.is_mixed) {
    const std::int64_t size = size_of(layout.kind);
    if (bytes % size != 0) return {};
    return bytes / size;
  }
  if (layout.shape == Shape::kSequence) {
    std::int64_t before = 0;
    for (const auto& [part, start] : *layout.parts) {
      if (bytes < start + part.size) {
        const auto rest = elements_within(part, bytes - start);
        if (!rest) return {};
        return before + *rest;
      }
      before += part.elements;
    }
    return before;
  }
  const Layout& body = *layout.body;
  const auto rest = elements_within(body, bytes % body.size);
  if (!rest) return {};
  return bytes / body.size * body.elements + *rest;
}

}  // namespace

Result<std::int64_t> Datatype::external32_size(std::int64_t count) const {
  if (auto refusal = check_count(count, "count")) return *refusal;
  const auto bytes = checked_multiply(count, external_bytes_of(map_.elements()));
  if (bytes) return *bytes;
  return Refusal{ErrorClass::kValueTooLarge,
                 "count is " + std::to_string(count) +
                     ", so many elements have more than 2**63 bytes in external32"};
}

std::optional<Refusal> Datatype::pack_external32(const void* user,
                                                 std::int64_t count,
                                                 void* bytes) const {
  return convert_all<Way::kPack>(
      *this, count, reinterpret_cast<Address>(user), static_cast<unsigned char*>(bytes));
}

void Datatype::unpack_external32(const void* bytes, std::int64_t count, void* user) const {
  // Casting const away is safe: with Way::kUnpack, this buffer is only read.
  auto* const from = static_cast<unsigned char*>(const_cast<void*>(bytes));
  convert_all<Way::kUnpack>(*this, count, reinterpret_cast<Address>(user), from);
}

std::int64_t Datatype::unpack_external32_part(const void* bytes,
                                              std::int64_t length,
                                              std::int64_t count,
                                              void* user) const {
  auto* next = static_cast<unsigned char*>(const_cast<void*>(bytes));  // only read
  const unsigned char* const end = next + length;
  std::int64_t unpacked = 0;
  bool goes_on = true;
  for (std::int64_t i = 0; i < count && goes_on; ++i) {
    goes_on = for_each_run(map_.elements(),
                           reinterpret_cast<Address>(user) + static_cast<Address>(i * extent_),
                           [&](Kind kind, Address at, std::int64_t elements) {
                             const KindFacts& facts = facts_of(kind);
                             const std::int64_t whole = std::min(
                                 elements, (end - next) / (facts.numbers * facts.external_bytes));
                             convert<Way::kUnpack>(kind, at, whole, next);
                             unpacked += whole * size_of(kind);
                             return whole == elements;
                           });
  }
  return unpacked;
}

std::optional<std::int64_t> Datatype::elements_in(std::int64_t bytes) const {
  const Layout& layout = map_.elements();
  if (layout.size == 0) return bytes == 0 ? std::optional<std::int64_t>(0) : std::nullopt;
  const auto rest = elements_within(layout, bytes % layout.size);
  if (!rest) return {};
  return bytes / layout.size * layout.elements + *rest;
}

}  // namespace hocket::mpi
