#include "hocket/object.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <complex>
#include <optional>

#include "foundation/object/big_integer.h"
#include "foundation/object/codec.h"
#include "foundation/object/utf8.h"

namespace hocket {
namespace {

std::vector<std::byte> copy_of(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

bool same_bits(double a, double b) noexcept {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

void check_keys(std::span<const Object::Entry> entries) {
  // Keys are equal exactly if their encodings are equal. Sorting the encodings makes equal ones
  // adjacent.
  std::vector<std::string> keys;
  keys.reserve(entries.size());
  for (const auto& [key, value] : entries) {
    object::check_key(key);
    const std::vector<std::byte> bytes = encode(key);
    keys.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice != keys.end()) {
    const Object key = decode(std::as_bytes(std::span(*twice)));
    throw InvalidArgument("Object: a dict has the key " + object::describe(key) + " twice");
  }
}

// Throws unless an array of this shape and dtype has `bytes` bytes.
void require_shape(std::span<const std::size_t> shape, DType dtype, std::size_t bytes) {
  if (object::shape_bytes(shape, dtype) == bytes) return;
  throw InvalidArgument(
      fmt::format("Object::array: shape ({}) of {} does not fit {} bytes of elements; at most {} "
                  "dimensions are taken",
                  fmt::join(shape, ", "),
                  name_of(dtype),
                  bytes,
                  object::kMaxDimensions));
}

}  // namespace

std::string_view name_of(ObjectKind kind) noexcept {
  switch (kind) {
    case ObjectKind::kNone:
      return "none";
    case ObjectKind::kBool:
      return "bool";
    case ObjectKind::kInteger:
      return "integer";
    case ObjectKind::kDouble:
      return "double";
    case ObjectKind::kComplex:
      return "complex";
    case ObjectKind::kString:
      return "string";
    case ObjectKind::kBytes:
      return "bytes";
    case ObjectKind::kList:
      return "list";
    case ObjectKind::kTuple:
      return "tuple";
    case ObjectKind::kDict:
      return "dict";
    case ObjectKind::kArray:
      return "array";
    case ObjectKind::kPickle:
      return "pickle";
    case ObjectKind::kScalar:
      return "scalar";
    case ObjectKind::kByteArray:
      return "byte array";
  }
  return "unknown";
}

// --- Making -------------------------------------------------------------------------------------

Object::Object() noexcept = default;
Object::~Object() = default;
Object::Object(const Object&) = default;
Object::Object(Object&& other) noexcept
    : kind_(std::exchange(other.kind_, ObjectKind::kNone)), value_(std::move(other.value_)) {
  other.value_ = std::monostate();
}
Object& Object::operator=(Object other) noexcept {
  std::swap(kind_, other.kind_);
  std::swap(value_, other.value_);
  return *this;
}

Object::Object(bool value) noexcept : kind_(ObjectKind::kBool), value_(value) {}
Object::Object(std::complex<double> value) noexcept
    : kind_(ObjectKind::kComplex), value_(Complex{value.real(), value.imag()}) {}
Object::Object(std::string_view text) : Object(std::string(text)) {}
Object::Object(const char* text) : Object(std::string(text)) {}

Object::Object(std::string text) : kind_(ObjectKind::kString) {
  if (const auto bad = object::find_bad_utf8(text)) {
    throw InvalidArgument(fmt::format(
        "Object: the string is not UTF-8 at byte {} of {}; use Object::bytes for other bytes",
        *bad,
        text.size()));
  }
  value_ = std::move(text);
}

Object::Object(std::initializer_list<Entry> entries) : Object(dict(std::vector<Entry>(entries))) {}

Object Object::bytes(std::span<const std::byte> data) {
  return {ObjectKind::kBytes, copy_of(data)};
}

Object Object::byte_array(std::span<const std::byte> data) {
  return {ObjectKind::kByteArray, copy_of(data)};
}

Object Object::pickle(std::span<const std::byte> data) {
  return {ObjectKind::kPickle, copy_of(data)};
}

Object Object::list(std::vector<Object> items) { return {ObjectKind::kList, std::move(items)}; }

Object Object::tuple(std::vector<Object> items) { return {ObjectKind::kTuple, std::move(items)}; }

Object Object::dict(std::vector<Entry> entries) {
  check_keys(entries);
  return {ObjectKind::kDict, std::move(entries)};
}

Object Object::array(ConstArrayView elements) { return array(elements, {elements.count()}); }

Object Object::array(ConstArrayView elements, std::vector<std::size_t> shape) {
  if (elements.memory() != MemoryKind::kHost) {
    throw InvalidArgument("Object::array: the array is not in host memory; copy it there first");
  }
  require_shape(shape, elements.dtype(), elements.bytes());
  if (elements.data() == nullptr && elements.bytes() != 0) {
    throw InvalidArgument(
        fmt::format("Object::array: there are {} elements at a null address", elements.count()));
  }
  auto contents = std::make_shared<ObjectArray>();
  contents->dtype = elements.dtype();
  contents->shape = std::move(shape);
  const auto* first = static_cast<const std::byte*>(elements.data());
  contents->data.assign(first, first + elements.bytes());
  return array(std::move(contents));
}

Object Object::scalar(ConstArrayView element) {
  Object result = array(element, {});
  result.kind_ = ObjectKind::kScalar;
  return result;
}

Object Object::array(std::shared_ptr<const ObjectArray> contents) {
  if (contents == nullptr) throw InvalidArgument("Object::array: there is no array");
  require_shape(contents->shape, contents->dtype, contents->data.size());
  return {ObjectKind::kArray, std::move(contents)};
}

Object Object::integer(bool negative, std::span<const std::byte> magnitude) {
  if (const auto small = object::to_int64(negative, magnitude)) return *small;
  Big big{negative, copy_of(magnitude)};
  object::trim(big.magnitude);
  return {ObjectKind::kInteger, std::move(big)};
}

Object Object::integer(std::string_view decimal) {
  std::string_view digits = decimal;
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  const auto magnitude = object::magnitude_from_decimal(digits);
  if (!magnitude) {
    throw InvalidArgument(
        fmt::format("Object::integer: \"{}\" is not a decimal integer", decimal.substr(0, 40)));
  }
  return integer(negative, *magnitude);
}

Object Object::signed_integer(std::int64_t value) noexcept { return {ObjectKind::kInteger, value}; }

Object Object::real(double value) noexcept { return {ObjectKind::kDouble, value}; }

Object Object::unsigned_integer(std::uint64_t value) {
  return integer(false, object::magnitude_of(value));
}

// --- Asking -------------------------------------------------------------------------------------

template <typename T>
const T& Object::get(ObjectKind kind) const {
  if (kind_ != kind) {
    throw InvalidArgument(
        fmt::format("Object: this is {}, not of kind {}", object::describe(*this), name_of(kind)));
  }
  return std::get<T>(value_);
}

bool Object::fits_int64() const noexcept { return std::holds_alternative<std::int64_t>(value_); }

bool Object::as_bool() const { return get<bool>(ObjectKind::kBool); }

std::int64_t Object::as_integer() const {
  if (kind_ == ObjectKind::kInteger && !fits_int64()) {
    throw InvalidArgument("Object: the integer " + decimal() +
                          " does not fit 64 bits; use magnitude() or decimal()");
  }
  return get<std::int64_t>(ObjectKind::kInteger);
}

bool Object::is_negative() const {
  if (kind_ == ObjectKind::kInteger && !fits_int64()) return std::get<Big>(value_).negative;
  return as_integer() < 0;
}

std::vector<std::byte> Object::magnitude() const {
  if (kind_ == ObjectKind::kInteger && !fits_int64()) return std::get<Big>(value_).magnitude;
  const auto bits = static_cast<std::uint64_t>(as_integer());
  return object::magnitude_of(is_negative() ? ~bits + 1 : bits);
}

std::string Object::decimal() const {
  const std::string digits = object::magnitude_to_decimal(magnitude());
  return is_negative() ? "-" + digits : digits;
}

double Object::as_double() const {
  if (kind_ == ObjectKind::kInteger) return static_cast<double>(as_integer());
  return get<double>(ObjectKind::kDouble);
}

std::complex<double> Object::as_complex() const {
  if (kind_ == ObjectKind::kInteger || kind_ == ObjectKind::kDouble) return as_double();
  const auto& number = get<Complex>(ObjectKind::kComplex);
  return {number.real, number.imag};
}

const std::string& Object::as_string() const { return get<std::string>(ObjectKind::kString); }

std::span<const std::byte> Object::as_bytes() const {
  return get<std::vector<std::byte>>(kind_ == ObjectKind::kByteArray ? kind_ : ObjectKind::kBytes);
}

std::span<const std::byte> Object::as_pickle() const {
  return get<std::vector<std::byte>>(ObjectKind::kPickle);
}

const std::shared_ptr<const ObjectArray>& Object::shared_array() const {
  return get<std::shared_ptr<const ObjectArray>>(kind_ == ObjectKind::kScalar ? kind_
                                                                              : ObjectKind::kArray);
}

std::size_t Object::size() const {
  return kind_ == ObjectKind::kDict ? entries().size() : items().size();
}

std::span<const Object> Object::items() const {
  return get<std::vector<Object>>(kind_ == ObjectKind::kTuple ? kind_ : ObjectKind::kList);
}

std::span<const Object::Entry> Object::entries() const {
  return get<std::vector<Entry>>(ObjectKind::kDict);
}

const Object* Object::find(const Object& key) const {
  for (const Entry& entry : entries()) {
    if (entry.first == key) return &entry.second;
  }
  return nullptr;
}

const Object& Object::operator[](std::size_t index) const {
  const std::span<const Object> all = items();
  if (index >= all.size()) {
    throw InvalidArgument(
        fmt::format("Object: index {} is out of range; there are {} items", index, all.size()));
  }
  return all[index];
}

const Object& Object::operator[](int index) const {
  if (index < 0) throw InvalidArgument(fmt::format("Object: index {} is negative", index));
  return (*this)[static_cast<std::size_t>(index)];
}

const Object& Object::operator[](std::string_view key) const {
  const Object* value = find(key);
  if (value == nullptr) {
    throw InvalidArgument(fmt::format("Object: the dict has no key \"{}\"", key));
  }
  return *value;
}

// --- Changing -----------------------------------------------------------------------------------

void Object::append(Object item) {
  get<std::vector<Object>>(ObjectKind::kList);
  std::get<std::vector<Object>>(value_).push_back(std::move(item));
}

void Object::set(Object key, Object value) {
  get<std::vector<Entry>>(ObjectKind::kDict);
  object::check_key(key);
  auto& all = std::get<std::vector<Entry>>(value_);
  const auto known = std::find_if(
      all.begin(), all.end(), [&key](const Entry& entry) { return entry.first == key; });
  if (known != all.end()) {
    known->second = std::move(value);
  } else {
    all.emplace_back(std::move(key), std::move(value));
  }
}

bool operator==(const Object& a, const Object& b) noexcept {
  if (a.kind_ != b.kind_ || a.value_.index() != b.value_.index()) return false;
  return std::visit(
      [&b](const auto& mine) {
        using T = std::remove_cvref_t<decltype(mine)>;
        const T& theirs = *std::get_if<T>(&b.value_);
        if constexpr (std::is_same_v<T, double>) {
          return same_bits(mine, theirs);
        } else if constexpr (std::is_same_v<T, Object::Complex>) {
          return same_bits(mine.real, theirs.real) && same_bits(mine.imag, theirs.imag);
        } else if constexpr (std::is_same_v<T, Object::Big>) {
          return mine.negative == theirs.negative && mine.magnitude == theirs.magnitude;
        } else if constexpr (std::is_same_v<T, std::shared_ptr<const ObjectArray>>) {
          return mine == theirs || *mine == *theirs;
        } else {
          return mine == theirs;
        }
      },
      a.value_);
}

}  // namespace hocket
