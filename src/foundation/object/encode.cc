#include <fmt/format.h>

#include <complex>
#include <utility>

#include "foundation/object/big_integer.h"
#include "foundation/object/wire.h"
#include "hocket/object.h"

static_assert(std::endian::native == std::endian::little,
              "arrays and floating-point numbers are encoded as they lie in memory");

namespace hocket {
namespace object {
namespace {

// Writes the encoding that codec.h describes.
class Writer {
 public:
  void object(const Object& value, int depth);
  std::vector<std::byte> take() && { return std::move(out_); }

 private:
  void raw(const void* data, std::size_t bytes) {
    const auto* first = static_cast<const std::byte*>(data);
    out_.insert(out_.end(), first, first + bytes);
  }
  void tag(Tag value) { out_.push_back(static_cast<std::byte>(value)); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_.push_back(static_cast<std::byte>(value | 0x80));
    out_.push_back(static_cast<std::byte>(value));
  }
  void blob(Tag kind, const void* data, std::size_t bytes) {
    tag(kind);
    varint(bytes);
    raw(data, bytes);
  }
  void integer(const Object& value);
  void sequence(Tag kind, std::span<const Object> items, int depth);
  void dict(std::span<const Object::Entry> entries, int depth);
  void array(const ObjectArray& value);
  void scalar(const ObjectArray& value);

  std::vector<std::byte> out_{kHeader.begin(), kHeader.end()};
};

void Writer::object(const Object& value, int depth) {
  if (depth > kMaxObjectDepth) {
    throw InvalidArgument(
        fmt::format("encode: the object nests deeper than {} levels; flatten it, or send parts",
                    kMaxObjectDepth));
  }
  switch (value.kind()) {
    case ObjectKind::kNone:
      return tag(Tag::kNone);
    case ObjectKind::kBool:
      return tag(value.as_bool() ? Tag::kTrue : Tag::kFalse);
    case ObjectKind::kInteger:
      return integer(value);
    case ObjectKind::kDouble: {
      const double number = value.as_double();
      tag(Tag::kDouble);
      return raw(&number, sizeof(number));
    }
    case ObjectKind::kComplex: {
      const std::complex<double> number = value.as_complex();
      tag(Tag::kComplex);
      return raw(&number, sizeof(number));
    }
    case ObjectKind::kString:
      return blob(Tag::kString, value.as_string().data(), value.as_string().size());
    case ObjectKind::kBytes:
      return blob(Tag::kBytes, value.as_bytes().data(), value.as_bytes().size());
    case ObjectKind::kPickle:
      return blob(Tag::kPickle, value.as_pickle().data(), value.as_pickle().size());
    case ObjectKind::kList:
      return sequence(Tag::kList, value.items(), depth);
    case ObjectKind::kTuple:
      return sequence(Tag::kTuple, value.items(), depth);
    case ObjectKind::kDict:
      return dict(value.entries(), depth);
    case ObjectKind::kArray:
      return array(value.as_array());
    case ObjectKind::kScalar:
      return scalar(value.as_array());
    case ObjectKind::kByteArray:
      return blob(Tag::kByteArray, value.as_bytes().data(), value.as_bytes().size());
  }
}

void Writer::integer(const Object& value) {
  if (value.fits_int64()) {
    tag(Tag::kInteger);
    return varint(zigzag(value.as_integer()));
  }
  const Magnitude magnitude = value.magnitude();
  blob(value.is_negative() ? Tag::kLargeNegative : Tag::kLargePositive,
       magnitude.data(),
       magnitude.size());
}

void Writer::sequence(Tag kind, std::span<const Object> items, int depth) {
  tag(kind);
  varint(items.size());
  for (const Object& item : items) object(item, depth + 1);
}

void Writer::dict(std::span<const Object::Entry> entries, int depth) {
  tag(Tag::kDict);
  varint(entries.size());
  for (const auto& [key, value] : entries) {
    object(key, depth + 1);
    object(value, depth + 1);
  }
}

void Writer::array(const ObjectArray& value) {
  tag(value.is_fortran ? Tag::kFortranArray : Tag::kArray);
  out_.push_back(static_cast<std::byte>(value.dtype));
  varint(value.shape.size());
  for (const std::size_t extent : value.shape) varint(extent);
  raw(value.data.data(), value.data.size());
}

void Writer::scalar(const ObjectArray& value) {
  tag(Tag::kScalar);
  out_.push_back(static_cast<std::byte>(value.dtype));
  raw(value.data.data(), value.data.size());
}

}  // namespace
}  // namespace object

std::vector<std::byte> encode(const Object& object) {
  object::Writer writer;
  writer.object(object, 0);
  return std::move(writer).take();
}

}  // namespace hocket
