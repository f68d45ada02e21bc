// argmin and argmax: one reduction of entries, each with an element, its rank, and its index there.
#include "hocket/extremes.h"

#include <fmt/format.h>

#include <array>
#include <complex>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "calls/call/request.h"
#include "calls/composed/by_function.h"
#include "calls/device/calls.h"
#include "calls/world/communicator_impl.h"
#include "engine/made_of_calls.h"
#include "engines/algorithm/scratch.h"
#include "foundation/base/hash.h"
#include "foundation/base/limit.h"
#include "foundation/core/dispatch.h"
#include "hocket/error.h"

namespace hocket {
namespace {

using engine::Kind;
using engine::Signature;

template <typename T>
inline constexpr bool kHasOrder = true;
template <typename T>
inline constexpr bool kHasOrder<std::complex<T>> = false;

template <typename T>
T load(const std::byte* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

// Returns whether `b` replaces `a` as the extreme. If they are equal, `a` stays, because it comes
// first. A NaN replaces a number.
template <typename T, bool kLeast>
bool is_more(T a, T b) noexcept {
  if constexpr (!kHasOrder<T>) {
    return false;
  } else {
    const bool beyond = kLeast ? b < a : a < b;
    return beyond | ((b != b) & (a == a));
  }
}

// Combines entries of one size: `left` keeps the extreme of each pair. An entry is packed:
//
//   element | rank (4 bytes) | index of 0, 1, 2, 4 or 8 bytes
template <typename T, bool kLeast, std::size_t kIndexBytes>
void combine_entries(std::byte* left, const std::byte* right, std::size_t count) noexcept {
  constexpr std::size_t kEntry = sizeof(T) + sizeof(std::int32_t) + kIndexBytes;
  for (std::size_t i = 0; i < count; ++i) {
    std::byte* const a = left + i * kEntry;
    const std::byte* const b = right + i * kEntry;
    // Selects without a branch, because the processor would mispredict it half of the time.
    std::array<std::byte, kEntry> entry, other;
    std::memcpy(entry.data(), a, kEntry);
    std::memcpy(other.data(), b, kEntry);
    entry = is_more<T, kLeast>(load<T>(a), load<T>(b)) ? other : entry;
    std::memcpy(a, entry.data(), kEntry);
  }
}

// The addresses of a call's arrays.
struct ArrayAddresses {
  const std::byte* in = nullptr;
  const std::byte* index = nullptr;
  std::byte* values = nullptr;
  std::byte* ranks = nullptr;
  std::byte* indices = nullptr;
};

template <std::size_t kElement, std::size_t kIndexBytes>
void pack_entries(std::byte* to,
                  const ArrayAddresses& from,
                  std::int32_t rank,
                  std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(to, from.in + i * kElement, kElement);
    std::memcpy(to + kElement, &rank, sizeof(rank));
    to += kElement + sizeof(rank);
    if constexpr (kIndexBytes != 0) {
      std::memcpy(to, from.index + i * kIndexBytes, kIndexBytes);
      to += kIndexBytes;
    }
  }
}

template <std::size_t kElement, std::size_t kIndexBytes>
void unpack_entries(const ArrayAddresses& to, const std::byte* from, std::size_t count) noexcept {
  constexpr std::size_t kRank = sizeof(std::int32_t);
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(to.values + i * kElement, from, kElement);
    std::memcpy(to.ranks + i * kRank, from + kElement, kRank);
    from += kElement + kRank;
    if constexpr (kIndexBytes != 0) {
      std::memcpy(to.indices + i * kIndexBytes, from, kIndexBytes);
      from += kIndexBytes;
    }
  }
}

// The operations on entries of one size. All sizes are known at compile time.
struct EntryLoops {
  void (*pack)(std::byte*, const ArrayAddresses&, std::int32_t rank, std::size_t) noexcept;
  void (*combine)(std::byte*, const std::byte*, std::size_t) noexcept;
  void (*unpack)(const ArrayAddresses&, const std::byte*, std::size_t) noexcept;
};

template <typename T, bool kLeast, std::size_t kIndexBytes>
constexpr EntryLoops kLoopsOf{&pack_entries<sizeof(T), kIndexBytes>,
                              &combine_entries<T, kLeast, kIndexBytes>,
                              &unpack_entries<sizeof(T), kIndexBytes>};

EntryLoops loops_of(DType dtype, ReduceOp op, std::size_t index_bytes) {
  return core::dispatch(dtype, [&]<typename Element>() -> EntryLoops {
    using T = std::conditional_t<std::is_same_v<Element, bool>, std::uint8_t, Element>;
    const auto of_index = [&]<bool kLeast>() -> EntryLoops {
      if (index_bytes == 0) return kLoopsOf<T, kLeast, 0>;
      if (index_bytes == 1) return kLoopsOf<T, kLeast, 1>;
      if (index_bytes == 2) return kLoopsOf<T, kLeast, 2>;
      if (index_bytes == 4) return kLoopsOf<T, kLeast, 4>;
      return kLoopsOf<T, kLeast, 8>;
    };
    return op == ReduceOp::kMin ? of_index.template operator()<true>()
                                : of_index.template operator()<false>();
  });
}

// One checked call of one rank.
class ExtremesCall final : public composed::ByFunction {
 public:
  ExtremesCall(world::CommunicatorImpl& impl,
               const Signature& signature,
               const ArrayAddresses& places,
               std::size_t index_bytes)
      : ByFunction(impl,
                   signature,
                   {.units = signature.count,
                    .unit_bytes = entry_bytes(signature, index_bytes),
                    .rank = impl.rank(),
                    .size = impl.size()}),
        places_(places),
        count_(signature.count),
        entry_(entry_bytes(signature, index_bytes)),
        is_bool_(signature.dtype == DType::kBool),
        rank_(impl.rank()),
        loops_(loops_of(signature.dtype, signature.op, index_bytes)),
        entries_(count_ * entry_) {}

 private:
  static std::size_t entry_bytes(const Signature& s, std::size_t index_bytes) {
    return size_of(s.dtype) + sizeof(std::int32_t) + index_bytes;
  }

  Arrays begin(const engine::Call& /*call*/) override {
    std::byte* const entries = entries_.get();
    loops_.pack(entries, places_, rank_, count_);
    // In another library's bool, any nonzero byte may be true.
    for (std::size_t at = 0; is_bool_ && at < count_ * entry_; at += entry_) {
      entries[at] = std::byte{entries[at] != std::byte{}};
    }
    return {entries, entries};
  }
  void combine(std::byte* left, const std::byte* right, std::size_t units) override {
    loops_.combine(left, right, units);
  }
  void end() override { loops_.unpack(places_, entries_.get(), count_); }

  const ArrayAddresses places_;
  const std::size_t count_;
  const std::size_t entry_;  // bytes
  const bool is_bool_;
  const std::int32_t rank_;
  const EntryLoops loops_;
  const algorithm::Scratch entries_;
};

struct Named {
  std::string_view name;
  ConstArrayView view;
};

void require_apart(const Named& a, const Named& b) {
  const auto first = reinterpret_cast<std::uintptr_t>(a.view.data());
  const auto second = reinterpret_cast<std::uintptr_t>(b.view.data());
  if (a.view.bytes() == 0 || b.view.bytes() == 0) return;
  if (first + a.view.bytes() <= second || second + b.view.bytes() <= first) return;
  throw InvalidArgument(fmt::format("{} and {} overlap; give arrays apart", a.name, b.name));
}

void require_fitting(const Named& array, std::size_t count, DType dtype) {
  if (array.view.count() == count && array.view.dtype() == dtype) return;
  throw InvalidArgument(fmt::format("{} is {}[{}], expected {}[{}]",
                                    array.name,
                                    name_of(array.view.dtype()),
                                    array.view.count(),
                                    name_of(dtype),
                                    count));
}

void require_sound(ReduceOp op,
                   ConstArrayView in,
                   const Extremes& out,
                   const std::optional<ConstArrayView>& index) {
  const std::array<Named, 5> arrays{{{"in", in},
                                     {"index", index.value_or(ConstArrayView())},
                                     {"values", out.values},
                                     {"ranks", out.ranks},
                                     {"indices", out.indices}}};
  for (const Named& each : arrays) {
    call::require_array(each.view, each.name);
    if (each.view.memory() == in.memory() || each.view.count() == 0) continue;
    throw InvalidArgument(fmt::format("in and {} lie in different kinds of memory", each.name));
  }
  if (!is_defined(op, in.dtype())) {
    throw InvalidArgument(
        fmt::format("in holds {}, whose numbers have no order", name_of(in.dtype())));
  }
  require_fitting(arrays[2], in.count(), in.dtype());
  require_fitting(arrays[3], in.count(), DType::kInt32);
  if (index) {
    if (!is_defined(ReduceOp::kBitOr, index->dtype()) || index->dtype() == DType::kBool) {
      throw InvalidArgument(
          fmt::format("index holds {}, expected integers", name_of(index->dtype())));
    }
    require_fitting(arrays[1], in.count(), index->dtype());
    require_fitting(arrays[4], in.count(), index->dtype());
  } else if (out.indices.count() != 0) {
    throw InvalidArgument("indices is given and index is not; give both or neither");
  }
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    // Arrays that are only read may be the same.
    for (std::size_t j = std::max<std::size_t>(i + 1, 2); j < arrays.size(); ++j) {
      require_apart(arrays[i], arrays[j]);
    }
  }
}

// Returns a digest that distinguishes the call from an all_reduce. It also distinguishes calls with
// an index from calls without.
std::uint64_t digest_of(ConstArrayView in, const std::optional<ConstArrayView>& index) {
  const auto order = in.order() == MemoryOrder::kFortran ? MemoryOrder::kFortran : MemoryOrder::kC;
  const std::uint64_t with = index ? 1 + static_cast<std::uint64_t>(index->dtype()) : 0;
  return engine::digest_of_extremes(base::mix(engine::digest_of(order), with));
}

// The arguments of a call.
class AskedExtremes {
 public:
  AskedExtremes(Communicator& comm,
                ReduceOp op,
                ConstArrayView in,
                const Extremes& out,
                const ExtremeOptions& options)
      : impl_(comm.impl()), op_(op), in_(in), out_(out), options_(options) {}

  void run() const {
    check();
    if (is_on_gpu()) {
      on_gpu(false);
    } else {
      composed::run(*impl_, made());
    }
  }
  Work start() const {
    check();
    return is_on_gpu() ? Work(on_gpu(true)) : composed::start(*impl_, made());
  }
  Prepared prepare() const {
    check();
    if (!is_on_gpu()) return composed::prepare(impl_, made());
    const auto again = [impl = impl_, asked = *this](bool wants_work) {
      return asked.on_gpu(wants_work);
    };
    return composed::prepare(
        impl_, {.run = [again] { again(false); }, .start = [again] { return again(true); }});
  }

 private:
  // Returns the kind that refusals name.
  Kind kind() const { return op_ == ReduceOp::kMin ? Kind::kArgmin : Kind::kArgmax; }
  bool is_on_gpu() const { return in_.memory() != MemoryKind::kHost; }
  void check() const {
    impl_->before_call(kind(), [&] {
      require_sound(op_, in_, out_, options_.index);
      base::require_limit(options_.deadline, "deadline");
    });
  }
  std::size_t index_bytes() const { return options_.index ? size_of(options_.index->dtype()) : 0; }
  Signature signature() const {
    return {.kind = Kind::kAllReduce,
            .dtype = in_.dtype(),
            .op = op_,
            .memory = in_.memory(),
            .count = in_.count(),
            .digest = digest_of(in_, options_.index)};
  }
  composed::Checked made() const {
    return impl_->before_call(kind(), [&] {
      const auto bytes = [](const void* data) { return static_cast<const std::byte*>(data); };
      const auto to = [](void* data) { return static_cast<std::byte*>(data); };
      const ArrayAddresses places{.in = bytes(in_.data()),
                                  .index = options_.index ? bytes(options_.index->data()) : nullptr,
                                  .values = to(out_.values.data()),
                                  .ranks = to(out_.ranks.data()),
                                  .indices = to(out_.indices.data())};
      return composed::Checked{
          .engine = std::make_shared<ExtremesCall>(*impl_, signature(), places, index_bytes()),
          .in = in_.data(),
          .out = out_.values.data(),
          .deadline = options_.deadline};
    });
  }

  // Makes the call on the host, in the order of the stream.
  std::shared_ptr<call::Operation> on_gpu(bool wants_work) const {
    std::vector<ConstArrayView> in{in_};
    std::vector<ArrayView> out{out_.values, out_.ranks};
    if (options_.index) {
      in.push_back(*options_.index);
      out.push_back(out_.indices);
    }
    const auto plan = [&](const std::vector<std::byte*>& given,
                          const std::vector<std::byte*>& taken) {
      const ArrayAddresses places{.in = given[0],
                                  .index = options_.index ? given[1] : nullptr,
                                  .values = taken[0],
                                  .ranks = taken[1],
                                  .indices = options_.index ? taken[2] : nullptr};
      Signature here = signature();
      here.memory = MemoryKind::kHost;
      const composed::Checked made{
          .engine = std::make_shared<ExtremesCall>(*impl_, here, places, index_bytes()),
          .in = places.in,
          .out = places.values};
      device::PlannedOnCopies planned{.plan = composed::plan_of(made), .keep = made.engine};
      planned.plan.hash = call::Ledger::hash_of(signature());
      return planned;
    };
    return impl_->start_on_copies(
        {.in = in,
         .out = out,
         .shown = signature(),
         .options = {.deadline = options_.deadline, .stream = options_.stream},
         .wants_work = wants_work},
        plan);
  }

  std::shared_ptr<world::CommunicatorImpl> impl_;
  ReduceOp op_;
  ConstArrayView in_;
  Extremes out_;
  ExtremeOptions options_;
};

}  // namespace

// Defines the functions of a verb: the call, its start and its preparation.
#define VERB(verb, op)                                                                             \
  void verb(                                                                                       \
      Communicator& comm, ConstArrayView in, const Extremes& out, const ExtremeOptions& options) { \
    AskedExtremes(comm, op, in, out, options).run();                                               \
  }                                                                                                \
  Work verb##_async(                                                                               \
      Communicator& comm, BorrowedView in, const Extremes& out, const ExtremeOptions& options) {   \
    return AskedExtremes(comm, op, in, out, options).start();                                      \
  }                                                                                                \
  Prepared prepare_##verb(                                                                         \
      Communicator& comm, BorrowedView in, const Extremes& out, const ExtremeOptions& options) {   \
    return AskedExtremes(comm, op, in, out, options).prepare();                                    \
  }

VERB(argmin, ReduceOp::kMin)
VERB(argmax, ReduceOp::kMax)

#undef VERB

}  // namespace hocket
