// The request of a public function, before anything is checked.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/call.h"
#include "hocket/communicator.h"
#include "hocket/error.h"

namespace hocket::call {

// Largest size of an array or a segment, in bytes. The sum of a few sizes does not overflow.
inline constexpr std::size_t kMostBytes = std::size_t{1} << 60;

// The arguments of a call. A value with views of the caller's arrays.
struct Request {
  engine::Kind kind = engine::Kind::kNone;
  ConstArrayView in = {};
  ArrayView out = {};
  bool in_place = false;  // the one-array form: `out` is the array
  ReduceOp op = ReduceOp::kSum;
  int root = 0;
  Parts in_parts = {};
  Parts out_parts = {};
  std::uint64_t digest = 0;  // a hash of further data that must agree; 0: none
  std::optional<Duration> deadline = {};
  std::optional<StreamRef> stream = {};

  // True for a call of GPUs, which is put on a stream.
  bool is_device() const noexcept {
    return in.memory() == MemoryKind::kCuda || out.memory() == MemoryKind::kCuda ||
           (kind == engine::Kind::kBarrier && stream.has_value());
  }
};

// True if `b` equals `a`, with the same memory, so that `a`'s plan is valid for `b`. Always false
// for requests with parts, whose values are not compared.
inline bool repeats(const Request& a, const Request& b) noexcept {
  const auto same = [](const auto& x, const auto& y) {
    return x.data() == y.data() && x.count() == y.count() && x.dtype() == y.dtype() &&
           x.memory() == y.memory() && x.device() == y.device() && x.order() == y.order();
  };
  return a.kind == b.kind && same(a.in, b.in) && same(a.out, b.out) && a.in_place == b.in_place &&
         a.op == b.op && a.root == b.root && a.digest == b.digest &&
         a.stream.has_value() == b.stream.has_value() && !is_listed(b.kind);
}

// Byte offsets of the v-forms' parts, to which a Call points. A resource that lives as long as its
// Call; empty, and without allocation, for regular calls.
struct CallStorage {
  std::vector<std::size_t> positions;
};

// A rank and the size of its group, for checks. A value.
struct RankAndSize {
  int rank;
  int size;
};

// Describes the fault of an invalid array: no element type, no kind of memory, no address, or too
// many bytes. Returns an empty text if there is no fault.
std::string fault_of(ConstArrayView array, std::string_view name);
// Throws InvalidArgument if the array has a fault. Inline, because each message is checked.
inline void require_array(ConstArrayView array, std::string_view name) {
  const std::size_t element = size_of(array.dtype());
  const bool has_address = array.data() != nullptr || array.count() == 0;
  const bool has_memory = array.memory() <= MemoryKind::kCuda;
  if (element == 0 || array.count() > kMostBytes / element || !has_address || !has_memory)
      [[unlikely]]
    throw InvalidArgument(fault_of(array, name));
}

// Checks a request and converts it to the engines' form. Throws InvalidArgument that names the
// argument, its value and what was expected. Has no side effects.
engine::Call check(const Request& request, const RankAndSize& place, CallStorage& storage);

}  // namespace hocket::call
