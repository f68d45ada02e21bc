#include "arrays/pool/moves.h"

#include <fmt/format.h>

#include "arrays/pool/checks.h"
#include "foundation/core/reduce.h"

namespace hocket::pool {
namespace {

// Larger arrays do not stay in a worker's caches until their next reader, so stores bypass them.
constexpr std::size_t kStreamingBytes = std::size_t{4} << 20;

std::size_t total(In arrays) {
  std::size_t count = 0;
  for (const ConstArrayView& array : arrays) count += array.count();
  return count;
}

// Returns the offset of each array in a concatenation of the arrays.
std::vector<std::size_t> places(In arrays) {
  std::vector<std::size_t> result;
  std::size_t at = 0;
  for (const ConstArrayView& array : arrays) {
    result.push_back(at);
    at += array.count();
  }
  return result;
}

void require_total(In parts, ConstArrayView whole, const char* parts_name, const char* name) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    require_dtype(parts[i], whole, fmt::format("{}[{}]", parts_name, i));
  }
  if (total(parts) == whole.count()) return;
  throw InvalidArgument(fmt::format("{} has {} elements, and the arrays of {} {}",
                                    name,
                                    whole.count(),
                                    parts_name,
                                    total(parts)));
}

// Refuses an array that one worker writes and another worker reads.
void require_unread(ConstArrayView written, std::size_t i, ConstArrayView read, int j) {
  const bool same = written.data() == read.data() && written.count() > 0 && read.count() > 0;
  if (same) {
    throw InvalidArgument(fmt::format("out[{}] is in[{}], which another worker reads", i, j));
  }
  require_apart(written, fmt::format("out[{}]", i), read, fmt::format("in[{}]", j));
}

}  // namespace

void copy(const WorkerState& state, ArrayView to, ConstArrayView from) {
  if (from.count() == 0 || to.data() == from.data()) return;
  if (state.lane != nullptr) {
    state.lane->copy(to.data(), from.data(), from.bytes());
    return;
  }
  const bool large = from.bytes() >= kStreamingBytes;
  core::copy(to.data(),
             from.data(),
             from.bytes(),
             large ? core::Stores::kStreaming : core::Stores::kCached);
}

void distribute(Pool& pool, In in, std::span<const int> from, Out out, Streams streams) {
  require_one_each(pool, out, "out");
  if (from.size() != out.size()) {
    throw InvalidArgument(
        fmt::format("from has {} entries for {} workers", from.size(), out.size()));
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (from[i] < 0 || static_cast<std::size_t>(from[i]) >= in.size()) {
      throw InvalidArgument(fmt::format(
          "from[{}] is {}, and in has {} arrays, numbered from 0", i, from[i], in.size()));
    }
    const ConstArrayView& source = in[static_cast<std::size_t>(from[i])];
    require_reachable(pool, source, "in");
    require_equal(out[i], source, fmt::format("out[{}]", i));
  }
  require_apart(out, "out");
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (std::size_t j = 0; j < out.size(); ++j) {
      const ConstArrayView& read = in[static_cast<std::size_t>(from[j])];
      if (from[i] == from[j]) {
        require_apart(out[i], fmt::format("out[{}]", i), read, fmt::format("in[{}]", from[j]));
      } else {
        require_unread(out[i], i, read, from[j]);
      }
    }
  }
  pool.run(
      [&](WorkerState& state) {
        const auto i = static_cast<std::size_t>(state.index);
        copy(state, out[i], in[static_cast<std::size_t>(from[i])]);
      },
      {.streams = streams});
}

void scatter(Pool& pool, ConstArrayView in, Out out, Streams streams) {
  require_one_each(pool, out, "out");
  require_reachable(pool, in, "in");
  const auto parts = as_const(out);
  require_total(parts, in, "out", "in");
  require_apart(out, "out");
  const auto at = places(parts);
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (std::size_t j = 0; j < out.size(); ++j) {
      const ConstArrayView read = in.slice(at[j], out[j].count());
      i == j ? require_apart(out[i], fmt::format("out[{}]", i), read, "in")
             : require_unread(out[i], i, read, 0);
    }
  }
  pool.run(
      [&](WorkerState& state) {
        const auto i = static_cast<std::size_t>(state.index);
        copy(state, out[i], in.slice(at[i], out[i].count()));
      },
      {.streams = streams});
}

void gather(Pool& pool, In in, ArrayView out, Streams streams) {
  require_one_each(pool, in, "in");
  require_reachable(pool, out, "out");
  require_total(in, out, "in", "out");
  const auto at = places(in);
  for (std::size_t i = 0; i < in.size(); ++i) {
    for (std::size_t j = 0; j < in.size(); ++j) {
      const ArrayView written = out.slice(at[i], in[i].count());
      i == j ? require_apart(written, "out", in[j], fmt::format("in[{}]", j))
             : require_unread(written, i, in[j], static_cast<int>(j));
    }
  }
  pool.run(
      [&](WorkerState& state) {
        const auto i = static_cast<std::size_t>(state.index);
        copy(state, out.slice(at[i], in[i].count()), in[i]);
      },
      {.streams = streams});
}

void all_gather(Pool& pool, In in, Out out, Streams streams) {
  require_one_each(pool, in, "in");
  require_one_each(pool, out, "out");
  for (const ArrayView& one : out) require_total(in, one, "in", "out");
  require_apart(out, "out");
  const auto at = places(in);
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (std::size_t j = 0; j < in.size(); ++j) {
      const ConstArrayView own = out[i].slice(at[j], in[j].count());
      if (own.data() != in[j].data()) require_unread(out[i], i, in[j], static_cast<int>(j));
    }
  }
  pool.run(
      [&](WorkerState& state) {
        // Each worker begins with its own array, so that the workers do not all read one array at
        // once.
        for (int k = 0; k < state.size; ++k) {
          const auto j = static_cast<std::size_t>((state.index + k) % state.size);
          const auto i = static_cast<std::size_t>(state.index);
          copy(state, out[i].slice(at[j], in[j].count()), in[j]);
        }
      },
      {.streams = streams});
}

}  // namespace hocket::pool
