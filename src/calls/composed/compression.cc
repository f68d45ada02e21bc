// Compressed and hierarchical reductions, composed of the communicators' calls.
#include "hocket/compression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "calls/call/request.h"
#include "calls/composed/min_max.h"
#include "calls/device/host_copies.h"
#include "calls/world/communicator_impl.h"
#include "engine/made_of_calls.h"
#include "foundation/base/enumerator.h"
#include "foundation/core/averages.h"
#include "hocket/error.h"

namespace hocket {
namespace {

using engine::Kind;

constexpr Kind kHierarchical = Kind::kHierarchicalAllReduce;

bool is_compressible(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32 ||
         dtype == DType::kFloat64;
}

// See CommunicatorImpl::before_call.
template <typename Part>
auto before_call(Communicator& comm, Kind kind, const Part& part) {
  return comm.impl()->before_call(kind, part);
}

void require_compressible(ArrayView inout, ReduceOp op) {
  if (op != ReduceOp::kSum && op != ReduceOp::kAvg) {
    throw InvalidArgument(
        fmt::format("op is {}, expected sum or avg for a compressed reduction", name_of(op)));
  }
  if (!is_compressible(inout.dtype())) {
    throw InvalidArgument(fmt::format(
        "inout holds {}, expected float16, bfloat16, float32 or float64 for a compressed reduction",
        name_of(inout.dtype())));
  }
}

std::vector<float> to_floats(ArrayView in) {
  std::vector<float> floats(in.count());
  if (in.count() == 0) return floats;
  if (in.dtype() == DType::kFloat64) {
    const auto* from = static_cast<const double*>(in.data());
    std::transform(from, from + in.count(), floats.begin(), [](double value) {
      return static_cast<float>(value);
    });
  } else if (in.dtype() == DType::kFloat32) {
    std::memcpy(floats.data(), in.data(), in.bytes());
  } else {
    core::widen(floats.data(), in.data(), in.count(), in.dtype());
  }
  return floats;
}

void from_floats(const std::vector<float>& floats, ArrayView out) {
  if (out.count() == 0) return;
  if (out.dtype() == DType::kFloat64) {
    std::copy(floats.begin(), floats.end(), static_cast<double*>(out.data()));
  } else if (out.dtype() == DType::kFloat32) {
    std::memcpy(out.data(), floats.data(), out.bytes());
  } else {
    core::narrow(out.data(), floats.data(), out.count(), out.dtype(), ReduceOp::kSum, 1);
  }
}

// The shares of the elements that each rank adds up. All have equal size, except that the last
// shares may be shorter.
struct Shares {
  std::size_t count;
  std::size_t size;
  std::size_t first(int rank) const {
    return std::min(count, static_cast<std::size_t>(rank) * size);
  }
  std::size_t length(int rank) const { return first(rank + 1) - first(rank); }
};

// Makes an all_reduce of floats in 8 bits. Sums are divided by `divisor` before they are sent to
// all ranks.
void reduce_compressed(Communicator& comm,
                       Kind kind,
                       std::vector<float>& floats,
                       float divisor,
                       std::optional<Duration> deadline) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  const Shares shares{floats.size(), (floats.size() + ranks - 1) / ranks};
  // At least one byte, so that no rank leaves the first call before all have entered it.
  const std::size_t stride = std::max<std::size_t>(1, composed::compressed_size(shares.size));
  const std::size_t mine = shares.length(comm.rank());
  std::vector<std::byte> sent, came, result;
  before_call(comm, kind, [&] {
    sent.resize(stride * ranks);
    came.resize(stride * ranks);
    result.resize(stride);
    for (int rank = 0; rank < comm.size(); ++rank) {
      std::byte* const part = sent.data() + static_cast<std::size_t>(rank) * stride;
      composed::compress(floats.data() + shares.first(rank), shares.length(rank), part);
    }
  });
  comm.all_to_all(sent, came, {.deadline = deadline});

  before_call(comm, kind, [&] {
    std::vector<float> sum(mine);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      composed::add_decompressed(came.data() + rank * stride, mine, sum.data());
    }
    for (float& value : sum) value /= divisor;
    composed::compress(sum.data(), mine, result.data());
  });
  comm.all_gather(result, came, {.deadline = deadline});
  for (int rank = 0; rank < comm.size(); ++rank) {
    const std::byte* const part = came.data() + static_cast<std::size_t>(rank) * stride;
    composed::decompress(part, shares.length(rank), floats.data() + shares.first(rank));
  }
}

// An array whose sums are carried in the accumulation type of `op` and rounded once.
class Carried {
 public:
  Carried(ArrayView array, ReduceOp op)
      : array_(array), type_(core::accumulation_type(array.dtype(), op)) {
    if (type_ == array.dtype()) return;
    wide_.resize(array.count() * size_of(type_));
    core::widen(wide_.data(), array.data(), array.count(), array.dtype(), op);
  }
  ArrayView view() {
    if (type_ == array_.dtype()) return array_;
    return {wide_.data(), array_.count(), type_};
  }
  // Writes the result into the array; for a mean it divides.
  void finish(ReduceOp op, int divisor) {
    if (array_.count() == 0) return;
    if (type_ != array_.dtype()) {
      core::narrow(array_.data(), wide_.data(), array_.count(), array_.dtype(), op, divisor);
    } else if (op == ReduceOp::kAvg) {
      const void* const source = array_.data();
      core::reduce(array_.data(),
                   &source,
                   1,
                   array_.count(),
                   array_.dtype(),
                   op,
                   divisor,
                   core::Stores::kCached);
    }
  }

 private:
  ArrayView array_;
  DType type_;
  std::vector<std::byte> wide_;
};

// Reduces between the first ranks of the nodes, and writes the array. `ranks` is the number of all
// ranks.
void reduce_between(Communicator& between,
                    Carried& carried,
                    ArrayView inout,
                    int ranks,
                    const HierarchicalOptions& options) {
  const bool is_mean = options.op == ReduceOp::kAvg;
  if (options.between == BetweenNodes::kCompressed) {
    auto floats = before_call(between, kHierarchical, [&] { return to_floats(carried.view()); });
    const float divisor = is_mean ? static_cast<float>(ranks) : 1;
    reduce_compressed(between, kHierarchical, floats, divisor, options.deadline);
    from_floats(floats, inout);
    return;
  }
  const ReduceOp step = is_mean ? ReduceOp::kSum : options.op;
  between.all_reduce(carried.view(), {.op = step, .deadline = options.deadline});
  carried.finish(options.op, ranks);
}

void require_hierarchical(ArrayView inout, const HierarchicalOptions& options) {
  call::require_array(inout, "inout");
  base::require_enumerator(options.between, BetweenNodes::kCompressed, "between", "BetweenNodes");
  if (options.between == BetweenNodes::kCompressed) require_compressible(inout, options.op);
  if (!is_defined(options.op, inout.dtype())) {
    throw InvalidArgument(
        fmt::format("op {} has no meaning on {}", name_of(options.op), name_of(inout.dtype())));
  }
}

// Runs `part` before the first step. If it throws on a node's first rank, this ends the call for
// the other nodes and for its own node.
void before_steps(Communicator& within, Communicator& between, const std::function<void()>& part) {
  const auto in_node = [&] { before_call(within, kHierarchical, part); };
  if (within.rank() == 0) {
    before_call(between, kHierarchical, in_node);
  } else {
    in_node();
  }
}

}  // namespace

void compressed_all_reduce(Communicator& comm, ArrayView inout, const ReduceOptions& options) {
  constexpr Kind kKind = Kind::kCompressedAllReduce;
  const call::Core::Whole whole(*comm.impl(), kKind);
  // The network limits the speed, so the host may also work for GPUs.
  std::unique_ptr<device::HostCopies> copies;
  ArrayView array = inout;
  auto floats = before_call(comm, kKind, [&] {
    call::require_array(inout, "inout");
    require_compressible(inout, options.op);
    if (inout.memory() == MemoryKind::kCuda) {
      copies = comm.impl()->copy_to_host(inout, inout, options.stream);
      array = copies->out();
    }
    return to_floats(array);
  });
  const bool is_mean = options.op == ReduceOp::kAvg;
  const float divisor = is_mean ? static_cast<float>(comm.size()) : 1;
  reduce_compressed(comm, kKind, floats, divisor, options.deadline);
  from_floats(floats, array);
  if (copies) copies->finish();
}

void hierarchical_all_reduce(Communicator& within,
                             Communicator& between,
                             ArrayView inout,
                             const HierarchicalOptions& options) {
  const call::Core::Whole whole(*within.impl(), kHierarchical);
  const call::Core::Whole whole_between(*between.impl(), kHierarchical);
  if (inout.memory() == MemoryKind::kCuda) {
    std::unique_ptr<device::HostCopies> copies;
    before_steps(within, between, [&] {
      require_hierarchical(inout, options);
      copies = within.impl()->copy_to_host(inout, inout, options.stream);
    });
    hierarchical_all_reduce(within, between, copies->out(), options);
    return copies->finish();
  }
  const bool is_first = within.rank() == 0;
  const ReduceOp step = options.op == ReduceOp::kAvg ? ReduceOp::kSum : options.op;
  std::optional<Carried> carried;
  const auto reduce_within = [&] {
    before_call(within, kHierarchical, [&] {
      require_hierarchical(inout, options);
      carried.emplace(inout, options.op);
    });
    // A rank that only sends to a reduction may leave it before the other ranks have entered. So
    // all ranks synchronize first.
    within.impl()->run_as(
        {.kind = Kind::kBarrier, .dtype = inout.dtype(), .op = options.op, .count = inout.count()},
        {.kind = Kind::kBarrier, .deadline = options.deadline});
    const call::Core::Commitment bound(*within.impl());
    within.reduce(carried->view(), {.op = step, .root = 0, .deadline = options.deadline});
  };
  if (!is_first) {
    reduce_within();
  } else {
    // An error of a node's first rank ends the call for the other nodes and for its own node.
    before_call(between, kHierarchical, reduce_within);
    before_call(within, kHierarchical, [&] {
      int ranks = within.size();
      between.all_reduce(scalar(ranks), {.deadline = options.deadline});
      reduce_between(between, *carried, inout, ranks, options);
    });
  }
  within.broadcast(inout, {.root = 0, .deadline = options.deadline});
}

void hierarchical_all_reduce(Communicator& comm,
                             ArrayView inout,
                             const HierarchicalOptions& options) {
  // Both communicators are made first, by all ranks of `comm`. Afterwards no rank waits in `comm`.
  Communicator& within = comm.intra_node();
  Communicator& between = comm.inter_node();
  hierarchical_all_reduce(within, between, inout, options);
}

void refuse_hierarchical_all_reduce(Communicator& comm, const std::string& reason) {
  Communicator& within = comm.intra_node();
  Communicator& between = comm.inter_node();
  before_steps(within, between, [&] { throw InvalidArgument(reason); });
  throw InvalidArgument(reason);  // not reached
}

}  // namespace hocket
