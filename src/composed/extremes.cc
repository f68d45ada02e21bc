// argmin and argmax of reductions: the extremes; the lowest rank that brings each; what that one
// knows it by. Nothing is done beside them but comparisons, so that nothing can fail between them.
#include "hocket/extremes.h"

#include <fmt/format.h>

#include <array>
#include <complex>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/deadline.h"
#include "base/hash.h"
#include "call/request.h"
#include "core/dispatch.h"
#include "engine/made_of_calls.h"
#include "hocket/error.h"
#include "world/communicator_impl.h"

namespace hocket {
namespace {

using engine::Kind;
using engine::Signature;

template <typename T>
T load(const void* array, std::size_t i) noexcept {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(array) + i * sizeof(T), sizeof(T));
  return value;
}
template <typename T>
void store(void* array, std::size_t i, T value) noexcept {
  std::memcpy(static_cast<std::byte*>(array) + i * sizeof(T), &value, sizeof(T));
}

// Whether an element is the extreme.
template <typename T>
bool has(T element, T extreme) noexcept {
  return (element == extreme) | ((element != element) & (extreme != extreme));
}

// Whoever has an extreme says who it is, the others what no rank is called.
void mark(ConstArrayView in, const Extremes& out, int rank, int size) {
  core::dispatch(in.dtype(), [&]<typename T>() {
    // A bool of another library may be any byte.
    using Read = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
    for (std::size_t i = 0; i < in.count(); ++i) {
      Read element = load<Read>(in.data(), i), extreme = load<Read>(out.values.data(), i);
      if constexpr (std::is_same_v<T, bool>) {
        element = element != 0;
        extreme = extreme != 0;
      }
      store<std::int32_t>(out.ranks.data(), i, has(element, extreme) ? rank : size);
    }
  });
}

// The index of an element that is this rank's, the others 0: or-ed, these are the index.
void give(ConstArrayView index, const Extremes& out, int rank) {
  core::dispatch(index.dtype(), [&]<typename T>() {
    for (std::size_t i = 0; i < index.count(); ++i) {
      const bool mine = load<std::int32_t>(out.ranks.data(), i) == rank;
      store<T>(out.indices.data(), i, mine ? load<T>(index.data(), i) : T{});
    }
  });
}

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
    if (each.view.memory() == MemoryKind::kHost) continue;
    throw InvalidArgument(fmt::format(
        "{} lies in a GPU's memory, of which argmin and argmax are not to be had; copy it to the "
        "host's",
        each.name));
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
    // What is only read may be one.
    for (std::size_t j = std::max<std::size_t>(i + 1, 2); j < arrays.size(); ++j) {
      require_apart(arrays[i], arrays[j]);
    }
  }
}

// What tells it from an all_reduce, and those with an index from those without.
std::uint64_t digest_of(ConstArrayView in, const std::optional<ConstArrayView>& index) {
  const auto order = in.order() == MemoryOrder::kFortran ? MemoryOrder::kFortran : MemoryOrder::kC;
  const std::uint64_t with = index ? 1 + static_cast<std::uint64_t>(index->dtype()) : 0;
  return engine::digest_of_extremes(base::mix(engine::digest_of(order), with));
}

void find_extremes(Communicator& comm,
                   ReduceOp op,
                   ConstArrayView in,
                   const Extremes& out,
                   const ExtremeOptions& options) {
  world::CommunicatorImpl& impl = *comm.impl();
  impl.before_call(Kind::kAllReduce, [&] { require_sound(op, in, out, options.index); });
  const auto end = base::Deadline::in(options.deadline.value_or(comm.deadline()));
  const Signature shown{.kind = Kind::kAllReduce,
                        .dtype = in.dtype(),
                        .op = op,
                        .count = in.count(),
                        .digest = digest_of(in, options.index)};
  impl.run_as(
      shown,
      {.kind = Kind::kAllReduce, .in = in, .out = out.values, .op = op, .deadline = end.left()});
  const auto reduce_in_place = [&](ArrayView array, ReduceOp by) {
    impl.run_as(shown,
                {.kind = Kind::kAllReduce,
                 .out = array,
                 .in_place = true,
                 .op = by,
                 .deadline = end.left()});
  };
  mark(in, out, comm.rank(), comm.size());
  reduce_in_place(out.ranks, ReduceOp::kMin);
  if (!options.index) return;
  give(*options.index, out, comm.rank());
  reduce_in_place(out.indices, ReduceOp::kBitOr);
}

}  // namespace

void argmin(Communicator& comm,
            ConstArrayView in,
            const Extremes& out,
            const ExtremeOptions& options) {
  find_extremes(comm, ReduceOp::kMin, in, out, options);
}

void argmax(Communicator& comm,
            ConstArrayView in,
            const Extremes& out,
            const ExtremeOptions& options) {
  find_extremes(comm, ReduceOp::kMax, in, out, options);
}

}  // namespace hocket
