#include "cases.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "foundation/core/dispatch.h"

namespace hocket::conformance {

using engine::Kind;

namespace {

constexpr std::byte kPoison{0xA5};
constexpr std::byte kScribble{0x5A};
constexpr std::size_t kGuard = 64;  // poisoned bytes on either side of an array

// In some cases the ranks' arrays begin at addresses that are aligned to their element alone, each
// rank's at others.
std::size_t lead_of(const Case& c, int rank) {
  const std::uint64_t elements = c.seed % 4 == 0 ? 0 : (c.seed + static_cast<unsigned>(rank)) % 3;
  return kGuard + elements * size_of(c.dtype);
}

template <typename T>
void put(std::byte* array, std::size_t index, T value) {
  std::memcpy(array + index * sizeof(T), &value, sizeof(T));
}

template <typename T>
T expected(const Case& c, int size, const Slice& slice, std::size_t i) {
  const std::size_t index = slice.source_at + i;
  if (slice.source >= 0) return element<T>(c.data, c.seed, slice.source, index, c.op);
  const int ranks = slice.ranks == 0 ? size : slice.ranks;
  if (c.data == Data::kExact && c.op != ReduceOp::kAvg) {
    return exactly_reduced<T>(
        c.op, ranks, [&](int r) { return exact_number(c.seed, r, index, c.op); });
  }
  const auto value = [&](int r) { return element<T>(c.data, c.seed, r, index, c.op); };
  return c.data == Data::kSpecial ? specially_reduced<T>(c.op, ranks, value)
                                  : reduced<T>(c.op, ranks, value);
}

// The same bits; of special values, which NaN and which zero is not promised.
template <typename T>
bool is_right(const Case& c, const std::byte* found, T wanted) {
  if (std::memcmp(found, &wanted, sizeof(T)) == 0) return true;
  T value;
  std::memcpy(&value, found, sizeof(T));
  return c.data == Data::kSpecial && alike(value, wanted);
}

// The index of the first wrong element of `out`, or -1.
template <typename T>
std::ptrdiff_t first_wrong(const Case& c, int size, const Slice& slice, const std::byte* out) {
  for (std::size_t i = 0; i < slice.count; ++i) {
    const T value = expected<T>(c, size, slice, i);
    if (!is_right(c, out + (slice.at + i) * sizeof(T), value)) {
      return static_cast<std::ptrdiff_t>(i);
    }
  }
  return -1;
}

bool all_are(const std::byte* from, const std::byte* to, std::byte value) {
  return std::all_of(from, to, [value](std::byte b) { return b == value; });
}

std::string hex(const std::byte* bytes, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[static_cast<int>(bytes[i]) >> 4];
    text += kDigits[static_cast<int>(bytes[i]) & 15];
  }
  return text;
}

}  // namespace

bool has_root(Kind kind) {
  return kind == Kind::kBroadcast || kind == Kind::kReduce || kind == Kind::kGather ||
         kind == Kind::kScatter || kind == Kind::kGatherV || kind == Kind::kScatterV;
}
bool reduces(Kind kind) {
  return kind == Kind::kReduce || kind == Kind::kAllReduce || kind == Kind::kScan ||
         kind == Kind::kExscan || kind == Kind::kReduceScatter || kind == Kind::kReduceScatterV;
}

Case in_any_order(Case c) {
  const bool rounds =
      c.op == ReduceOp::kSum || c.op == ReduceOp::kAvg || c.op == ReduceOp::kProduct;
  const bool integral = c.dtype <= DType::kUInt64;
  if (reduces(c.kind) && rounds && !integral && c.data == Data::kRandom) c.data = Data::kExact;
  return c;
}

std::string describe(const Case& c) {
  std::string text(name_of(c.kind));
  text += " " + std::string(name_of(c.dtype));
  if (reduces(c.kind)) text += " " + std::string(name_of(c.op));
  text += "[" + std::to_string(c.count) + "]";
  if (has_root(c.kind)) text += " root " + std::to_string(c.root);
  if (c.in_place) text += c.on_odd_ranks ? " in place on odd ranks" : " in place";
  if (c.in_place && c.at_own_part) text += " at the own part";
  if (c.data == Data::kExact) text += " exact";
  if (c.data == Data::kSpecial) text += " special";
  return text + " seed " + std::to_string(c.seed);
}

Buffers::Buffers(const Case& c, int rank, int size, std::uint64_t sequence)
    : case_(c), size_(size), rank_(rank), shape_(shape_of(c, rank, size)) {
  const std::size_t bytes = size_of(c.dtype);
  const auto room = [&](std::size_t count) { return lead_of(c, rank) + count * bytes + kGuard; };
  if (shape_.one_buffer) {
    const std::size_t count =
        std::max(shape_.in_at + shape_.in_count, shape_.out_at + shape_.out_count);
    out_memory_.assign(room(count), kPoison);
  } else {
    if (shape_.has_in) in_memory_.assign(room(shape_.in_count), kPoison);
    if (shape_.has_out) out_memory_.assign(room(shape_.out_count), kPoison);
  }
  core::dispatch(c.dtype, [&]<typename T>() {
    for (std::size_t i = 0; i < shape_.in_count; ++i) {
      put<T>(in(), i, element<T>(c.data, c.seed, rank, i, c.op));
    }
  });
  in_before_ = in_memory_;

  call_.sequence = sequence;
  call_.fingerprint = mix(sequence);
  engine::Signature& s = call_.signature;
  s.kind = c.kind;
  s.dtype = c.dtype;
  s.op = c.op;
  s.root = has_root(c.kind) ? c.root : 0;
  const bool listed = c.kind >= Kind::kReduceScatterV;
  s.count = listed ? 0 : c.count;
  if (c.kind == Kind::kAllGatherV)
    for (const auto n : shape_.out_counts) s.count += n;
  if (c.kind == Kind::kReduceScatterV)
    for (const auto n : shape_.in_counts) s.count += n;
  s.digest = listed && !has_root(c.kind) && c.kind != Kind::kAllToAllV ? c.seed : 0;
  // Arrays of nothing have no address, as users' empty containers do.
  call_.in = shape_.has_in && shape_.in_count > 0 ? in() : nullptr;
  call_.out = shape_.has_out && shape_.out_count > 0 ? out() : nullptr;
  call_.own_bytes = shape_.own_count * bytes;
  for (const auto* list :
       {&shape_.in_counts, &shape_.in_places, &shape_.out_counts, &shape_.out_places}) {
    for (const std::size_t n : *list) positions_.push_back(n * bytes);
  }
  const auto n = static_cast<std::size_t>(size);
  if (!shape_.in_counts.empty()) call_.in_parts = {positions_.data(), positions_.data() + n};
  if (!shape_.out_counts.empty()) {
    const std::size_t* at = positions_.data() + positions_.size() - 2 * n;
    call_.out_parts = {at, at + n};
  }
}

std::byte* Buffers::in() const {
  const auto& memory = shape_.one_buffer ? out_memory_ : in_memory_;
  return const_cast<std::byte*>(memory.data()) + lead_of(case_, rank_) +
         shape_.in_at * (shape_.one_buffer ? size_of(case_.dtype) : 0);
}

std::byte* Buffers::out() const {
  return const_cast<std::byte*>(out_memory_.data()) + lead_of(case_, rank_) +
         shape_.out_at * (shape_.one_buffer ? size_of(case_.dtype) : 0);
}

std::string Buffers::check() const {
  for (const Slice& slice : shape_.result) {
    if (slice.count == 0) continue;
    std::string wrong;
    core::dispatch(case_.dtype, [&]<typename T>() {
      const auto i = first_wrong<T>(case_, size_, slice, out());
      if (i < 0) return;
      const T value = expected<T>(case_, size_, slice, static_cast<std::size_t>(i));
      const std::size_t at = slice.at + static_cast<std::size_t>(i);
      wrong = "element " + std::to_string(at) + " of out is 0x" +
              hex(out() + at * sizeof(T), sizeof(T)) + ", expected 0x" +
              hex(reinterpret_cast<const std::byte*>(&value), sizeof(T)) + " (source " +
              std::to_string(slice.source) + ")";
    });
    if (!wrong.empty()) return wrong;
  }
  return check_surroundings();
}

// Checks that nothing except the result was written.
std::string Buffers::check_surroundings() const {
  if (in_memory_ != in_before_) return "in was written to";
  if (!shape_.has_out) return {};
  const std::byte* begin = out_memory_.data();
  const std::byte* end = begin + out_memory_.size();
  if (!all_are(begin, begin + lead_of(case_, rank_), kPoison) ||
      !all_are(end - kGuard, end, kPoison)) {
    return "something was written outside out";
  }
  if (shape_.one_buffer) return {};
  std::vector<std::byte> rest(out(), out() + shape_.out_count * size_of(case_.dtype));
  for (const Slice& slice : shape_.result) {
    const auto at = static_cast<std::ptrdiff_t>(slice.at * size_of(case_.dtype));
    std::fill_n(rest.begin() + at, slice.count * size_of(case_.dtype), kPoison);
  }
  return all_are(rest.data(), rest.data() + rest.size(), kPoison)
             ? ""
             : "something was written between the parts of out";
}

void Buffers::scribble() {
  std::ranges::fill(in_memory_, kScribble);
  std::ranges::fill(out_memory_, kScribble);
}

bool Buffers::is_scribbled() const {
  return all_are(in_memory_.data(), in_memory_.data() + in_memory_.size(), kScribble) &&
         all_are(out_memory_.data(), out_memory_.data() + out_memory_.size(), kScribble);
}

void run_case(const EngineRank& self, const Case& asked, std::uint64_t sequence) {
  const Case c = self.ordered ? asked : in_any_order(asked);
  const Buffers buffers(c, self.rank, self.size, sequence);
  engine::Task task = self.engine->start(buffers.call());
  drive(self, task, describe(c));
  task.reset();
  const std::string wrong = buffers.check();
  if (!wrong.empty()) throw std::runtime_error(describe(c) + ": " + wrong);
}

}  // namespace hocket::conformance
