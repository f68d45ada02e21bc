// Collectives of a few KiB, and of some more from a root: each rank writes its slot and reads the
// slots of others.
#include "engines/shm/collectives.h"
#include "foundation/base/relax.h"

namespace hocket::engines::shm {

using engine::Call;
using engine::Flow;
using engine::Kind;
using engine::KindSet;
using engine::KindTable;
using engine::Task;
using engine::until;

namespace {

// From more than this many ranks on, the root fetches all slots in advance; see `fetch`.
constexpr int kFetchedFrom = 16;

// Computes a rank's result from its own data and the slots that it waited for.
using Use = void (*)(ShmGroup&, const Call&, SlotKind);

void copy_small(void* out, const void* in, std::size_t bytes) {
  if (bytes != 0 && out != in) base::copy_plain(out, in, bytes);
}

// Returns the data that `rank` gives. A rank reads its own data from its array and not from its
// slot: the slot's cache lines are in transfer to the peers, and a read would wait for their
// return.
const std::byte* given_by(const ShmGroup& group, const Call& call, SlotKind kind, int rank) {
  return rank == group.rank() ? static_cast<const std::byte*>(call.in)
                              : group.data(rank, call.sequence, kind);
}

// Reduces the elements [first, first + count) of the first `ranks` arrays, in rank order.
void reduce_slots(ShmGroup& group,
                  const Call& call,
                  SlotKind kind,
                  int ranks,
                  std::size_t first,
                  std::size_t count) {
  const std::size_t offset = first * size_of(call.signature.dtype);
  const void** sources = group.sources();
  for (int i = 0; i < ranks; ++i) sources[i] = given_by(group, call, kind, i) + offset;
  group.kernel(call, core::Stores::kCached)(&call.out, 1, sources, ranks, count, ranks);
}

void use_reduce(ShmGroup& group, const Call& call, SlotKind kind) {
  reduce_slots(group, call, kind, group.size(), 0, call.signature.count);
}

void use_scan(ShmGroup& group, const Call& call, SlotKind kind) {
  const int ranks = engine::combined(call.signature.kind, group.rank(), group.size());
  if (ranks > 0) reduce_slots(group, call, kind, ranks, 0, call.signature.count);
}

void use_reduce_scatter(ShmGroup& group, const Call& call, SlotKind kind) {
  const std::size_t share = call.signature.count;
  const std::size_t first = static_cast<std::size_t>(group.rank()) * share;
  reduce_slots(group, call, kind, group.size(), first, share);
}

void use_broadcast(ShmGroup& group, const Call& call, SlotKind kind) {
  copy_small(call.out, given_by(group, call, kind, call.signature.root), bytes_of(call.signature));
}

void use_gather(ShmGroup& group, const Call& call, SlotKind kind) {
  const std::size_t bytes = bytes_of(call.signature);
  auto* out = static_cast<std::byte*>(call.out);
  for (int i = 0; i < group.size(); ++i)
    copy_small(out + i * bytes, given_by(group, call, kind, i), bytes);
}

void use_scatter(ShmGroup& group, const Call& call, SlotKind kind) {
  const std::size_t bytes = bytes_of(call.signature);
  copy_small(
      call.out, given_by(group, call, kind, call.signature.root) + group.rank() * bytes, bytes);
}

void use_all_to_all(ShmGroup& group, const Call& call, SlotKind kind) {
  const std::size_t bytes = bytes_of(call.signature);
  auto* out = static_cast<std::byte*>(call.out);
  const std::size_t mine = group.rank() * bytes;
  for (int i = 0; i < group.size(); ++i) {
    copy_small(out + i * bytes, given_by(group, call, kind, i) + mine, bytes);
  }
}

// How a kind of collective uses the slots.
struct Shape {
  Flow flow = Flow::kAmongAll;
  bool to_each = false;  // a slot holds different data for every rank
  Use use = nullptr;     // null for a barrier
  bool upwards = false;  // a rank reads only the slots of lower ranks
};

constexpr KindTable<Shape> kShapes{
    {Kind::kBarrier, {}},
    {Kind::kAllReduce, {Flow::kAmongAll, false, use_reduce}},
    {Kind::kScan, {Flow::kAmongAll, false, use_scan, true}},
    {Kind::kExscan, {Flow::kAmongAll, false, use_scan, true}},
    {Kind::kReduceScatter, {Flow::kAmongAll, true, use_reduce_scatter}},
    {Kind::kAllGather, {Flow::kAmongAll, false, use_gather}},
    {Kind::kAllToAll, {Flow::kAmongAll, true, use_all_to_all}},
    {Kind::kReduce, {Flow::kToRoot, false, use_reduce}},
    {Kind::kGather, {Flow::kToRoot, false, use_gather}},
    {Kind::kBroadcast, {Flow::kFromRoot, false, use_broadcast}},
    {Kind::kScatter, {Flow::kFromRoot, true, use_scatter}},
};
static_assert(kShapes.kinds() ==
              KindSet::where([](Kind kind) { return kCarries.has(kind) && !is_listed(kind); }));

// Returns the bytes of call.in that a rank gives. A barrier gives no bytes, even if its signature
// has a count.
std::size_t given_bytes(const Shape& shape, const engine::Signature& s, int size) {
  if (shape.use == nullptr) return 0;
  return bytes_of(s) * (shape.to_each ? static_cast<std::size_t>(size) : 1);
}

// The role of one rank in a call. A value.
struct SmallPart {
  SmallPart(const ShmGroup& group, const Call& call)
      : shape(kShapes[call.signature.kind]),
        bytes(given_bytes(shape, call.signature, group.size())),
        kind(slot_kind_of(bytes, shape.upwards || shape.flow != Flow::kAmongAll)) {
    const int root = call.signature.root;
    const bool at_root = group.rank() == root;
    posts = shape.flow == Flow::kAmongAll || at_root == (shape.flow == Flow::kFromRoot);
    if (shape.upwards) posts = group.rank() + 1 < group.size();
    if (shape.flow == Flow::kFromRoot) {
      first = root;
      last = at_root ? root : root + 1;
    } else if (shape.flow == Flow::kAmongAll || at_root) {
      last = shape.upwards ? group.rank() : group.size();
    }
    takes = shape.use != nullptr && (shape.flow != Flow::kToRoot || at_root);
  }

  Shape shape;
  std::size_t bytes;  // data in a slot
  SlotKind kind;
  bool posts = false;  // this rank gives data
  bool takes = false;  // this rank computes a result
  int first = 0;       // this rank waits for the ranks [first, last) except itself
  int last = 0;
};

// Fills a long slot, except what its rank keeps of a scatter, which no peer reads.
void fill_long(const ShmGroup& group, const Call& call, const SmallPart& part, std::byte* slot) {
  const auto* in = static_cast<const std::byte*>(call.in);
  const std::size_t kept = part.shape.to_each ? bytes_of(call.signature) : 0;
  const std::size_t before = static_cast<std::size_t>(group.rank()) * kept;
  const std::size_t behind = before + kept;
  core::copy(slot, in, before, core::Stores::kCached);
  core::copy(slot + behind, in + behind, part.bytes - behind, core::Stores::kCached);
}

// Writes and announces this rank's slot. ShmGroup::may_write must have returned true.
void post(ShmGroup& group, const Call& call, const SmallPart& part) {
  std::byte* const slot = group.data(group.rank(), call.sequence, part.kind);
  if (part.kind == SlotKind::kLong) {
    fill_long(group, call, part, slot);
  } else if (part.bytes != 0) {
    base::copy_plain(slot, call.in, part.bytes);
  }
  group.post(call, part.kind);
}

// Prefetches the peers' slots into this core's caches. In a call with a root the other ranks run
// ahead, so many slots are already filled. Without the prefetch, the core would load the slots one
// after the other.
void fetch(const ShmGroup& group, const Call& call, const SmallPart& part) {
  for (int peer = part.first; peer < part.last; ++peer) {
    __builtin_prefetch(&group.slot(peer, call.sequence, part.kind));
  }
}

// Completes the call after the last peer has posted.
void finish(ShmGroup& group, const Call& call, const SmallPart& part) {
  if (part.last - part.first == group.size()) group.saw_everybody(call);
  if (part.takes) part.shape.use(group, call, part.kind);
}

}  // namespace

std::size_t slot_bytes(const engine::Signature& s, int size) noexcept {
  return given_bytes(kShapes[s.kind], s, size);
}

bool attempt_small(ShmGroup& group, const Call& call) {
  const SmallPart part(group, call);
  if (part.posts) {
    if (!group.may_write(call, part.kind)) return false;
    post(group, call, part);
  }
  if (part.shape.flow == Flow::kToRoot && group.size() > kFetchedFrom) fetch(group, call, part);
  for (int peer = part.first; peer < part.last; ++peer) {
    if (peer == group.rank()) continue;
    if (!group.posted(peer, call, part.kind)) {
      int polls = group.eager_polls(peer, part.last, call, part.kind);
      do {
        if (polls-- == 0) return false;
        base::relax();
      } while (!group.posted(peer, call, part.kind));
    }
    try {
      group.check_slot(peer, call, part.kind);
    } catch (...) {  // no CallScope does this, because no task follows
      group.finish(call.sequence);
      throw;
    }
  }
  finish(group, call, part);
  group.finish(call.sequence);
  return true;
}

Task small(ShmGroup& group, Call call) {
  const CallScope turn(group, call);
  const SmallPart part(group, call);
  if (part.posts && !group.has_posted(call)) {  // an attempt may have posted already
    if (!group.may_write(call, part.kind))
      co_await until([&] { return group.may_write(call, part.kind); });
    post(group, call, part);
  }
  for (int peer = part.first; peer < part.last; ++peer) {
    if (peer == group.rank()) continue;
    if (!group.posted(peer, call, part.kind))
      co_await until([&] { return group.posted(peer, call, part.kind); });
    group.check_slot(peer, call, part.kind);
  }
  finish(group, call, part);
}

}  // namespace hocket::engines::shm
