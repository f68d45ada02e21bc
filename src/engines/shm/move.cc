// Calls that move data without computing, of any size: broadcast, gather, scatter, all_gather,
// all_to_all and their v-forms.
#include "engines/shm/collectives.h"
#include "engines/shm/exchange.h"

namespace hocket::engines::shm {

using engine::Call;
using engine::Kind;
using engine::Task;

namespace {

// Takes a part from each rank (or from one), each into its place.
struct TakeParts {
  std::byte* out;
  Parts parts;
  int only;           // -1: from everybody
  std::size_t piece;  // bytes a step
  bool each;          // chunks are cut into pieces, one a reader
  int rank;
  int size;
  core::Stores stores;
  std::uint64_t most = 0;

  void count_steps() {
    for (int peer = 0; peer < size; ++peer) {
      if (peer != rank && (only < 0 || peer == only)) {
        most = std::max(most, steps_for(parts.bytes(peer), piece));
      }
    }
  }
  std::uint64_t steps() const { return most; }
  bool from(int peer, std::uint64_t step) const {
    return (only < 0 || peer == only) && step < steps_for(parts.bytes(peer), piece);
  }
  void take(int peer, const std::byte* chunk, std::uint64_t step) const {
    const Range range = range_of(step, piece, parts.bytes(peer));
    if (each) chunk += Pieces{peer, size}.offset(rank);
    core::copy(out + parts.offset(peer) + range.first, chunk, range.length, stores);
  }
  void finish(std::uint64_t) const {}
};

TakeParts take_parts(const ShmGroup& group, void* out, const Parts& parts, int only, bool each) {
  std::size_t total = 0;
  for (int i = 0; i < group.size(); ++i) total += parts.bytes(i);
  TakeParts take{.out = static_cast<std::byte*>(out),
                 .parts = parts,
                 .only = only,
                 .piece = each ? Pieces{0, group.size()}.bytes() : kChunkBytes,
                 .each = each,
                 .rank = group.rank(),
                 .size = group.size(),
                 .stores = stores_for(total)};
  take.count_steps();
  return take;
}

void copy_own(void* out, const void* in, std::size_t bytes) {
  if (out != in && bytes != 0) core::copy(out, in, bytes, stores_for(bytes));
}

Task broadcast(ShmGroup& group, const Call& call) {
  const std::size_t bytes = bytes_of(call.signature);
  const int root = call.signature.root;
  if (group.rank() == root) {
    copy_own(call.out, call.in, bytes);
    return exchange(
        group, call, GiveShared{static_cast<const std::byte*>(call.in), bytes}, TakeNothing{});
  }
  // The root's part is the whole, at the front.
  struct TakeWhole {
    std::byte* out;
    std::size_t bytes;
    int root;
    std::uint64_t steps() const { return steps_for(bytes, kChunkBytes); }
    bool from(int peer, std::uint64_t) const { return peer == root; }
    void take(int, const std::byte* chunk, std::uint64_t step) const {
      const Range range = range_of(step, kChunkBytes, bytes);
      core::copy(out + range.first, chunk, range.length, stores_for(bytes));
    }
    void finish(std::uint64_t) const {}
  };
  return exchange(
      group, call, GiveNothing{}, TakeWhole{static_cast<std::byte*>(call.out), bytes, root});
}

// all_gather and gather: every rank gives its part to everybody, or to the root.
Task gather(ShmGroup& group, const Call& call, const Parts& parts, std::size_t own, int root) {
  const GiveShared give{static_cast<const std::byte*>(call.in), own};
  if (root >= 0 && group.rank() != root) return exchange(group, call, give, TakeNothing{});
  copy_own(static_cast<std::byte*>(call.out) + parts.offset(group.rank()), call.in, own);
  const TakeParts take = take_parts(group, call.out, parts, -1, false);
  if (root >= 0) return exchange(group, call, GiveNothing{}, take);
  return exchange(group, call, give, take);
}

Task scatter(ShmGroup& group, const Call& call, const Parts& parts, std::size_t own) {
  const int root = call.signature.root;
  const int rank = group.rank();
  if (rank == root) {
    copy_own(call.out, static_cast<const std::byte*>(call.in) + parts.offset(rank), own);
    return exchange(
        group, call, GiveParts::make(call.in, parts, rank, group.size()), TakeNothing{});
  }
  return exchange(group, call, GiveNothing{}, [&] {
    // One part, of whatever place at the root; here it begins at 0.
    struct TakeOne {
      std::byte* out;
      std::size_t bytes;
      int root, rank, size;
      std::size_t piece() const { return Pieces{root, size}.bytes(); }
      std::uint64_t steps() const { return steps_for(bytes, piece()); }
      bool from(int peer, std::uint64_t) const { return peer == root; }
      void take(int, const std::byte* chunk, std::uint64_t step) const {
        const Range range = range_of(step, piece(), bytes);
        core::copy(out + range.first,
                   chunk + Pieces{root, size}.offset(rank),
                   range.length,
                   stores_for(bytes));
      }
      void finish(std::uint64_t) const {}
    };
    return TakeOne{static_cast<std::byte*>(call.out), own, root, rank, group.size()};
  }());
}

Task all_to_all(ShmGroup& group, const Call& call, const Parts& in, const Parts& out) {
  const int rank = group.rank();
  copy_own(static_cast<std::byte*>(call.out) + out.offset(rank),
           static_cast<const std::byte*>(call.in) + in.offset(rank),
           in.bytes(rank));
  return exchange(group,
                  call,
                  GiveParts::make(call.in, in, rank, group.size()),
                  take_parts(group, call.out, out, -1, true));
}

}  // namespace

Task move(ShmGroup& group, Call call) {
  const std::size_t share = bytes_of(call.signature);
  const int root = call.signature.root;
  const Parts even{.share = share};
  const Parts in{.view = call.in_parts};
  const Parts out{.view = call.out_parts};
  switch (call.signature.kind) {
    case Kind::kBroadcast:
      return broadcast(group, call);
    case Kind::kAllGather:
      return gather(group, call, even, share, -1);
    case Kind::kGather:
      return gather(group, call, even, share, root);
    case Kind::kAllGatherV:
      return gather(group, call, out, call.own_bytes, -1);
    case Kind::kGatherV:
      return gather(group, call, out, call.own_bytes, root);
    case Kind::kScatter:
      return scatter(group, call, even, share);
    case Kind::kScatterV:
      return scatter(group, call, in, call.own_bytes);
    case Kind::kAllToAll:
      return all_to_all(group, call, even, even);
    case Kind::kAllToAllV:
      return all_to_all(group, call, in, out);
    default:
      return {};
  }
}

}  // namespace hocket::engines::shm
