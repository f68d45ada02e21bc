// Gather, scatter and broadcast with a single copy by the kernel. Both ends of a transfer share
// this copy.
//
// If the root made all copies, one core would do all the work while the peers wait. So the root
// copies the *front* of each peer's part, and the peer copies the rest at the same time. With more
// than two ranks the front is mostly either the whole part or empty:
//
//   part of peer  1      2      3      4      5      6
//   gather        root reads           peers write
//   scatter       root writes          peers read
//
// In a shorter scatter the root writes the fronts to its own chunk, and the peers copy them from
// there. This saves the root a system call for each part.
//
// Arrays that the other end reads or writes are exposed: see exposure.h.
#include <cerrno>

#include "engines/algorithm/scratch.h"
#include "engines/shm/collectives.h"
#include "engines/shm/exchange.h"

namespace hocket::engines::shm {

using engine::Call;
using engine::Kind;
using engine::Task;
using engine::until;

namespace {

// Limits in bytes of all parts together. Below kHalfTo the root copies the parts of half of its
// peers. If all peers copied, they would contend for the caches of the root's core. From kHalfTo
// on, the peers make all copies, because the root's copies would only take memory bandwidth from
// theirs. Exception: between kHalfTo and kCachedTo, the root of a scatter copies kCached bytes,
// which its core has in its cache.
constexpr std::size_t kHalfTo = std::size_t{4} << 20;
constexpr std::size_t kCachedTo = std::size_t{8} << 20;
constexpr std::size_t kCached = std::size_t{1} << 20;
// The root of a staged scatter notifies its peers each time it has written about so many bytes to
// its chunk.
constexpr std::size_t kNoticeBytes = std::size_t{8} << 10;

// The division of the copies between the root and its peers. A value, equal on all ranks except
// `rank`.
struct Division {
  int rank;
  int size;
  int root;
  std::size_t share;  // bytes of each part
  bool has_parts;     // false: a broadcast, in which every part is the whole array
  bool scatters;

  Division(const ShmGroup& group, const Call& call)
      : rank(group.rank()),
        size(group.size()),
        root(call.signature.root),
        share(bytes_of(call.signature)),
        has_parts(call.signature.kind != Kind::kBroadcast),
        scatters(call.signature.kind == Kind::kScatter) {}
  bool is_root() const { return rank == root; }
  // Convert between a peer's rank and its number. The root counts its peers from 1.
  int number_of(int peer) const { return (peer - root + size) % size; }
  int peer_of(int number) const { return (root + number) % size; }
  std::size_t offset(int peer) const {
    return has_parts ? static_cast<std::size_t>(peer) * share : 0;
  }
  std::size_t total() const { return share * static_cast<std::size_t>(size); }
  // Returns how many peers' parts the root copies if it copies half of the parts.
  int peers_of_root() const { return size / 2; }
  // Returns how many bytes of the part of peer `number` the root copies.
  std::size_t front(int number) const {
    if (size == 2) return share / 2 / control::kCacheLine * control::kCacheLine;
    if (total() < kHalfTo) return number <= peers_of_root() ? share : 0;
    if (!scatters || total() >= kCachedTo) return 0;
    return kCached / static_cast<std::size_t>(size) / control::kCacheLine * control::kCacheLine;
  }
  // Returns whether the root of a scatter copies the parts of the first peers_of_root() peers to
  // its own chunk, from which the peers copy them. The parts must fit into the chunk.
  bool is_staged() const {
    return scatters && size > 2 &&
           share * static_cast<std::size_t>(peers_of_root()) <= chunk_room(size);
  }
};

// An array to expose. If the kernel cannot read or write it for peers, scratch memory that stands
// for the array. A resource.
class Reachable {
 public:
  Reachable(void* array, std::size_t bytes, bool is_output) : array_(array) {
    if (is_output ? os::others_may_write(array, bytes) : os::others_may_read(array, bytes)) return;
    copy_ = algorithm::Scratch(bytes);
    if (!is_output) core::copy(copy_.get(), array, bytes, core::Stores::kCached);
  }
  std::byte* get() const { return has_copy() ? copy_.get() : static_cast<std::byte*>(array_); }
  bool has_copy() const { return copy_.get() != nullptr; }

 private:
  void* array_;
  algorithm::Scratch copy_;
};

// Waits until a peer has begun the call, and compares the calls.
Task meet(ShmGroup& group, const Call& call, int peer) {
  if (!group.staged(peer, call, 1)) co_await until([&] { return group.staged(peer, call, 1); });
  group.check_staged(peer, call);
}

// The calls of this file use two words of shm_group.h with a different meaning. `done` counts the
// parts that this rank has read, in the order of the peers' numbers. A rank that has left the call,
// even after an error, counts as having read all parts. `reduced` counts the parts that this rank
// has written. Only a successful write sets it.
Task await_reader(ShmGroup& group, const Call& call, int peer, std::uint64_t parts) {
  if (group.has_done(peer, call, parts)) co_return;
  co_await until([&] { return group.has_done(peer, call, parts); });
}
Task await_writer(ShmGroup& group, const Call& call, int peer, std::uint64_t parts) {
  if (group.is_reduced(peer, call, parts)) co_return;
  co_await until([&] { return group.is_reduced(peer, call, parts); });
}

Task gather_at_root(ShmGroup& group, const Call& call, const Division& division) {
  const std::size_t share = division.share;
  const std::size_t total = share * static_cast<std::size_t>(division.size);
  const Reachable out(call.out, total, true);
  group.expose_output(call, out.get());
  group.stage(call, 1);
  OwnPart::make(out.get() + division.offset(division.rank), call.in, share).copy_all();
  for (int number = 1; number < division.size; ++number) {
    const std::size_t front = division.front(number);
    if (front == 0) continue;
    const int peer = division.peer_of(number);
    co_await meet(group, call, peer);
    const auto array = group.exposed(peer, call);
    std::byte* const to = out.get() + division.offset(peer);
    const int error = array ? group.read(*array, to, 0, front) : ESRCH;
    if (error != 0) co_await give_up_reading(peer, error);
    group.done(call, static_cast<std::uint64_t>(number));
  }
  for (int number = 1; number < division.size; ++number) {
    if (division.front(number) == share) continue;
    const int peer = division.peer_of(number);
    co_await meet(group, call, peer);
    co_await await_writer(group, call, peer, 1);
  }
  if (out.has_copy()) core::copy(call.out, out.get(), total, stores_for(total));
}

Task gather_at_peer(ShmGroup& group, const Call& call, const Division& division) {
  const int number = division.number_of(division.rank);
  const std::size_t front = division.front(number);
  const Reachable in(const_cast<void*>(call.in), front, false);
  if (front != 0) group.expose(call, in.get());
  group.stage(call, 1);
  co_await meet(group, call, division.root);
  if (front < division.share) {
    const auto array = group.exposed_output(division.root, call);
    const auto* const rest = static_cast<const std::byte*>(call.in) + front;
    const int error =
        array ? group.write(
                    *array, rest, division.offset(division.rank) + front, division.share - front)
              : ESRCH;
    if (error != 0) co_await give_up_reading(division.root, error);
    group.reduced(call, 1);
  }
  if (front != 0) {
    co_await await_reader(group, call, division.root, static_cast<std::uint64_t>(number));
  }
}

// Copies the parts of the first peers_of_root() peers to the root's chunk, in the order of the
// peers' numbers. Announces how many parts are in the chunk.
void stage_parts(ShmGroup& group, const Call& call, const Division& division) {
  const std::size_t share = division.share;
  const int at_once = static_cast<int>(std::max<std::size_t>(1, kNoticeBytes / share));
  std::byte* to = group.chunk(division.rank, call.sequence, 0);
  for (int done = 0; done < division.peers_of_root();) {
    const int peer = division.peer_of(done + 1);
    const int parts = std::min({at_once, division.peers_of_root() - done, division.size - peer});
    const std::size_t bytes = share * static_cast<std::size_t>(parts);
    const auto* from = static_cast<const std::byte*>(call.in) + division.offset(peer);
    core::copy(to, from, bytes, core::Stores::kCached);
    to += bytes;
    done += parts;
    group.reduced(call, static_cast<std::uint64_t>(done));
  }
}

Task scatter_at_root(ShmGroup& group, const Call& call, const Division& division) {
  const std::size_t share = division.share;
  const std::size_t parts = division.has_parts ? static_cast<std::size_t>(division.size) : 1;
  const Reachable in(const_cast<void*>(call.in), share * parts, false);
  group.expose(call, in.get());
  group.stage(call, 1);
  const auto* const data = static_cast<const std::byte*>(call.in);
  if (division.is_staged()) stage_parts(group, call, division);
  for (int number = 1; number < division.size; ++number) {
    const std::size_t front = division.front(number);
    if (front == 0 || division.is_staged()) continue;
    const int peer = division.peer_of(number);
    co_await meet(group, call, peer);
    const auto array = group.exposed_output(peer, call);
    const int error = array ? group.write(*array, data + division.offset(peer), 0, front) : ESRCH;
    if (error != 0) co_await give_up_reading(peer, error);
    group.reduced(call, static_cast<std::uint64_t>(number));
  }
  OwnPart::make(call.out, data + division.offset(division.rank), share).copy_all();
  for (int number = 1; number < division.size; ++number) {
    if (division.front(number) == share) continue;
    const int peer = division.peer_of(number);
    co_await meet(group, call, peer);
    co_await await_reader(group, call, peer, 1);
  }
}

Task scatter_at_peer(ShmGroup& group, const Call& call, const Division& division) {
  const int number = division.number_of(division.rank);
  const std::size_t front = division.front(number);
  if (front != 0 && division.is_staged()) {
    co_await meet(group, call, division.root);
    co_await await_writer(group, call, division.root, static_cast<std::uint64_t>(number));
    const std::byte* parts = group.chunk(division.root, call.sequence, 0);
    const std::size_t before = static_cast<std::size_t>(number - 1) * division.share;
    core::copy(call.out, parts + before, division.share, core::Stores::kCached);
    co_return;
  }
  const Reachable out(call.out, front, true);
  if (front != 0) group.expose_output(call, out.get());
  group.stage(call, 1);
  co_await meet(group, call, division.root);
  if (front < division.share) {
    const auto array = group.exposed(division.root, call);
    std::byte* const rest = static_cast<std::byte*>(call.out) + front;
    const int error =
        array ? group.read(
                    *array, rest, division.offset(division.rank) + front, division.share - front)
              : ESRCH;
    if (error != 0) co_await give_up_reading(division.root, error);
    group.done(call, 1);
  }
  if (front != 0) {
    co_await await_writer(group, call, division.root, static_cast<std::uint64_t>(number));
    if (out.has_copy()) core::copy(call.out, out.get(), front, core::Stores::kCached);
  }
}

}  // namespace

Task move_by_both_ends(ShmGroup& group, Call call) {
  const CallScope scope(group, call);
  const Exposing exposing(group);
  const Division division(group, call);
  co_await until([&] { return group.may_write(call); });
  group.begin_staging(call);
  const bool gathers = call.signature.kind == Kind::kGather;
  if (gathers && division.is_root()) {
    co_await gather_at_root(group, call, division);
  } else if (gathers) {
    co_await gather_at_peer(group, call, division);
  } else if (division.is_root()) {
    co_await scatter_at_root(group, call, division);
  } else {
    co_await scatter_at_peer(group, call, division);
  }
}

}  // namespace hocket::engines::shm
