#include "arrays/pool/reductions.h"

#include <fmt/format.h>

#include <algorithm>

#include "arrays/pool/checks.h"
#include "engines/algorithm/partial.h"
#include "engines/algorithm/scratch.h"
#include "foundation/base/enumerator.h"
#include "foundation/core/reduce.h"

namespace hocket::pool {
namespace {

using core::Stores;

// Bytes of each array that are reduced at a time, so that copies of the result are read from
// caches.
constexpr std::size_t kChunkBytes = std::size_t{32} << 10;
// Parts begin at cache lines.
constexpr std::size_t kLineBytes = 64;

struct RowRange {
  std::size_t first = 0, last = 0;
  std::size_t count() const noexcept { return last - first; }
};

// Returns part `index` of `parts` equal parts of an array.
RowRange part_of(ConstArrayView array, int index, int parts) {
  const std::size_t line = std::max<std::size_t>(1, kLineBytes / size_of(array.dtype()));
  const std::size_t lines = (array.count() + line - 1) / line;
  const auto cut = [&](int i) {
    return std::min(array.count(),
                    lines * static_cast<std::size_t>(i) / static_cast<std::size_t>(parts) * line);
  };
  return {cut(index), cut(index + 1)};
}

// Calls `f(first, count)` for chunks of a range.
template <typename F>
void in_chunks(RowRange range, DType dtype, F&& f) {
  const std::size_t chunk = kChunkBytes / size_of(dtype);
  for (std::size_t at = range.first; at < range.last; at += chunk) {
    f(at, std::min(chunk, range.last - at));
  }
}

void* at(ArrayView array, std::size_t element) { return array.slice(element, 0).data(); }
const void* at(ConstArrayView array, std::size_t element) { return array.slice(element, 0).data(); }

// Puts the reduction of a part of all of `in` into that part of `out`, and of `copies`.
void reduce_part(RowRange part, In in, ArrayView out, Out copies, ReduceOp op) {
  const DType dtype = out.dtype();
  const int n = static_cast<int>(in.size());
  const auto kernel = core::reduce_kernel(dtype, op, Stores::kCached);
  std::vector<const void*> sources(in.size());
  std::vector<void*> outs(1 + copies.size());
  in_chunks(part, dtype, [&](std::size_t first, std::size_t count) {
    for (std::size_t i = 0; i < in.size(); ++i) sources[i] = at(in[i], first);
    outs[0] = at(out, first);
    for (std::size_t i = 0; i < copies.size(); ++i) outs[i + 1] = at(copies[i], first);
    kernel(outs.data(), static_cast<int>(outs.size()), sources.data(), n, count, n);
  });
}

// Divides sums over all processes for averages, and copies a part of the result to other workers.
void finish_part(RowRange part, ArrayView from, Out copies, ReduceOp op, int average_over) {
  const DType dtype = from.dtype();
  in_chunks(part, dtype, [&](std::size_t first, std::size_t count) {
    const void* source = at(from, first);
    if (op == ReduceOp::kAvg) {
      core::reduce(at(from, first), &source, 1, count, dtype, op, average_over, Stores::kCached);
    }
    for (const ArrayView& copy : copies) {
      core::copy(at(copy, first), source, count * size_of(dtype), Stores::kCached);
    }
  });
}

// Returns the number of arrays of all processes together.
int count_all(Communicator& across, std::size_t mine) {
  std::int64_t count = static_cast<std::int64_t>(mine);
  across.all_reduce(scalar(count));
  return static_cast<int>(count);
}

// Averages integers of all processes: exact sums, wider than the elements, are exchanged.
void average_integers(Pool& pool, In in, ArrayView out, Out copies, Communicator& across) {
  const algorithm::Partial partial(out.dtype(), ReduceOp::kAvg, count_all(across, in.size()));
  const algorithm::Scratch sums(out.count() * partial.element());
  const auto in_part = [&](WorkerState& state, const auto& f) {
    in_chunks(part_of(out, state.index, state.size),
              out.dtype(),
              [&](std::size_t first, std::size_t count) {
                f(sums.get() + first * partial.element(), first, count);
              });
  };
  const auto bytes_at = [](ConstArrayView array, std::size_t first) {
    return static_cast<const std::byte*>(at(array, first));
  };
  pool.run([&](WorkerState& state) {
    in_part(state, [&](std::byte* sum, std::size_t first, std::size_t count) {
      partial.load(sum, bytes_at(in[0], first), count);
      for (const ConstArrayView& next : in.subspan(1)) {
        partial.fold_in(sum, bytes_at(next, first), count);
      }
    });
  });
  across.all_reduce(ArrayView(sums.get(), out.count(), partial.dtype()), {.op = partial.op()});
  pool.run([&](WorkerState& state) {
    in_part(state, [&](const std::byte* sum, std::size_t first, std::size_t count) {
      partial.finish(static_cast<std::byte*>(at(out, first)), sum, count);
      for (const ArrayView& copy : copies) {
        core::copy(at(copy, first), at(out, first), count * size_of(out.dtype()), Stores::kCached);
      }
    });
  });
}

// Reduces `in` into `out`, here and in all processes, then into `copies`.
void reduce_on_host(
    Pool& pool, In in, ArrayView out, Out copies, const PoolReduceOptions& options) {
  Communicator* across = options.across;
  const bool apart = across != nullptr && options.op == ReduceOp::kAvg;
  const bool is_integer = is_defined(ReduceOp::kBitAnd, out.dtype());  // averages of bool: refused
  if (apart && is_integer) return average_integers(pool, in, out, copies, *across);
  const ReduceOp op = apart ? ReduceOp::kSum : options.op;
  const Out first_copies = across != nullptr ? Out() : copies;
  pool.run([&](WorkerState& state) {
    reduce_part(part_of(out, state.index, state.size), in, out, first_copies, op);
  });
  if (across == nullptr) return;
  across->all_reduce(out, {.op = op});
  const int arrays = apart ? count_all(*across, in.size()) : 1;
  if (copies.empty() && !apart) return;
  pool.run([&](WorkerState& state) {
    finish_part(part_of(out, state.index, state.size), out, copies, options.op, arrays);
  });
}

void all_reduce_on_host(Pool& pool, In in, Out out, const PoolReduceOptions& options) {
  const int group = options.group == 0 ? pool.size() : options.group;
  if (group >= pool.size()) {
    reduce_on_host(pool, in, out[0], out.subspan(1), options);
    return;
  }
  pool.run([&](WorkerState& state) {
    const int first = state.index / group * group;
    const int members = std::min(group, state.size - first);
    const auto b = static_cast<std::size_t>(first);
    const auto n = static_cast<std::size_t>(members);
    reduce_part(part_of(in[b], state.index - first, members),
                in.subspan(b, n),
                out[b],
                out.subspan(b + 1, n - 1),
                options.op);
  });
}

void sum_in_order(
    WorkerState& state, Communicator& comm, ConstArrayView in, ArrayView out, ReduceOptions with) {
  const cuda::ScratchMemory sum(state.lane->device(), in.bytes(), state.lane->stream().handle());
  const ArrayView result(
      sum.data(), in.count(), in.dtype(), MemoryKind::kCuda, state.lane->device().ordinal());
  comm.reproducible_sum(in, result, with);
  copy(state, out, result);
}

// Makes sure that every process has the same number of arrays, so that a mean of means is right.
// Throws on all processes if not.
void require_alike(Communicator& across, std::size_t mine) {
  std::int64_t least = static_cast<std::int64_t>(mine);
  std::int64_t most = least;
  across.all_reduce(scalar(least), {.op = ReduceOp::kMin});
  across.all_reduce(scalar(most), {.op = ReduceOp::kMax});
  if (least == most) return;
  throw InvalidArgument(
      fmt::format("op is avg, and the processes have {} to {} GPUs each, expected as many in all; "
                  "reduce by sum, and divide",
                  least,
                  most));
}

// Reduces to the first worker, then between the processes, then copies to the other workers. So one
// array of each process travels between processes.
void all_reduce_between_gpus(Pool& pool, In in, Out out, const PoolReduceOptions& options) {
  if (options.op == ReduceOp::kAvg) require_alike(*options.across, in.size());
  pool.run(
      [&](WorkerState& state) {
        Communicator& comm = state.world->communicator();
        const auto i = static_cast<std::size_t>(state.index);
        const StreamRef stream = state.lane->stream();
        const bool first = state.index == 0;
        comm.reduce(in[i], first ? out[i] : ArrayView(), {.op = options.op, .stream = stream});
        if (first) options.across->all_reduce(out[i], {.op = options.op, .stream = stream});
        comm.broadcast(out[i], {.stream = stream});
      },
      {.streams = options.streams});
}

void all_reduce_on_gpus(Pool& pool, In in, Out out, const PoolReduceOptions& options) {
  if (options.across != nullptr) return all_reduce_between_gpus(pool, in, out, options);
  const int group = options.group == 0 ? pool.size() : options.group;
  const bool whole = group >= pool.size();
  const bool fixed = options.order == PoolReduceOptions::Order::kFixed;
  if (!whole) pool.make_groups(group);
  pool.run(
      [&](WorkerState& state) {
        Communicator& comm = whole ? state.world->communicator() : pool.group(state);
        const auto i = static_cast<std::size_t>(state.index);
        const ReduceOptions with{.op = options.op, .stream = state.lane->stream()};
        if (fixed) {
          sum_in_order(state, comm, in[i], out[i], with);
        } else if (in[i].data() == out[i].data()) {
          comm.all_reduce(out[i], with);
        } else {
          comm.all_reduce(in[i], out[i], with);
        }
      },
      {.streams = options.streams});
}

int worker_of(const Pool& pool, ArrayView out) {
  const auto devices = pool.devices();
  const auto found = std::find(devices.begin(), devices.end(), pool.device_of(out));
  if (out.memory() == MemoryKind::kCuda && found != devices.end()) {
    return static_cast<int>(found - devices.begin());
  }
  throw InvalidArgument("out lies on no worker's GPU");
}

void reduce_on_gpus(Pool& pool, In in, ArrayView out, const PoolReduceOptions& options) {
  const int root = worker_of(pool, out);
  Communicator* across = options.across;
  if (across != nullptr && options.op == ReduceOp::kAvg) require_alike(*across, in.size());
  pool.run(
      [&](WorkerState& state) {
        const ConstArrayView mine = in[static_cast<std::size_t>(state.index)];
        const bool has_it = state.index == root;
        const StreamRef stream = state.lane->stream();
        state.world->communicator().reduce(
            mine, has_it ? out : ArrayView(), {.op = options.op, .root = root, .stream = stream});
        if (has_it && across != nullptr)
          across->all_reduce(out, {.op = options.op, .stream = stream});
      },
      {.streams = options.streams});
}

void check_options(const Pool& pool, DType dtype, const PoolReduceOptions& options) {
  require_op(options.op, dtype);
  pool.require_streams(options.streams);
  base::require_enumerator(
      options.order, PoolReduceOptions::Order::kFixed, "order", "PoolReduceOptions::Order");
  if (options.group < 0) {
    throw InvalidArgument(fmt::format("group is {}, expected at least 1 worker", options.group));
  }
  if (options.across == nullptr) return;
  if (pool.has_gpus() && options.order == PoolReduceOptions::Order::kFixed) {
    throw InvalidArgument("on GPUs across and a fixed order exclude each other");
  }
  if (options.group != 0) throw InvalidArgument("across and group exclude each other");
}

// Runs `f`. If it refuses this process's arguments, tells the other processes, so that they do not
// wait.
template <typename F>
void checked(Communicator* across, F&& f) {
  try {
    f();
  } catch (const InvalidArgument& error) {
    if (across != nullptr) across->refuse(error.what());
    throw;
  }
}

}  // namespace

void all_reduce(Pool& pool, In in, Out out, const PoolReduceOptions& options) {
  checked(options.across, [&] {
    require_one_each(pool, in, "in");
    require_one_each(pool, out, "out");
    for (std::size_t i = 0; i < in.size(); ++i) {
      require_equal(in[i], in[0], fmt::format("in[{}]", i));
      require_equal(out[i], in[0], fmt::format("out[{}]", i));
      if (in[i].count() > 0 && (in[i].data() == out[i].data()) != (in[0].data() == out[0].data())) {
        throw InvalidArgument(fmt::format("out[{}] is in[{}] and others are not", i, i));
      }
    }
    require_apart(out, "out");
    for (std::size_t i = 0; i < out.size(); ++i) {
      for (std::size_t j = 0; j < in.size(); ++j) {
        const bool own = i == j && in[j].data() == out[i].data();
        if (!own && in[j].data() == out[i].data() && in[j].count() > 0) {
          throw InvalidArgument(fmt::format("out[{}] is in[{}], of another worker", i, j));
        }
        require_apart(out[i], fmt::format("out[{}]", i), in[j], fmt::format("in[{}]", j));
      }
    }
    check_options(pool, in[0].dtype(), options);
    pool.require_open();
  });
  pool.has_gpus() ? all_reduce_on_gpus(pool, in, out, options)
                  : all_reduce_on_host(pool, in, out, options);
}

void reduce(Pool& pool, In in, ArrayView out, const PoolReduceOptions& options) {
  checked(options.across, [&] {
    if (in.empty()) throw InvalidArgument("in has no arrays to reduce");
    require_reachable(pool, out, "out");
    for (std::size_t i = 0; i < in.size(); ++i) {
      require_reachable(pool, in[i], fmt::format("in[{}]", i));
      require_equal(in[i], out, fmt::format("in[{}]", i));
      require_apart(out, "out", in[i], fmt::format("in[{}]", i));
    }
    check_options(pool, out.dtype(), options);
    if (options.group != 0) throw InvalidArgument("group is for all_reduce");
    if (pool.has_gpus()) {
      require_one_each(pool, in, "in");
      if (worker_of(pool, out) != 0 && options.across != nullptr) {
        throw InvalidArgument(
            "out lies with another worker than the first, whose GPU is this rank's in across");
      }
    }
    pool.require_open();
  });
  if (pool.has_gpus()) {
    reduce_on_gpus(pool, in, out, options);
  } else {
    reduce_on_host(pool, in, out, {}, options);
  }
}

}  // namespace hocket::pool
