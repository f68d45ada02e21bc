// Checks values of enumerations that a program passes, because it may cast any number to them.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "hocket/error.h"

namespace hocket::base {

// Throws InvalidArgument unless `value` is an enumerator. The enumerators of its type have the
// numbers from 0 to `last`.
// @param name The argument's name.
// @param type Name of the enumeration in namespace hocket.
template <typename E>
void require_enumerator(E value, E last, std::string_view name, std::string_view type) {
  const auto number = static_cast<long long>(value);
  if (number >= 0 && number <= static_cast<long long>(last)) return;
  throw InvalidArgument(fmt::format("{} is {}, which is none of hocket::{}", name, number, type));
}

}  // namespace hocket::base
