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

// Everybody posts, everybody waits for everybody, then `use()` finds all slots filled.
template <typename Use>
Task all_post(ShmGroup& group, Call call, const void* data, std::size_t bytes, Use use) {
  const Turn turn(group, call);
  if (!group.may_write(call)) co_await until([&] { return group.may_write(call); });
  post(group, call, data, bytes);
  for (int peer = 0; peer < group.size(); ++peer) {
    if (peer == group.rank()) continue;
    if (!group.posted(peer, call)) co_await until([&] { return group.posted(peer, call); });
    group.check_slot(peer, call);
  }
  group.saw_everybody(call);
  use();
}

// All but the root post; the root waits for all of them, then `use()` finds their slots filled.
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
  use();
}

// The root posts and the others wait for it; then `use()` runs at all.
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
  use();
}

// Reduces element range [first, first + count) of everybody's posted array, in rank order.
void reduce_slots(ShmGroup& group, const Call& call, std::size_t first, std::size_t count) {
  const auto& s = call.signature;
  const void** sources = group.sources();
  for (int i = 0; i < group.size(); ++i) {
    sources[i] = group.slot(i, call.sequence).data + first * size_of(s.dtype);
  }
  group.kernel(call, core::Stores::kCached)(call.out, sources, group.size(), count, group.size());
}

}  // namespace

Task small_barrier(ShmGroup& group, Call call) {
  return all_post(group, call, nullptr, 0, [] {});
}

Task small_all_reduce(ShmGroup& group, Call call) {
  return all_post(group, call, call.in, bytes_of(call.signature), [&group, call] {
    reduce_slots(group, call, 0, call.signature.count);
  });
}

Task small_reduce(ShmGroup& group, Call call) {
  const std::size_t bytes = bytes_of(call.signature);
  return post_to_root(group, call, call.in, bytes, [&group, call] {
    const void** sources = group.sources();
    for (int i = 0; i < group.size(); ++i) {
      sources[i] = i == group.rank() ? call.in : group.slot(i, call.sequence).data;
    }
    group.kernel(call, core::Stores::kCached)(
        call.out, sources, group.size(), call.signature.count, group.size());
  });
}

Task small_reduce_scatter(ShmGroup& group, Call call) {
  const std::size_t share = call.signature.count;
  const auto n = static_cast<std::size_t>(group.size());
  return all_post(group, call, call.in, n * bytes_of(call.signature), [&group, call, share] {
    reduce_slots(group, call, static_cast<std::size_t>(group.rank()) * share, share);
  });
}

Task small_broadcast(ShmGroup& group, Call call) {
  const std::size_t bytes = bytes_of(call.signature);
  return root_posts(group, call, call.in, bytes, [&group, call, bytes] {
    const int root = call.signature.root;
    if (group.rank() != root) {
      copy_small(call.out, group.slot(root, call.sequence).data, bytes);
    } else if (call.out != call.in) {
      copy_small(call.out, call.in, bytes);
    }
  });
}

Task small_all_gather(ShmGroup& group, Call call) {
  const std::size_t bytes = bytes_of(call.signature);
  return all_post(group, call, call.in, bytes, [&group, call, bytes] {
    auto* out = static_cast<std::byte*>(call.out);
    for (int i = 0; i < group.size(); ++i, out += bytes) {
      if (out != call.in) copy_small(out, group.slot(i, call.sequence).data, bytes);
    }
  });
}

Task small_gather(ShmGroup& group, Call call) {
  const std::size_t bytes = bytes_of(call.signature);
  return post_to_root(group, call, call.in, bytes, [&group, call, bytes] {
    auto* out = static_cast<std::byte*>(call.out);
    for (int i = 0; i < group.size(); ++i, out += bytes) {
      const void* from = i == group.rank() ? call.in : group.slot(i, call.sequence).data;
      if (out != from) copy_small(out, from, bytes);
    }
  });
}

Task small_scatter(ShmGroup& group, Call call) {
  const std::size_t bytes = bytes_of(call.signature);
  const std::size_t all = static_cast<std::size_t>(group.size()) * bytes;
  return root_posts(group, call, call.in, all, [&group, call, bytes] {
    const int root = call.signature.root;
    const auto* from = group.rank() == root ? static_cast<const std::byte*>(call.in)
                                            : group.slot(root, call.sequence).data;
    from += static_cast<std::size_t>(group.rank()) * bytes;
    if (call.out != from) copy_small(call.out, from, bytes);
  });
}

Task small_all_to_all(ShmGroup& group, Call call) {
  const std::size_t bytes = bytes_of(call.signature);
  const std::size_t all = static_cast<std::size_t>(group.size()) * bytes;
  return all_post(group, call, call.in, all, [&group, call, bytes] {
    auto* out = static_cast<std::byte*>(call.out);
    const std::size_t mine = static_cast<std::size_t>(group.rank()) * bytes;
    for (int i = 0; i < group.size(); ++i, out += bytes) {
      copy_small(out, group.slot(i, call.sequence).data + mine, bytes);
    }
  });
}

}  // namespace hocket::engines::shm
