// Collectives of a few KiB: each rank writes its slot, and reads those of others.
#include <algorithm>
#include <cstring>

#include "engines/shm/collectives.h"

namespace hocket::engines::shm {

using engine::Call;
using engine::Kind;
using engine::Task;
using engine::until;

namespace {

void copy_small(void* out, const void* in, std::size_t bytes) {
  if (bytes != 0) std::memcpy(out, in, bytes);
}

// Writes this rank's slot and announces it. `may_write` must hold.
void post(ShmGroup& group, const Call& call, const void* data, std::size_t bytes) {
  copy_small(group.slot(group.rank(), call.sequence).data, data, bytes);
  group.post(call);
}

// Everybody posts, everybody waits for everybody, then `use(group, call)` finds all slots filled.
template <typename Use>
Task all_post(ShmGroup& group, Call call, const void* data, std::size_t bytes, Use use) {
  const Turn turn(group, call);
  if (!group.has_posted(call)) {  // else an attempt has
    if (!group.may_write(call)) co_await until([&] { return group.may_write(call); });
    post(group, call, data, bytes);
  }
  for (int peer = 0; peer < group.size(); ++peer) {
    if (peer == group.rank()) continue;
    if (!group.posted(peer, call)) co_await until([&] { return group.posted(peer, call); });
    group.check_slot(peer, call);
  }
  group.saw_everybody(call);
  use(group, call);
}

// All but the root post; the root waits for all of them, then `use(group, call)` finds their slots
// filled.
template <typename Use>
Task post_to_root(ShmGroup& group, Call call, const void* data, std::size_t bytes, Use use) {
  const Turn turn(group, call);
  if (group.rank() != call.signature.root) {
    co_await until([&] { return group.may_write(call); });
    post(group, call, data, bytes);
    co_return;
  }
  for (int peer = 0; peer < group.size(); ++peer) {
    if (peer != group.rank()) {
      co_await until([&] { return group.posted(peer, call); });
      group.check_slot(peer, call);
    }
  }
  group.saw_everybody(call);
  use(group, call);
}

// The root posts and the others wait for it; then `use(group, call)` runs at all.
template <typename Use>
Task root_posts(ShmGroup& group, Call call, const void* data, std::size_t bytes, Use use) {
  const Turn turn(group, call);
  const int root = call.signature.root;
  if (group.rank() == root) {
    co_await until([&] { return group.may_write(call); });
    post(group, call, data, bytes);
  } else {
    co_await until([&] { return group.posted(root, call); });
    group.check_slot(root, call);
  }
  use(group, call);
}

// A rank's own data is always read from where it came from: its slot is on its way to the peers,
// and reading it there would wait for the line to come back.
const std::byte* given_by(const ShmGroup& group, const Call& call, int rank) {
  return rank == group.rank() ? static_cast<const std::byte*>(call.in)
                              : group.slot(rank, call.sequence).data;
}

// Reduces element range [first, first + count) of everybody's array, in rank order.
void reduce_slots(ShmGroup& group, const Call& call, std::size_t first, std::size_t count) {
  const auto& s = call.signature;
  const void** sources = group.sources();
  for (int i = 0; i < group.size(); ++i) {
    sources[i] = given_by(group, call, i) + first * size_of(s.dtype);
  }
  group.kernel(call, core::Stores::kCached)(call.out, sources, group.size(), count, group.size());
}

// The beginning of all_post, and its end if everybody comes while the caller would only have set
// about waiting. False: not yet; nothing to undo.
bool attempt_all_post(ShmGroup& group, const Call& call, const void* data, std::size_t bytes) {
  constexpr int kPolls = 2000;  // a microsecond or two: a cache line's journey and then some
  if (!group.may_write(call)) return false;
  post(group, call, data, bytes);
  for (int peer = 0; peer < group.size(); ++peer) {
    if (peer == group.rank()) continue;
    for (int polls = 0; !group.posted(peer, call); ++polls) {
      if (polls == kPolls) return false;
    }
    group.check_slot(peer, call);
  }
  group.saw_everybody(call);
  return true;
}

}  // namespace

bool attempt_barrier(ShmGroup& group, const Call& call) {
  if (!attempt_all_post(group, call, nullptr, 0)) return false;
  group.finish(call.sequence);
  return true;
}

bool attempt_all_reduce(ShmGroup& group, const Call& call) {
  if (!attempt_all_post(group, call, call.in, bytes_of(call.signature))) return false;
  reduce_slots(group, call, 0, call.signature.count);
  group.finish(call.sequence);
  return true;
}

Task small_barrier(ShmGroup& group, const Call& call) {
  return all_post(group, call, nullptr, 0, [](ShmGroup&, const Call&) {});
}

Task small_all_reduce(ShmGroup& group, const Call& call) {
  return all_post(group, call, call.in, bytes_of(call.signature), [](ShmGroup& g, const Call& c) {
    reduce_slots(g, c, 0, c.signature.count);
  });
}

Task small_reduce(ShmGroup& group, const Call& call) {
  return post_to_root(
      group, call, call.in, bytes_of(call.signature), [](ShmGroup& g, const Call& c) {
        const void** sources = g.sources();
        for (int i = 0; i < g.size(); ++i) {
          sources[i] = given_by(g, c, i);
        }
        g.kernel(c, core::Stores::kCached)(c.out, sources, g.size(), c.signature.count, g.size());
      });
}

Task small_reduce_scatter(ShmGroup& group, const Call& call) {
  const auto n = static_cast<std::size_t>(group.size());
  return all_post(
      group, call, call.in, n * bytes_of(call.signature), [](ShmGroup& g, const Call& c) {
        const std::size_t share = c.signature.count;
        reduce_slots(g, c, static_cast<std::size_t>(g.rank()) * share, share);
      });
}

Task small_broadcast(ShmGroup& group, const Call& call) {
  return root_posts(group, call, call.in, bytes_of(call.signature), [](ShmGroup& g, const Call& c) {
    const std::size_t bytes = bytes_of(c.signature);
    const int root = c.signature.root;
    if (g.rank() != root) {
      copy_small(c.out, g.slot(root, c.sequence).data, bytes);
    } else if (c.out != c.in) {
      copy_small(c.out, c.in, bytes);
    }
  });
}

Task small_all_gather(ShmGroup& group, const Call& call) {
  return all_post(group, call, call.in, bytes_of(call.signature), [](ShmGroup& g, const Call& c) {
    const std::size_t bytes = bytes_of(c.signature);
    auto* out = static_cast<std::byte*>(c.out);
    for (int i = 0; i < g.size(); ++i, out += bytes) {
      if (out != c.in) copy_small(out, given_by(g, c, i), bytes);
    }
  });
}

Task small_gather(ShmGroup& group, const Call& call) {
  return post_to_root(
      group, call, call.in, bytes_of(call.signature), [](ShmGroup& g, const Call& c) {
        const std::size_t bytes = bytes_of(c.signature);
        auto* out = static_cast<std::byte*>(c.out);
        for (int i = 0; i < g.size(); ++i, out += bytes) {
          const std::byte* from = given_by(g, c, i);
          if (out != from) copy_small(out, from, bytes);
        }
      });
}

Task small_scatter(ShmGroup& group, const Call& call) {
  const std::size_t all = static_cast<std::size_t>(group.size()) * bytes_of(call.signature);
  return root_posts(group, call, call.in, all, [](ShmGroup& g, const Call& c) {
    const std::size_t bytes = bytes_of(c.signature);
    const int root = c.signature.root;
    const auto* from =
        g.rank() == root ? static_cast<const std::byte*>(c.in) : g.slot(root, c.sequence).data;
    from += static_cast<std::size_t>(g.rank()) * bytes;
    if (c.out != from) copy_small(c.out, from, bytes);
  });
}

Task small_all_to_all(ShmGroup& group, const Call& call) {
  const std::size_t all = static_cast<std::size_t>(group.size()) * bytes_of(call.signature);
  return all_post(group, call, call.in, all, [](ShmGroup& g, const Call& c) {
    const std::size_t bytes = bytes_of(c.signature);
    auto* out = static_cast<std::byte*>(c.out);
    const std::size_t mine = static_cast<std::size_t>(g.rank()) * bytes;
    for (int i = 0; i < g.size(); ++i, out += bytes) {
      const std::byte* from = given_by(g, c, i) + mine;
      if (out != from) copy_small(out, from, bytes);
    }
  });
}

}  // namespace hocket::engines::shm
