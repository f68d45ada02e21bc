#include "foundation/object/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <complex>
#include <limits>

namespace hocket::object {

std::optional<std::size_t> shape_bytes(std::span<const std::size_t> shape, DType dtype) noexcept {
  if (shape.size() > kMaxDimensions || size_of(dtype) == 0) return std::nullopt;
  std::size_t limit = static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max());
  std::size_t bytes = size_of(dtype);
  bool empty = false;
  for (const std::size_t extent : shape) {
    if (extent == 0) {
      empty = true;
    } else if (extent > limit / bytes) {
      return std::nullopt;
    } else {
      bytes *= extent;
    }
  }
  return empty ? 0 : bytes;
}

bool is_key(const Object& object, int depth) noexcept {
  switch (object.kind()) {
    case ObjectKind::kNone:
    case ObjectKind::kBool:
    case ObjectKind::kInteger:
    case ObjectKind::kDouble:
    case ObjectKind::kComplex:
    case ObjectKind::kString:
    case ObjectKind::kBytes:
    case ObjectKind::kScalar:
      return true;
    case ObjectKind::kTuple: {
      const auto items = object.items();
      return depth > 0 && std::all_of(items.begin(), items.end(), [depth](const Object& item) {
               return is_key(item, depth - 1);
             });
    }
    case ObjectKind::kList:
    case ObjectKind::kDict:
    case ObjectKind::kArray:
    case ObjectKind::kPickle:
    case ObjectKind::kByteArray:
      return false;
  }
  return false;
}

void check_key(const Object& object) {
  if (is_key(object)) return;
  throw InvalidArgument("Object: " + describe(object) +
                        " cannot be a key of a dict; keys are none, bools, numbers, scalars, "
                        "strings, bytes, or tuples of those");
}

std::string describe(const Object& object) {
  constexpr std::size_t kShown = 60;
  switch (object.kind()) {
    case ObjectKind::kNone:
      return "none";
    case ObjectKind::kBool:
      return object.as_bool() ? "true" : "false";
    case ObjectKind::kInteger:
      return object.fits_int64() ? fmt::format("the integer {}", object.as_integer())
                                 : fmt::format("an integer of {} bytes", object.magnitude().size());
    case ObjectKind::kDouble:
      return fmt::format("the double {}", object.as_double());
    case ObjectKind::kComplex:
      return fmt::format(
          "the complex number {} + {}i", object.as_complex().real(), object.as_complex().imag());
    case ObjectKind::kString:
      if (object.as_string().size() > kShown) {
        return fmt::format("a string of {} bytes", object.as_string().size());
      }
      return fmt::format("the string \"{}\"", object.as_string());
    case ObjectKind::kBytes:
      return fmt::format("{} bytes", object.as_bytes().size());
    case ObjectKind::kByteArray:
      return fmt::format("a byte array of {} bytes", object.as_bytes().size());
    case ObjectKind::kScalar:
      return fmt::format("a scalar of {}", name_of(object.as_array().dtype));
    case ObjectKind::kPickle:
      return fmt::format("a pickle of {} bytes", object.as_pickle().size());
    case ObjectKind::kList:
    case ObjectKind::kTuple:
      return fmt::format("a {} of {} items", name_of(object.kind()), object.size());
    case ObjectKind::kDict:
      return fmt::format("a dict of {} entries", object.size());
    case ObjectKind::kArray:
      return fmt::format("an array ({}) of {}",
                         fmt::join(object.as_array().shape, ", "),
                         name_of(object.as_array().dtype));
  }
  return "an object";
}

}  // namespace hocket::object
