// Definitions that the value type Object and its encoding share.
//
// The encoding, version 1, is the bytes "HKO" 0x01, followed by one value. A value is a tag (one
// byte) and its contents:
//
//   0 none, 1 false, 2 true    nothing
//   3 integer                  zigzag varint
//   4, 5 large integer +, -    length, then the magnitude's bytes, least first; the last is not 0
//   6 double, 7 complex        8 or 16 bytes, IEEE 754, little-endian
//   8 string                   length, UTF-8
//   9 bytes, 14 pickle,        length, bytes
//   16 byte array
//   10 list, 11 tuple          count, values
//   12 dict                    count, then alternating keys and values; no key twice
//   13 array                   dtype (a byte), number of dimensions, each extent, then the elements
//                              in C order, little-endian
//   15 scalar                  dtype, then the one element
//   17 array                   as 13; in Python the array has Fortran order
//
// Lengths, counts and extents are varints (LEB128) in their shortest form. So an object has exactly
// one encoding.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "hocket/object.h"
#include "hocket/types.h"

namespace hocket::object {

inline constexpr std::size_t kMaxDimensions = 32;

// Returns the size of an array in bytes. Absent for an unknown dtype, and for too many dimensions.
// Also absent if the size, without the extents that are 0, needs more than 63 bits. NumPy refuses
// such arrays too.
std::optional<std::size_t> shape_bytes(std::span<const std::size_t> shape, DType dtype) noexcept;

// Returns whether an object can be a key of a dict. Tuples may nest at most `depth` levels deep.
bool is_key(const Object& object, int depth = kMaxObjectDepth) noexcept;
// Throws InvalidArgument if `object` cannot be a key of a dict.
void check_key(const Object& object);

// Describes an object briefly, for messages: `the string "loss"`, `a dict of 3 entries`.
std::string describe(const Object& object);

}  // namespace hocket::object
