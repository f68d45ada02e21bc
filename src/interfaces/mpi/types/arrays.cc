// subarray and darray: types that are a part of an array of several dimensions.
#include <algorithm>
#include <string>

#include "interfaces/mpi/types/arguments.h"
#include "interfaces/mpi/types/datatype.h"

namespace hocket::mpi {
namespace {

Refusal refuse(const std::string& text) { return {ErrorClass::kArg, text}; }

Refusal array_too_large() {
  return {ErrorClass::kValueTooLarge, "the whole array has more than 2**63 bytes"};
}

std::string entry(const char* name, std::size_t i, std::int64_t value) {
  return std::string(name) + "[" + std::to_string(i) + "] is " + std::to_string(value);
}

std::optional<Refusal> check_order(Order order) {
  if (order == Order::kC || order == Order::kFortran) return {};
  return refuse("order is " + std::to_string(static_cast<int>(order)) +
                ", but must be MPI_ORDER_C or MPI_ORDER_FORTRAN");
}

std::optional<Refusal> check_dimensions(std::size_t ndims) {
  if (ndims > 0) return {};
  return Refusal{ErrorClass::kDims, "ndims is 0, but must be 1 or more"};
}

std::optional<Refusal> check_positive(const char* name, Numbers values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 1) return refuse(entry(name, i, values[i]) + ", but must be 1 or more");
  }
  return {};
}

std::optional<Refusal> check(const Subarray& of, const DatatypePtr& old) {
  const std::size_t ndims = of.sizes.size();
  if (auto refusal = check_dimensions(ndims)) return refusal;
  if (auto refusal = check_as_many(ndims, of.subsizes.size(), "array_of_subsizes")) return refusal;
  if (auto refusal = check_as_many(ndims, of.starts.size(), "array_of_starts")) return refusal;
  if (auto refusal = check_positive("array_of_sizes", of.sizes)) return refusal;
  if (auto refusal = check_positive("array_of_subsizes", of.subsizes)) return refusal;
  if (auto refusal = check_not_negative(of.starts, "array_of_starts")) return refusal;
  for (std::size_t i = 0; i < ndims; ++i) {
    if (of.subsizes[i] > of.sizes[i] || of.starts[i] > of.sizes[i] - of.subsizes[i]) {
      return refuse(entry("array_of_starts", i, of.starts[i]) + " and " +
                    entry("array_of_subsizes", i, of.subsizes[i]) + ", which ends beyond " +
                    entry("array_of_sizes", i, of.sizes[i]));
    }
  }
  if (auto refusal = check_order(of.order)) return refusal;
  return check_type(old, "oldtype");
}

// Returns the `step`th dimension, counted from the one whose neighbours are adjacent in memory.
std::size_t dimension_at(std::size_t step, std::size_t ndims, Order order) {
  return order == Order::kFortran ? step : ndims - 1 - step;
}

// One dimension of a darray, as this rank sees it.
struct Axis {
  std::int64_t length = 0;     // elements of the whole array
  std::int64_t block = 0;      // consecutive elements in a block
  std::int64_t processes = 0;  // processes that take blocks in turn
  std::int64_t place = 0;      // of this rank among them
};

// Returns this rank's share of many copies of `map`, which are `stride` bytes apart.
Result<TypeMap> share_of(const Axis& axis, const TypeMap& map, std::int64_t stride) {
  TypeMapJoin join;
  // A block may be longer than the array, so rounding the length up to whole blocks might overflow.
  // Therefore this counts the whole blocks, and the elements of a shorter last block.
  const std::int64_t blocks = axis.length / axis.block;  // whole ones
  const std::int64_t rest = axis.length % axis.block;
  const std::int64_t rounds = blocks / axis.processes;
  const std::int64_t whole = rounds + (axis.place < blocks % axis.processes ? 1 : 0);
  const bool has_rest = rest > 0 && axis.place == blocks % axis.processes;
  const auto turn = checked_multiply(axis.processes, axis.block);
  if (whole > 0) {
    Result<TypeMap> block = map.repeated(axis.block, stride);
    if (!block.ok()) return block;
    // With a single block no stride between turns is needed; it might overflow.
    const auto turn_bytes = whole == 1 ? 0 : checked_multiply(turn.value_or(0), stride);
    if (!turn_bytes) return array_too_large();
    Result<TypeMap> all = block.value().repeated(whole, *turn_bytes);
    if (!all.ok()) return all;
    if (auto refusal = join.add(all.value(), 1, axis.place * axis.block * stride)) return *refusal;
  }
  if (has_rest) {
    Result<TypeMap> last = map.repeated(rest, stride);
    if (!last.ok()) return last;
    if (auto refusal = join.add(last.value(), 1, blocks * axis.block * stride)) return *refusal;
  }
  return join.take();
}

std::optional<Refusal> check_grid(const Darray& of) {
  if (of.size < 1) return refuse("size is " + std::to_string(of.size) + ", but must be 1 or more");
  if (of.rank < 0 || of.rank >= of.size) {
    return refuse("rank is " + std::to_string(of.rank) + ", but must be between 0 and size - 1, " +
                  std::to_string(of.size - 1));
  }
  if (auto refusal = check_positive("array_of_psizes", of.psizes)) return refusal;
  std::int64_t processes = 1;
  for (const std::int64_t psize : of.psizes) {
    const auto product = checked_multiply(processes, psize);
    if (!product || *product > of.size) {
      processes = -1;
      break;
    }
    processes = *product;
  }
  if (processes == of.size) return {};
  return refuse("the product of array_of_psizes is not size, " + std::to_string(of.size));
}

std::optional<Refusal> check(const Darray& of, const DatatypePtr& old) {
  const std::size_t ndims = of.gsizes.size();
  if (auto refusal = check_dimensions(ndims)) return refusal;
  if (auto refusal = check_as_many(ndims, of.distribs.size(), "array_of_distribs")) return refusal;
  if (auto refusal = check_as_many(ndims, of.dargs.size(), "array_of_dargs")) return refusal;
  if (auto refusal = check_as_many(ndims, of.psizes.size(), "array_of_psizes")) return refusal;
  if (auto refusal = check_positive("array_of_gsizes", of.gsizes)) return refusal;
  if (auto refusal = check_grid(of)) return refusal;
  if (auto refusal = check_order(of.order)) return refusal;
  return check_type(old, "oldtype");
}

Result<Axis> axis_of(const Darray& of, std::size_t i, std::int64_t place) {
  Axis axis{of.gsizes[i], of.dargs[i], of.psizes[i], place};
  const bool is_default = axis.block == kDefaultDarg;
  const auto distribution = of.distribs[i];
  if (distribution == Distribution::kNone) {
    if (axis.processes != 1) {
      return refuse(entry("array_of_psizes", i, axis.processes) +
                    ", but must be 1 where the dimension is not distributed");
    }
    axis.block = axis.length;
    return axis;
  }
  if (!is_default && axis.block < 1) {
    return refuse(entry("array_of_dargs", i, axis.block) +
                  ", but must be 1 or more, or MPI_DISTRIBUTE_DFLT_DARG");
  }
  if (distribution == Distribution::kCyclic) {
    if (is_default) axis.block = 1;
  } else if (distribution == Distribution::kBlock) {
    const std::int64_t least =
        axis.length / axis.processes + (axis.length % axis.processes > 0 ? 1 : 0);
    if (is_default) axis.block = least;
    if (axis.block < least) {
      return refuse(entry("array_of_dargs", i, axis.block) + ", but the blocks of " +
                    std::to_string(axis.processes) + " processes must hold all of " +
                    entry("array_of_gsizes", i, axis.length));
    }
  } else {
    return refuse(entry("array_of_distribs", i, static_cast<int>(distribution)) +
                  ", but must be MPI_DISTRIBUTE_BLOCK, _CYCLIC or _NONE");
  }
  return axis;
}

// Returns this rank's position in each dimension. Ranks are in C order, whatever the array's order.
std::vector<std::int64_t> places_of(const Darray& of) {
  std::vector<std::int64_t> places(of.psizes.size());
  std::int64_t rest = of.rank;
  for (std::size_t i = places.size(); i-- > 0;) {
    places[i] = rest % of.psizes[i];
    rest /= of.psizes[i];
  }
  return places;
}

Result<TypeMap> map_of(const Darray& of, const TypeMap& old) {
  const std::vector<std::int64_t> places = places_of(of);
  const std::size_t ndims = of.gsizes.size();
  TypeMap map = old;
  std::int64_t stride = old.extent();
  for (std::size_t step = 0; step < ndims; ++step) {
    const std::size_t i = dimension_at(step, ndims, of.order);
    const Result<Axis> axis = axis_of(of, i, places[i]);
    if (!axis.ok()) return axis.refusal();
    const auto whole = checked_multiply(stride, of.gsizes[i]);
    if (!whole) return array_too_large();
    Result<TypeMap> share = share_of(axis.value(), map, stride);
    if (!share.ok()) return share;
    map = share.take();
    stride = *whole;
  }
  return map.bounded(0, stride);
}

}  // namespace

Result<DatatypePtr> subarray(const Subarray& of, const DatatypePtr& old, Form form) {
  if (auto refusal = check(of, old)) return *refusal;
  const std::size_t ndims = of.sizes.size();
  TypeMap map = old->map();
  std::int64_t stride = old->extent();
  for (std::size_t step = 0; step < ndims; ++step) {
    const std::size_t i = dimension_at(step, ndims, of.order);
    const auto whole = checked_multiply(stride, of.sizes[i]);
    if (!whole) return array_too_large();
    Result<TypeMap> part = map.repeated(of.subsizes[i], stride);
    if (part.ok()) part = part.value().moved(of.starts[i] * stride);
    if (!part.ok()) return part.refusal();
    map = part.take();
    stride = *whole;
  }
  return EnvelopeWriter(Combiner::kSubarray, form)
      .integer(static_cast<std::int64_t>(ndims))
      .numbers(of.sizes)
      .numbers(of.subsizes)
      .numbers(of.starts)
      .integer(static_cast<int>(of.order))
      .type(old)
      .make(map.bounded(0, stride));
}

Result<DatatypePtr> darray(const Darray& of, const DatatypePtr& old, Form form) {
  if (auto refusal = check(of, old)) return *refusal;
  EnvelopeWriter envelope(Combiner::kDarray, form);
  envelope.integer(of.size).integer(of.rank).integer(static_cast<std::int64_t>(of.gsizes.size()));
  envelope.numbers(of.gsizes);
  for (const Distribution distribution : of.distribs) {
    envelope.integer(static_cast<int>(distribution));
  }
  envelope.integers(of.dargs).integers(of.psizes).integer(static_cast<int>(of.order)).type(old);
  return envelope.make(map_of(of, old->map()));
}

}  // namespace hocket::mpi
