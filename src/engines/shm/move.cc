// Calls of any size that only move data: broadcast, gather, scatter, all_gather, all_to_all and
// their v-forms.
#include "engines/shm/collectives.h"
#include "engines/shm/exchange.h"

namespace hocket::engines::shm {

using engine::Call;
using engine::Flow;
using engine::Has;
using engine::Kind;
using engine::Task;

namespace {

// A taker of one part from each rank, or from one rank; see exchange.h. It stores each part at its
// position in the output.
struct TakeParts {
  std::byte* out;
  ShmParts parts;
  int only;   // -1: from all ranks
  bool each;  // chunks are cut into one piece for each reader
  PieceSize piece;
  ChunkPieces pieces;  // the division of this rank's own chunk
  core::Stores stores;
  std::uint64_t most = 0;  // steps of the longest part; set by count_steps

  void count_steps() {
    for (int peer = 0; peer < pieces.size; ++peer) {
      if (peer != pieces.rank && (only < 0 || peer == only)) {
        most = std::max(most, piece.steps(parts.bytes(peer)));
      }
    }
  }
  std::uint64_t steps() const { return most; }
  bool from(int peer, std::uint64_t step) const {
    return (only < 0 || peer == only) && step < piece.steps(parts.bytes(peer));
  }
  void take(int peer, const Staged& chunk, std::uint64_t step) const {
    const ChunkPieces given{pieces.chunk, peer, pieces.size};
    const Staged staged = each ? chunk.part(given.offset(pieces.rank), given.bytes()) : chunk;
    piece.take(out + parts.offset(peer), staged, parts.bytes(peer), step, peer, stores);
  }
  int read(const ShmGroup& group, const Call& call, const ExposedArray& array) const {
    const engine::Part part = group.exposed_part(array.owner, call);
    const std::size_t bytes = parts.bytes(array.owner);
    piece.compare(part.bytes, bytes, array.owner);
    return group.read(array, out + parts.offset(array.owner), part.offset, bytes);
  }
  void finish(std::uint64_t) const {}
};

ChunkPieces pieces_of(const ShmGroup& group, const Call& call) {
  return {chunk_bytes(call.signature, group.size()), group.rank(), group.size()};
}

TakeParts take_parts(const ShmGroup& group,
                     const Call& call,
                     const ShmParts& parts,
                     int only,
                     bool each,
                     Sizes sizes) {
  const ChunkPieces pieces = pieces_of(group, call);
  std::size_t total = 0;
  for (int i = 0; i < group.size(); ++i) {
    if (only < 0 || i == only) total += parts.bytes(i);
  }
  TakeParts take{.out = static_cast<std::byte*>(call.out),
                 .parts = parts,
                 .only = only,
                 .each = each,
                 .piece = {each ? pieces.bytes() : pieces.chunk, sizes},
                 .pieces = pieces,
                 .stores = stores_for(total)};
  take.count_steps();
  return take;
}

// Takes this rank's data from the root alone, and stores it at the beginning of the output.
TakeParts take_from_root(
    const ShmGroup& group, const Call& call, std::size_t bytes, bool each, Sizes sizes) {
  const ShmParts whole{.share = bytes, .view = {}, .at_front = true};
  return take_parts(group, call, whole, call.signature.root, each, sizes);
}

Task broadcast(ShmGroup& group, const Call& call) {
  const std::size_t bytes = bytes_of(call.signature);
  if (group.rank() == call.signature.root) {
    const GiveShared give{.data = static_cast<const std::byte*>(call.in),
                          .bytes = bytes,
                          .piece = {chunk_bytes(call.signature, group.size()), Sizes::kAgreed},
                          .own = OwnPart::make(call.out, call.in, bytes),
                          .exposes = exposes_whole(group, bytes)};
    return exchange(group, call, give, TakeNothing{});
  }
  return exchange(
      group, call, GiveNothing{}, take_from_root(group, call, bytes, false, Sizes::kAgreed));
}

// Carries all_gather and gather. Every rank gives its part of `own` bytes to all ranks, or to
// `root` if that is not negative.
Task gather(ShmGroup& group,
            const Call& call,
            const ShmParts& parts,
            std::size_t own,
            int root,
            Sizes sizes) {
  GiveShared give{.data = static_cast<const std::byte*>(call.in),
                  .bytes = own,
                  .piece = {chunk_bytes(call.signature, group.size()), sizes},
                  .only = root,
                  .exposes = exposes_whole(group, own)};
  if (root >= 0 && group.rank() != root) return exchange(group, call, give, TakeNothing{});
  std::byte* place = static_cast<std::byte*>(call.out) + parts.offset(group.rank());
  const TakeParts take = take_parts(group, call, parts, -1, false, sizes);
  give.own = OwnPart::make(place, call.in, own);
  if (root < 0) return exchange(group, call, give, take);
  give.own.copy_all();
  return exchange(group, call, GiveNothing{}, take);
}

Task scatter(
    ShmGroup& group, const Call& call, const ShmParts& parts, std::size_t own, Sizes sizes) {
  const int rank = group.rank();
  if (rank == call.signature.root) {
    const auto* mine = static_cast<const std::byte*>(call.in) + parts.offset(rank);
    const OwnPart own_part = OwnPart::make(call.out, mine, own);
    GiveParts give = GiveParts::make(call.in, parts, pieces_of(group, call), sizes, own_part);
    give.exposes = exposes_parts(group, call.signature.kind, parts);
    return exchange(group, call, give, TakeNothing{});
  }
  return exchange(group, call, GiveNothing{}, take_from_root(group, call, own, true, sizes));
}

Task all_to_all(
    ShmGroup& group, const Call& call, const ShmParts& in, const ShmParts& out, Sizes sizes) {
  const int rank = group.rank();
  const OwnPart own = OwnPart::make(static_cast<std::byte*>(call.out) + out.offset(rank),
                                    static_cast<const std::byte*>(call.in) + in.offset(rank),
                                    in.bytes(rank));
  GiveParts give = GiveParts::make(call.in, in, pieces_of(group, call), sizes, own);
  // If this rank works in place, its result would overwrite exposed data that peers have not read
  // yet.
  give.exposes = call.in != call.out && exposes_parts(group, call.signature.kind, in);
  return exchange(group, call, give, take_parts(group, call, out, -1, true, sizes));
}

}  // namespace

Task move(ShmGroup& group, const Call& call) {
  const Kind kind = call.signature.kind;
  const engine::KindRow& row = engine::row_of(kind);
  const bool listed = is_listed(kind);
  const std::size_t share = bytes_of(call.signature);
  const std::size_t own = listed ? call.own_bytes : share;
  const ShmParts even{.share = share, .view = {}};
  const ShmParts in = listed ? ShmParts{.view = call.in_parts} : even;
  const ShmParts out = listed ? ShmParts{.view = call.out_parts} : even;
  const Sizes sizes = !listed || counts_parts(kind) ? Sizes::kAgreed : Sizes::kCompared;
  switch (row.flow) {
    case Flow::kFromRoot:
      return row.gives == Has::kAll ? scatter(group, call, in, own, sizes) : broadcast(group, call);
    case Flow::kToRoot:
      return gather(group, call, out, own, call.signature.root, sizes);
    case Flow::kAmongAll:
      return row.gives == Has::kAll ? all_to_all(group, call, in, out, sizes)
                                    : gather(group, call, out, own, -1, sizes);
    case Flow::kBetweenTwo:
      break;
  }
  return {};  // not a collective
}

}  // namespace hocket::engines::shm
