// Gather, scatter and broadcast with one copy by the kernel, which both ends of a transfer make.
//
// A single rank copies at the speed of its core, and half of the others would wait for it. So the
// root copies the front of each peer's part, and the peer copies the rest at the same time. With
// more than two ranks the front is all of a part, or nothing:
//
//   part of peer  1      2      3      4      5      6
//   gather        root reads           peers write
//   scatter       root writes          peers read
//
// An array that both ends reach is exposed: see exposure.h.
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

// From this length of all parts on, the root's copies would only take its memory's bandwidth from
// the peers, who are many. Below it, all peers at once would wait for the caches of its core.
constexpr std::size_t kPeersAloneFrom = std::size_t{4} << 20;

// The division of the work. A value, equal on all ranks.
struct Division {
  int rank;
  int size;
  int root;
  std::size_t share;  // bytes of each part
  bool has_parts;     // false: all parts are the whole array

  Division(const ShmGroup& group, const Call& call)
      : rank(group.rank()),
        size(group.size()),
        root(call.signature.root),
        share(bytes_of(call.signature)),
        has_parts(call.signature.kind != Kind::kBroadcast) {}
  bool is_root() const { return rank == root; }
  // Returns the number of a peer, from 1, and the peer of a number.
  int number_of(int peer) const { return (peer - root + size) % size; }
  int peer_of(int number) const { return (root + number) % size; }
  std::size_t offset(int peer) const {
    return has_parts ? static_cast<std::size_t>(peer) * share : 0;
  }
  // Returns the bytes of a part that the root copies.
  std::size_t front(int number) const {
    if (size == 2) return share / 2 / control::kCacheLine * control::kCacheLine;
    const bool is_long = share * static_cast<std::size_t>(size) >= kPeersAloneFrom;
    return !is_long && number <= size / 2 ? share : 0;
  }
};

// An array to expose, or a copy if the kernel cannot reach it for others. A resource.
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

// A rank that has read the fronts of n peers is done with n chunks. It counts as done, too, if its
// call has failed. A rank that has written n parts has reduced n chunks, and only then.
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

Task scatter_at_root(ShmGroup& group, const Call& call, const Division& division) {
  const std::size_t share = division.share;
  const std::size_t parts = division.has_parts ? static_cast<std::size_t>(division.size) : 1;
  const Reachable in(const_cast<void*>(call.in), share * parts, false);
  group.expose(call, in.get());
  group.stage(call, 1);
  const auto* const data = static_cast<const std::byte*>(call.in);
  for (int number = 1; number < division.size; ++number) {
    const std::size_t front = division.front(number);
    if (front == 0) continue;
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
