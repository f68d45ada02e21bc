// Copies between a user's buffer and packed bytes, along a type's layout.
//
// The code that walks is compiled for each direction and for common block lengths. Blocks of these
// lengths are copied by moves of that size, and longer blocks by memcpy.
#include <algorithm>
#include <cstring>

#include "interfaces/mpi/types/datatype.h"

namespace hocket::mpi {
namespace {

using Shape = Layout::Shape;

template <Way kWay>
inline void copy(Address user, std::byte* packed, std::size_t bytes) noexcept {
  if constexpr (kWay == Way::kPack) {
    std::memcpy(packed, reinterpret_cast<const void*>(user), bytes);
  } else {
    std::memcpy(reinterpret_cast<void*>(user), packed, bytes);
  }
}

// Copies a block of exactly kBytes bytes.
template <std::size_t kBytes>
struct Exactly {
  template <Way kWay>
  static void move(Address user, std::byte* packed, std::size_t) noexcept {
    copy<kWay>(user, packed, kBytes);
  }
};

// Copies a block of kBytes to 2 * kBytes bytes by two copies that may overlap.
template <std::size_t kBytes>
struct FromBothEnds {
  template <Way kWay>
  static void move(Address user, std::byte* packed, std::size_t bytes) noexcept {
    copy<kWay>(user, packed, kBytes);
    copy<kWay>(user + bytes - kBytes, packed + bytes - kBytes, kBytes);
  }
};

struct Long {
  template <Way kWay>
  static void move(Address user, std::byte* packed, std::size_t bytes) noexcept {
    copy<kWay>(user, packed, bytes);
  }
};

// Calls `body` with a function that copies blocks of `bytes` bytes, at least 1.
template <typename Body>
inline void with_mover(std::size_t bytes, const Body& body) {
  switch (bytes) {
    case 1:
      return body(Exactly<1>());
    case 2:
      return body(Exactly<2>());
    case 4:
      return body(Exactly<4>());
    case 8:
      return body(Exactly<8>());
    case 12:
      return body(Exactly<12>());
    case 16:
      return body(Exactly<16>());
    case 24:
      return body(Exactly<24>());
    case 32:
      return body(Exactly<32>());
    case 64:
      return body(Exactly<64>());
    default:
      if (bytes < 4) return body(FromBothEnds<2>());
      if (bytes < 8) return body(FromBothEnds<4>());
      if (bytes < 16) return body(FromBothEnds<8>());
      if (bytes < 32) return body(FromBothEnds<16>());
      if (bytes < 64) return body(FromBothEnds<32>());
      if (bytes < 128) return body(FromBothEnds<64>());
      return body(Long());
  }
}

template <Way kWay>
void walk(const Layout& layout, Address user, std::byte* packed);

// The displacements of a loop's or a list's bodies.
struct Strided {
  std::int64_t stride;
  std::int64_t base = 0;
  std::int64_t operator()(std::int64_t i) const noexcept { return base + i * stride; }
  Strided from(std::int64_t i) const noexcept { return {stride, (*this)(i)}; }
};
struct Listed {
  const std::int64_t* offsets;
  std::int64_t operator()(std::int64_t i) const noexcept { return offsets[i]; }
  Listed from(std::int64_t i) const noexcept { return {offsets + i}; }
};

// Walks over `count` copies of `body`. place(i) is the displacement of the i-th copy.
template <Way kWay, typename Place>
void walk_many(
    const Layout& body, std::int64_t count, const Place& place, Address user, std::byte* packed) {
  const auto bytes = static_cast<std::size_t>(body.size);
  if (body.shape != Shape::kRun) {
    for (std::int64_t i = 0; i < count; ++i, packed += bytes) {
      walk<kWay>(body, user + static_cast<Address>(place(i)), packed);
    }
    return;
  }
  const Address first = user + static_cast<Address>(body.offset);
  with_mover(bytes, [&](auto mover) {
    // A local copy: the compiler must assume that stores of bytes change the original.
    const Place at = place;
    const Address from = first;
    const std::size_t length = bytes;
    const std::int64_t end = count;
    std::byte* to = packed;
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < end; ++i, to += length) {
      mover.template move<kWay>(from + static_cast<Address>(at(i)), to, length);
    }
  });
}

// Copies all bytes of a layout. `user` is the origin of the layout. `packed` points to its first
// packed byte.
template <Way kWay>
void walk(const Layout& layout, Address user, std::byte* packed) {
  user += static_cast<Address>(layout.offset);
  switch (layout.shape) {
    case Shape::kEmpty:
      return;
    case Shape::kRun:
      return copy<kWay>(user, packed, static_cast<std::size_t>(layout.size));
    case Shape::kLoop:
      return walk_many<kWay>(*layout.body, layout.count, Strided{layout.stride}, user, packed);
    case Shape::kList:
      return walk_many<kWay>(*layout.body, layout.count, Listed{layout.list->data()}, user, packed);
    case Shape::kPieces:
      for (const ByteRun& piece : *layout.pieces) {
        const auto bytes = static_cast<std::size_t>(piece.length);
        with_mover(bytes, [&](auto mover) {
          mover.template move<kWay>(
              user + static_cast<Address>(piece.offset), packed + piece.start, bytes);
        });
      }
      return;
    case Shape::kSequence:
      for (const Part& part : *layout.parts) walk<kWay>(part.layout, user, packed + part.start);
      return;
  }
}

// The packed bytes [begin, end) of a layout; never empty.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

template <Way kWay>
void walk_part(const Layout& layout, Address user, std::byte* packed, Range range);

// Does the same as walk_many for a range of the packed bytes.
template <Way kWay, typename Place>
void walk_some(
    const Layout& body, const Place& place, Address user, std::byte* packed, Range range) {
  const auto put = [&](std::int64_t i) { return user + static_cast<Address>(place(i)); };
  std::int64_t first = range.begin / body.size;
  const std::int64_t last = range.end / body.size;
  const std::int64_t skipped = range.begin % body.size;
  const std::int64_t rest = range.end % body.size;
  if (first == last) return walk_part<kWay>(body, put(first), packed, {skipped, rest});
  if (skipped > 0) {
    walk_part<kWay>(body, put(first), packed, {skipped, body.size});
    packed += body.size - skipped;
    ++first;
  }
  walk_many<kWay>(body, last - first, place.from(first), user, packed);
  packed += (last - first) * body.size;
  if (rest > 0) walk_part<kWay>(body, put(last), packed, {0, rest});
}

// Returns the first entry that has packed bytes after `begin`. Entries are sorted by `start`.
template <typename Entry>
std::size_t entry_at(const std::vector<Entry>& entries, std::int64_t begin) {
  const auto after = std::ranges::upper_bound(entries, begin, {}, &Entry::start);
  return static_cast<std::size_t>(after - entries.begin()) - 1;
}

template <Way kWay>
void walk_pieces(const std::vector<ByteRun>& pieces, Address user, std::byte* packed, Range range) {
  for (std::size_t i = entry_at(pieces, range.begin); i < pieces.size(); ++i) {
    const ByteRun& piece = pieces[i];
    const std::int64_t begin = std::max(range.begin, piece.start);
    const std::int64_t end = std::min(range.end, piece.start + piece.length);
    if (begin >= end) return;
    copy<kWay>(user + static_cast<Address>(piece.offset + begin - piece.start),
               packed + (begin - range.begin),
               static_cast<std::size_t>(end - begin));
  }
}

template <Way kWay>
void walk_parts(const std::vector<Part>& parts, Address user, std::byte* packed, Range range) {
  for (std::size_t i = entry_at(parts, range.begin); i < parts.size(); ++i) {
    const auto& [layout, start] = parts[i];
    const std::int64_t begin = std::max(range.begin, start);
    const std::int64_t end = std::min(range.end, start + layout.size);
    if (begin >= end) return;
    std::byte* const to = packed + (begin - range.begin);
    walk_part<kWay>(layout, user, to, {begin - start, end - start});
  }
}

template <Way kWay>
void walk_part(const Layout& layout, Address user, std::byte* packed, Range range) {
  if (range.begin == 0 && range.end == layout.size) return walk<kWay>(layout, user, packed);
  user += static_cast<Address>(layout.offset);
  switch (layout.shape) {
    case Shape::kEmpty:
      return;
    case Shape::kRun:
      return copy<kWay>(user + static_cast<Address>(range.begin),
                        packed,
                        static_cast<std::size_t>(range.end - range.begin));
    case Shape::kLoop:
      return walk_some<kWay>(*layout.body, Strided{layout.stride}, user, packed, range);
    case Shape::kList:
      return walk_some<kWay>(*layout.body, Listed{layout.list->data()}, user, packed, range);
    case Shape::kPieces:
      return walk_pieces<kWay>(*layout.pieces, user, packed, range);
    case Shape::kSequence:
      return walk_parts<kWay>(*layout.parts, user, packed, range);
  }
}

// Walks over `count` elements of a type.
template <Way kWay>
void walk_elements(const Datatype& type, std::int64_t count, Address user, std::byte* packed) {
  const Layout& layout = type.map().bytes();
  if (count == 0 || layout.size == 0) return;
  if (type.is_contiguous()) {
    return copy<kWay>(user + static_cast<Address>(layout.offset),
                      packed,
                      static_cast<std::size_t>(count * layout.size));
  }
  if (layout.shape == Shape::kLoop &&
      checked_multiply(layout.count, layout.stride) == type.extent()) {
    // Merges the loop over elements with the layout's own loop.
    user += static_cast<Address>(layout.offset);
    const Strided place{layout.stride};
    return walk_many<kWay>(*layout.body, count * layout.count, place, user, packed);
  }
  if (count == 1) return walk<kWay>(layout, user, packed);
  walk_many<kWay>(layout, count, Strided{type.extent()}, user, packed);
}

template <Way kWay>
void walk_elements_part(const Datatype& type, Address user, std::byte* packed, Range range) {
  const Layout& layout = type.map().bytes();
  if (range.begin >= range.end || layout.size == 0) return;
  if (type.is_contiguous()) {
    return copy<kWay>(user + static_cast<Address>(layout.offset + range.begin),
                      packed,
                      static_cast<std::size_t>(range.end - range.begin));
  }
  walk_some<kWay>(layout, Strided{type.extent()}, user, packed, range);
}

Address address_of(const void* at) { return reinterpret_cast<Address>(at); }

// Casting const away is safe: a walk with this direction only reads the buffer.
std::byte* bytes_at(const void* bytes) { return static_cast<std::byte*>(const_cast<void*>(bytes)); }

}  // namespace

void Datatype::pack(const void* user, std::int64_t count, void* bytes) const {
  walk_elements<Way::kPack>(*this, count, address_of(user), bytes_at(bytes));
}

void Datatype::unpack(const void* bytes, std::int64_t count, void* user) const {
  walk_elements<Way::kUnpack>(*this, count, address_of(user), bytes_at(bytes));
}

void Datatype::pack_part(const void* user,
                         std::int64_t begin,
                         std::int64_t end,
                         void* bytes) const {
  walk_elements_part<Way::kPack>(*this, address_of(user), bytes_at(bytes), {begin, end});
}

void Datatype::unpack_part(const void* bytes,
                           std::int64_t begin,
                           std::int64_t end,
                           void* user) const {
  walk_elements_part<Way::kUnpack>(*this, address_of(user), bytes_at(bytes), {begin, end});
}

}  // namespace hocket::mpi
