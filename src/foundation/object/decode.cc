#include <fmt/format.h>

#include <algorithm>
#include <complex>
#include <cstring>
#include <memory>
#include <utility>

#include "foundation/object/big_integer.h"
#include "foundation/object/codec.h"
#include "foundation/object/utf8.h"
#include "foundation/object/wire.h"
#include "hocket/object.h"

namespace hocket {
namespace object {
namespace {

// The most items for which a container reserves memory before it has read them. A hostile encoding
// could claim any number.
constexpr std::size_t kTrustedCount = 64;

// Reads an encoding, which may be hostile. It checks every length against the bytes that remain.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  void header();
  Object object(int depth);
  void end() const {
    if (remaining() != 0) fail(fmt::format("{} bytes follow the object", remaining()));
  }

 private:
  [[noreturn]] void fail(std::string_view what) const { fail(what, at_); }
  [[noreturn]] void fail(std::string_view what, std::size_t at) const {
    throw InvalidArgument(fmt::format("decode: byte {} of {}: {}", at, bytes_.size(), what));
  }
  std::size_t remaining() const noexcept { return bytes_.size() - at_; }
  std::span<const std::byte> take(std::size_t count, std::string_view what) {
    if (count > remaining()) {
      fail(fmt::format("{} of {} bytes goes past the end", what, count));
    }
    const auto result = bytes_.subspan(at_, count);
    at_ += count;
    return result;
  }
  std::uint8_t byte(std::string_view what) {
    return static_cast<std::uint8_t>(take(1, what).front());
  }
  template <typename T>
  T number(std::string_view what) {
    T result;
    std::memcpy(&result, take(sizeof(T), what).data(), sizeof(T));
    return result;
  }
  std::uint64_t varint(std::string_view what);
  // Reads a number of items, each of which takes at least `each` bytes.
  std::size_t count(std::string_view what, std::size_t each);
  std::span<const std::byte> blob(std::string_view what) { return take(count(what, 1), what); }

  Object large_integer(bool negative);
  Object string();
  std::vector<Object> sequence(int depth);
  Object dict(int depth);
  Object array(bool is_fortran);
  Object scalar();
  DType dtype(std::string_view what);
  // Reads the elements of an array or a scalar, which take `bytes` bytes.
  std::span<const std::byte> elements(DType dtype, std::size_t bytes, std::string_view what);

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

void Reader::header() {
  const auto found = take(kHeader.size(), "the header");
  if (!std::equal(found.begin(), found.end() - 1, kHeader.begin())) {
    fail("this is no encoded object", 0);
  }
  if (found.back() != kHeader.back()) {
    fail(
        fmt::format("version {} of the encoding is not known here, only {}; use one hocket release "
                    "on all ranks",
                    static_cast<int>(found.back()),
                    static_cast<int>(kHeader.back())),
        kHeader.size() - 1);
  }
}

std::uint64_t Reader::varint(std::string_view what) {
  const std::size_t start = at_;
  std::uint64_t result = 0;
  for (int shift = 0;; shift += 7) {
    const std::uint8_t next = byte(what);
    const std::uint64_t bits = next & 0x7f;
    if (shift == 63 && next > 1) fail(fmt::format("{} does not fit 64 bits", what), start);
    result |= bits << shift;
    if (next < 0x80) {
      if (bits == 0 && shift > 0) fail(fmt::format("{} is not in its shortest form", what), start);
      return result;
    }
  }
}

std::size_t Reader::count(std::string_view what, std::size_t each) {
  const std::size_t start = at_;
  const std::uint64_t result = varint(what);
  if (result > remaining() / each) {
    fail(fmt::format("{} of length {} goes past the end", what, result), start);
  }
  return result;
}

Object Reader::object(int depth) {
  if (depth > kMaxObjectDepth) {
    fail(fmt::format("the object nests deeper than {} levels", kMaxObjectDepth));
  }
  const std::size_t start = at_;
  const std::uint8_t tag = byte("a value");
  switch (static_cast<Tag>(tag)) {
    case Tag::kNone:
      return {};
    case Tag::kFalse:
      return false;
    case Tag::kTrue:
      return true;
    case Tag::kInteger:
      return unzigzag(varint("an integer"));
    case Tag::kLargePositive:
      return large_integer(false);
    case Tag::kLargeNegative:
      return large_integer(true);
    case Tag::kDouble:
      return number<double>("a double");
    case Tag::kComplex:
      return number<std::complex<double>>("a complex number");
    case Tag::kString:
      return string();
    case Tag::kBytes:
      return Object::bytes(blob("a value of bytes"));
    case Tag::kPickle:
      return Object::pickle(blob("a pickle"));
    case Tag::kList:
      return Object::list(sequence(depth));
    case Tag::kTuple:
      return Object::tuple(sequence(depth));
    case Tag::kDict:
      return dict(depth);
    case Tag::kArray:
      return array(false);
    case Tag::kFortranArray:
      return array(true);
    case Tag::kScalar:
      return scalar();
    case Tag::kByteArray:
      return Object::byte_array(blob("a byte array"));
  }
  fail(fmt::format("there is no kind of value with the tag {}", tag), start);
}

Object Reader::large_integer(bool negative) {
  const std::size_t start = at_;
  const auto magnitude = blob("a large integer");
  if (magnitude.empty() || magnitude.back() == std::byte{0} || to_int64(negative, magnitude)) {
    fail("an integer is not in its shortest form", start);
  }
  return Object::integer(negative, magnitude);
}

Object Reader::string() {
  const auto text = blob("a string");
  const std::string_view view(reinterpret_cast<const char*>(text.data()), text.size());
  if (const auto bad = find_bad_utf8(view)) {
    fail("a string is not UTF-8", at_ - text.size() + *bad);
  }
  return view;
}

std::vector<Object> Reader::sequence(int depth) {
  const std::size_t length = count("a list or tuple", 1);
  std::vector<Object> items;
  items.reserve(std::min(length, kTrustedCount));
  for (std::size_t i = 0; i < length; ++i) items.push_back(object(depth + 1));
  return items;
}

Object Reader::dict(int depth) {
  const std::size_t length = count("a dict", 2);
  std::vector<Object::Entry> entries;
  entries.reserve(std::min(length, kTrustedCount));
  for (std::size_t i = 0; i < length; ++i) {
    const std::size_t start = at_;
    Object key = object(depth + 1);
    if (!is_key(key)) fail(describe(key) + " cannot be a key of a dict", start);
    entries.emplace_back(std::move(key), object(depth + 1));
  }
  try {
    return Object::dict(std::move(entries));
  } catch (const InvalidArgument& error) {
    fail(error.what());
  }
}

DType Reader::dtype(std::string_view what) {
  const std::size_t start = at_;
  const std::uint8_t number = byte(what);
  if (number >= kDTypeCount) {
    fail(fmt::format("there is no dtype with the number {}", number), start);
  }
  return static_cast<DType>(number);
}

std::span<const std::byte> Reader::elements(DType dtype, std::size_t bytes, std::string_view what) {
  const auto data = take(bytes, what);
  // A bool with any other value would be undefined behaviour for the program that reads it.
  if (dtype == DType::kBool &&
      std::any_of(data.begin(), data.end(), [](std::byte b) { return b > std::byte{1}; })) {
    fail(fmt::format("{} of bool holds neither 0 nor 1", what), at_ - bytes);
  }
  return data;
}

Object Reader::scalar() {
  const DType type = dtype("a scalar's dtype");
  return Object::scalar({elements(type, size_of(type), "a scalar").data(), 1, type});
}

Object Reader::array(bool is_fortran) {
  const std::size_t start = at_;
  auto contents = std::make_shared<ObjectArray>();
  contents->is_fortran = is_fortran;
  contents->dtype = dtype("an array's dtype");
  const std::uint64_t dimensions = varint("an array's number of dimensions");
  if (dimensions > kMaxDimensions) {
    fail(fmt::format("an array has {} dimensions, more than {}", dimensions, kMaxDimensions),
         start);
  }
  for (std::uint64_t i = 0; i < dimensions; ++i) {
    contents->shape.push_back(varint("an array's extent"));
  }
  const auto bytes = shape_bytes(contents->shape, contents->dtype);
  if (!bytes) fail("an array's shape is too large", start);
  const auto data = elements(contents->dtype, *bytes, "an array");
  contents->data.assign(data.begin(), data.end());
  return Object::array(std::move(contents));
}

}  // namespace
}  // namespace object

Object decode(std::span<const std::byte> bytes) {
  object::Reader reader(bytes);
  reader.header();
  Object result = reader.object(0);
  reader.end();
  return result;
}

}  // namespace hocket
