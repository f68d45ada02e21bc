// Random objects for property tests.
#pragma once

#include <rapidcheck.h>

#include <complex>
#include <string>
#include <vector>

#include "hocket/object.h"

namespace hocket::object_random {

// Evenly from [low, high), also while RapidCheck still keeps its cases small.
inline int pick(int low, int high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high));
}

inline std::vector<std::byte> bytes() {
  const auto raw = *rc::gen::arbitrary<std::vector<std::uint8_t>>();
  std::vector<std::byte> result;
  for (const std::uint8_t value : raw) result.push_back(std::byte{value});
  return result;
}

// Text with characters of one to four bytes.
inline std::string text() {
  const std::vector<std::string> alphabet{"a", "Z", "\n", "\u00e9", "\u20ac", "\U0001F3B5"};
  std::string result;
  for (const auto index : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 6))) {
    result += alphabet[static_cast<std::size_t>(index)];
  }
  return result;
}

inline Object array() {
  const auto dtype = static_cast<DType>(pick(0, kDTypeCount));
  auto shape = *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, 4));
  if (shape.size() > 5) shape.resize(5);
  auto contents = std::make_shared<ObjectArray>();
  std::size_t size = size_of(dtype);
  for (const std::size_t extent : shape) size *= extent;
  contents->dtype = dtype;
  contents->shape = std::move(shape);
  const int highest = dtype == DType::kBool ? 2 : 256;
  for (const int value :
       *rc::gen::container<std::vector<int>>(size, rc::gen::inRange(0, highest))) {
    contents->data.push_back(static_cast<std::byte>(value));
  }
  return Object::array(std::move(contents));
}

inline Object scalar_of_a_dtype() {
  const auto dtype = static_cast<DType>(pick(0, kDTypeCount));
  const int highest = dtype == DType::kBool ? 2 : 256;
  std::vector<std::byte> element(size_of(dtype));
  for (std::byte& one : element) one = static_cast<std::byte>(pick(0, highest));
  return Object::scalar({element.data(), 1, dtype});
}

inline Object scalar() {
  switch (pick(0, 9)) {
    case 0:
      return {};
    case 1:
      return *rc::gen::arbitrary<bool>();
    case 2:
      return *rc::gen::arbitrary<std::int64_t>();
    case 3:
      return Object::integer(*rc::gen::arbitrary<bool>(), bytes());
    case 4:
      return *rc::gen::arbitrary<double>();
    case 5:
      return std::complex<double>(*rc::gen::arbitrary<double>(), *rc::gen::arbitrary<double>());
    case 6:
      return text();
    case 7:
      return scalar_of_a_dtype();
    default:
      return Object::bytes(bytes());
  }
}

inline Object object(int depth) {
  const int kind = pick(depth > 0 ? -3 : 0, 4);
  if (kind == 0) return scalar();
  if (kind == 1) return array();
  if (kind == 2) return Object::pickle(bytes());
  if (kind == 3) return Object::byte_array(bytes());
  const int length = pick(0, 6);
  if (kind == -1) {
    Object result = Object::dict();
    for (int i = 0; i < length; ++i) {
      Object key = *rc::gen::arbitrary<bool>() ? scalar() : Object::tuple({scalar(), scalar()});
      result.set(std::move(key), object(depth - 1));
    }
    return result;
  }
  std::vector<Object> items;
  for (int i = 0; i < length; ++i) items.push_back(object(depth - 1));
  return kind == -2 ? Object::list(std::move(items)) : Object::tuple(std::move(items));
}

}  // namespace hocket::object_random
