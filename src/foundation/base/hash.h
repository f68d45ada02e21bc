// Hashes that are equal in all processes of a job. They do not protect against forgery.
#pragma once

#include <cstdint>
#include <string_view>

namespace hocket::base {

// FNV-1a. Different values of `seed` give independent hashes of one text.
constexpr std::uint64_t hash_of(std::string_view text, std::uint64_t seed = 0) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325 ^ seed;
  for (const char each : text) hash = (hash ^ static_cast<unsigned char>(each)) * 0x100000001b3;
  return hash;
}

// The hash to which `mix` adds the first number.
inline constexpr std::uint64_t kHashSeed = 0x9e3779b97f4a7c15;

// Adds one number to a hash. It needs a single multiplication, because every call uses it.
constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t value) noexcept {
  hash = (hash ^ value) * 0xff51afd7ed558ccd;
  return hash ^ (hash >> 32);
}

}  // namespace hocket::base
