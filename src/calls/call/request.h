// What a public verb asks for, before anything is checked.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/call.h"
#include "hocket/communicator.h"
#include "hocket/error.h"

namespace hocket::call {

// Of an array or a segment: sums of such do not wrap around.
inline constexpr std::size_t kMostBytes = std::size_t{1} << 60;

// A value; views into the caller's arrays.
struct Request {
  engine::Kind kind = engine::Kind::kNone;
  ConstArrayView in = {};
  ArrayView out = {};
  bool in_place = false;  // the one-array form: `out` is the array
  ReduceOp op = ReduceOp::kSum;
  int root = 0;
  Parts in_parts = {};
  Parts out_parts = {};
  std::uint64_t digest = 0;  // a hash of what else must agree; 0: nothing
  std::optional<Duration> deadline = {};
  std::optional<StreamRef> stream = {};

  // Whether it is a call of GPUs: then it is put on a stream.
  bool is_device() const noexcept {
    return in.memory() != MemoryKind::kHost || out.memory() != MemoryKind::kHost ||
           (kind == engine::Kind::kBarrier && stream.has_value());
  }
};

// Whether `b` asks for the same as `a` of the same memory, so that what was found of one holds for
// the other. Requests with parts never do: the parts' values are not compared.
inline bool repeats(const Request& a, const Request& b) noexcept {
  const auto same = [](const auto& x, const auto& y) {
    return x.data() == y.data() && x.count() == y.count() && x.dtype() == y.dtype() &&
           x.memory() == y.memory() && x.device() == y.device() && x.order() == y.order();
  };
  return a.kind == b.kind && same(a.in, b.in) && same(a.out, b.out) && a.in_place == b.in_place &&
         a.op == b.op && a.root == b.root && a.digest == b.digest &&
         a.stream.has_value() == b.stream.has_value() && !is_listed(b.kind);
}

// Byte positions of the v-forms' parts: what a Call points to. A resource that lives as long as its
// Call; empty, and without allocation, for regular calls.
struct CallStorage {
  std::vector<std::size_t> positions;
};

// A rank of a group of so many: what checking needs to know of it. A value.
struct RankAndSize {
  int rank;
  int size;
};

// What is wrong with an array that cannot be: of no element type, at no address, or of more bytes
// than can be counted. Empty: nothing.
std::string fault_of(ConstArrayView array, std::string_view name);
// Throws InvalidArgument where there is such a fault.
inline void require_array(ConstArrayView array, std::string_view name) {
  if (const std::string fault = fault_of(array, name); !fault.empty()) throw InvalidArgument(fault);
}

// Checks a request and writes it down as engines want it. Throws InvalidArgument, naming argument,
// found and expected; has no effects.
engine::Call check(const Request& request, const RankAndSize& place, CallStorage& storage);

}  // namespace hocket::call
