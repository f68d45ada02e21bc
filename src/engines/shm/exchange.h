// The pattern of calls with more than a few KiB of data. In each step, a rank fills its next chunk
// while its peers read its previous chunk.
//
//   step        0         1         2         3
//   this rank   fill 0    fill 1    fill 2    ...
//   its peers             read 0    read 1    read 2
//
// Ranks are at most two steps apart. In step k a rank waits until all ranks have read the chunks of
// step k - 2. Then it fills its chunk k and reads the chunks that its peers filled in step k - 1. A
// rank that reads nothing in a step still reports the step as done, so that no peer waits for it.
// A rank that has completed the call counts as past every step.
//
// A rank that exposes its array gives the whole array in one step. It completes the call after all
// its readers have finished.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "engine/point_to_point.h"
#include "engine/task.h"
#include "engines/shm/shm_group.h"
#include "foundation/os/process/process_memory.h"

namespace hocket::engines::shm {

// A *giver* fills this rank's chunks, and a *taker* reads the chunks of peers.
//
// A giver has these members:
//   static constexpr Readers kReaders          whether one rank or several read each byte
//   std::uint64_t steps()
//   void fill(Stager&, std::byte* chunk, std::uint64_t step)
// A giver that may expose its array also has:
//   bool expose(ShmGroup&, const Call&)        exposes the array; returns whether it did
//   void keep_own()                            copies the data that this rank keeps for itself
//   bool gives(int peer)                       returns whether `peer` reads from the array
//
// A taker has these members:
//   std::uint64_t steps()
//   bool from(int peer, std::uint64_t step)    returns whether `peer` gives data in this step
//   void take(int peer, const Staged& chunk, std::uint64_t step)   called when the data is there
//   void finish(std::uint64_t step)            called after the last peer of a step
// A taker of exposed arrays also has:
//   int read(ShmGroup&, const Call&, const ExposedArray&)          see read_exposed for the result
template <typename Giver>
concept Exposes =
    requires(Giver giver, ShmGroup& group, const engine::Call& call) { giver.expose(group, call); };
template <typename Taker>
concept ReadsExposed = requires(Taker taker, ShmGroup& group, const engine::Call& call) {
  taker.read(group, call, ExposedArray{});
};

// Ends a call after read_exposed failed with `error`. Throws unless the error is ESRCH, which says
// that the owner withdrew the array. Then this waits until the owner's failure ends the call.
inline engine::Task give_up_reading(int owner, int error) {
  if (error != ESRCH) throw_unreachable(owner, error);
  co_await engine::until([] { return false; });
}

template <typename Giver, typename Taker>
engine::Task exchange(ShmGroup& group, engine::Call call, Giver giver, Taker taker) {
  const CallScope turn(group, call);
  const Exposing exposing(group);
  std::uint64_t give_steps = giver.steps();
  std::uint64_t take_steps = taker.steps();
  bool is_exposed = false;
  if (give_steps > 0) {
    co_await engine::until([&] { return group.may_write(call); });
    group.begin_staging(call);
    if constexpr (Exposes<Giver>) {
      is_exposed = giver.expose(group, call);
      if (is_exposed) {
        group.stage(call, 1);
        giver.keep_own();
        give_steps = 0;
      }
    }
  }
  for (std::uint64_t k = 0; k <= std::max(give_steps, take_steps); ++k) {
    if (k < give_steps) {
      if (k >= kChunks) {
        co_await engine::until([&] { return group.all_done(call, k - kChunks + 1); });
      }
      Stager& stager = group.stager(Giver::kReaders);
      giver.fill(stager, group.chunk(group.rank(), call.sequence, k), k);
      group.stage(call, k + 1, stager.claimable());
    }
    if (k == 0) continue;
    const std::uint64_t step = k - 1;
    if (step < take_steps) {
      [[maybe_unused]] bool is_staged = false;  // at least one peer stages
      // Each rank begins with its next peer, so that the ranks do not all read the same chunk
      // first.
      for (int i = 1; i < group.size(); ++i) {
        const int peer = (group.rank() + i) % group.size();
        if (!taker.from(peer, step)) continue;
        if (step == 0) {
          if (!group.staged(peer, call, 1)) {
            co_await engine::until([&] { return group.staged(peer, call, 1); });
          }
          group.check_staged(peer, call);
        }
        if constexpr (ReadsExposed<Taker>) {
          if (const auto array = group.exposed(peer, call)) {
            const int error = step == 0 ? taker.read(group, call, *array) : 0;
            if (error != 0) co_await give_up_reading(peer, error);
            continue;
          }
        }
        is_staged = true;
        if (!group.staged(peer, call, k)) {
          co_await engine::until([&] { return group.staged(peer, call, k); });
        }
        taker.take(peer, group.staged_chunk(peer, call.sequence, step), step);
      }
      taker.finish(step);
      if constexpr (ReadsExposed<Taker>) {
        if (step == 0 && !is_staged) take_steps = 1;  // every peer exposed its whole array
      }
    }
    if (k < std::max(give_steps, take_steps)) group.done(call, k);
  }
  if constexpr (Exposes<Giver>) {
    if (!is_exposed) co_return;
    group.done(call, ShmGroup::kAllChunks);
    for (int peer = 0; peer < group.size(); ++peer) {
      if (peer == group.rank() || !giver.gives(peer) || group.has_done(peer, call, 1)) continue;
      co_await engine::until([&] { return group.has_done(peer, call, 1); });
    }
  }
}

// Returns the number of steps for `bytes` bytes with `piece` bytes in each step.
inline std::uint64_t steps_for(std::size_t bytes, std::size_t piece) {
  return (bytes + piece - 1) / piece;
}

// The bytes of step `step` of a transfer of `bytes` bytes: [step * piece, ...).
struct StepRange {
  std::size_t first;
  std::size_t length;
};
inline StepRange range_of(std::uint64_t step, std::size_t piece, std::size_t bytes) {
  const std::size_t first = std::min(bytes, static_cast<std::size_t>(step) * piece);
  return {first, std::min(piece, bytes - first)};
}

// How a taker knows the size of a transfer. kAgreed: all ranks know it from the signature.
// kCompared: in v-forms only giver and taker know the size, and they may disagree. So every piece
// begins with the giver's size, and even an empty transfer has one piece.
enum class Sizes : std::uint8_t { kAgreed, kCompared };
// Bytes of the size in front of a piece: one cache line, so that the data stays aligned.
inline constexpr std::size_t kSizeBytes = 64;

// The length and layout of a transfer's pieces: an optional header with the size, then the data.
// `room` is the bytes of a piece including the header. A value.
class PieceSize {
 public:
  PieceSize(std::size_t room, Sizes sizes) : room_(room), sizes_(sizes) {}

  // Returns the bytes of data in one piece.
  std::size_t bytes() const { return room_ - header(); }
  std::uint64_t steps(std::size_t total) const {
    const std::uint64_t least = sizes_ == Sizes::kCompared ? 1 : 0;
    return std::max(least, steps_for(total, bytes()));
  }
  // Fills the piece of one step. `is_long`: see Stager.
  void fill(Stager& stager,
            std::byte* at,
            const std::byte* data,
            std::size_t total,
            std::uint64_t step,
            bool is_long) const {
    if (sizes_ == Sizes::kCompared) {
      const std::uint64_t size = total;
      base::copy_plain(at, &size, sizeof(size));
    }
    const StepRange range = range_of(step, bytes(), total);
    stager.copy(at + header(), data + range.first, range.length, is_long);
  }
  // Throws engine::EnvelopeMismatch if `peer` gives `given` bytes but this rank expects `total`.
  // Does nothing if the sizes are kAgreed.
  void compare(std::uint64_t given, std::size_t total, int peer) const {
    if (sizes_ == Sizes::kAgreed || given == total) return;
    throw engine::EnvelopeMismatch{{.peer = peer, .count = total}, {.peer = peer, .count = given}};
  }
  // Copies the piece of one step to `out`. Throws as `compare` does.
  void take(std::byte* out,
            const Staged& staged,
            std::size_t total,
            std::uint64_t step,
            int peer,
            core::Stores stores) const {
    if (sizes_ == Sizes::kCompared) {
      std::uint64_t given;
      base::copy_plain(&given, staged.bytes.data(), sizeof(given));
      compare(given, total, peer);
    }
    const StepRange range = range_of(step, bytes(), total);
    staged.part(header(), range.length).copy_to(out + range.first, stores);
  }

 private:
  std::size_t header() const { return sizes_ == Sizes::kCompared ? kSizeBytes : 0; }
  std::size_t room_;
  Sizes sizes_;
};

// Data that a rank keeps for itself. The rank copies it piece by piece, between the pieces for its
// peers. If peers also get this data, it is still in the caches. If not, the copy takes time in
// which the rank would only wait.
struct OwnPart {
  std::byte* out = nullptr;
  const std::byte* in = nullptr;
  std::size_t bytes = 0;

  static OwnPart make(void* out, const void* in, std::size_t bytes) {
    if (out == in) bytes = 0;
    return {static_cast<std::byte*>(out), static_cast<const std::byte*>(in), bytes};
  }
  // Copies the piece number `step`, of `piece` bytes. With `last`, copies all remaining data.
  void copy(std::uint64_t step, std::size_t piece, bool last) const {
    StepRange range = range_of(step, piece, bytes);
    if (last) range.length = bytes - range.first;
    if (range.length != 0) {
      core::copy(out + range.first, in + range.first, range.length, stores_for(bytes));
    }
  }
  void copy_all() const { copy(0, 0, true); }
};

// A giver of the same bytes to all ranks, one chunk in each step.
struct GiveShared {
  static constexpr Readers kReaders = Readers::kSeveral;
  const std::byte* data;
  std::size_t bytes;
  std::size_t long_from = Stager::copied_from();  // bytes; see Stager
  PieceSize piece;
  OwnPart own = {};      // what this rank keeps, at most `bytes` bytes
  int only = -1;         // the only reader; -1: all ranks read
  bool exposes = false;  // readers may read the array directly

  std::uint64_t steps() const { return piece.steps(bytes); }
  void fill(Stager& stager, std::byte* chunk, std::uint64_t step) const {
    piece.fill(stager, chunk, data, bytes, step, bytes >= long_from);
    own.copy(step, piece.bytes(), false);
  }
  bool gives(int peer) const { return bytes != 0 && (only < 0 || peer == only); }
  bool expose(ShmGroup& group, const engine::Call& call) const {
    if (!exposes || !os::others_may_read(data, bytes)) return false;
    for (int peer = 0; peer < group.size(); ++peer) group.set_part(call, peer, {0, bytes});
    group.expose(call, data);
    return true;
  }
  void keep_own() const { own.copy_all(); }
};

// The positions of the ranks' parts in an array: equal shares, or the parts of a v-form. In bytes.
struct ShmParts {
  std::size_t share = 0;  // length of each part, if `view` is empty
  engine::PartsView view;
  bool at_front = false;  // every part begins at 0, because there is only one

  std::size_t bytes(int rank) const {
    return view.bytes == nullptr ? share : view.bytes[static_cast<std::size_t>(rank)];
  }
  std::size_t offset(int rank) const {
    const auto r = static_cast<std::size_t>(rank);
    if (at_front) return 0;
    return view.bytes == nullptr ? r * share : view.offsets[r];
  }
};

// Returns the positions of the ranks' parts in the input of a reduce_scatter.
inline ShmParts parts_of(const engine::Call& call) {
  if (call.signature.kind == engine::Kind::kReduceScatterV) return {.view = call.in_parts};
  return {.share = bytes_of(call.signature)};
}

// Returns the part number `rank` of `elements` elements, in elements. The `size` parts are whole
// cache lines and as equal as possible.
inline StepRange part_of(int rank, int size, std::size_t elements, std::size_t element_bytes) {
  const std::size_t line = std::max<std::size_t>(1, control::kCacheLine / element_bytes);
  const std::size_t lines = (elements + line - 1) / line;
  const auto n = static_cast<std::size_t>(size);
  const std::size_t part = (lines + n - 1) / n * line;
  return range_of(static_cast<std::uint64_t>(rank), part, elements);
}

// Returns whether this rank exposes an array of which each peer reads one part. Ranks may decide
// differently, because a reader sees whether the peer exposes or stages. See single_copy.cc.
bool exposes_parts(const ShmGroup& group, engine::Kind kind, const ShmParts& parts) noexcept;
// Returns whether this rank exposes an array of `bytes` bytes that each reader reads completely.
bool exposes_whole(const ShmGroup& group, std::size_t bytes) noexcept;

// A chunk that is divided into one piece for each peer of its owner.
struct ChunkPieces {
  std::size_t chunk;  // bytes
  int rank;           // owner of the chunk
  int size;

  std::size_t bytes() const {
    return chunk / static_cast<std::size_t>(std::max(1, size - 1)) / 64 * 64;
  }
  std::size_t offset(int peer) const {
    return static_cast<std::size_t>(peer < rank ? peer : peer - 1) * bytes();
  }
};

// A giver of a different part to each rank.
struct GiveParts {
  static constexpr Readers kReaders = Readers::kOne;
  const std::byte* data;
  ShmParts parts;
  ChunkPieces pieces;
  PieceSize piece;
  OwnPart own;
  std::uint64_t most = 0;                         // steps of the longest part; set by make
  std::size_t long_from = Stager::copied_from();  // bytes of a part; see Stager
  bool exposes = false;                           // readers may read the array directly

  static GiveParts make(const void* data,
                        const ShmParts& parts,
                        const ChunkPieces& pieces,
                        Sizes sizes,
                        OwnPart own = {}) {
    GiveParts give{
        static_cast<const std::byte*>(data), parts, pieces, {pieces.bytes(), sizes}, own};
    for (int peer = 0; peer < pieces.size; ++peer) {
      if (peer != pieces.rank) give.most = std::max(give.most, give.piece.steps(parts.bytes(peer)));
    }
    if (give.most == 0) std::exchange(give.own, {}).copy_all();
    return give;
  }
  std::uint64_t steps() const { return most; }
  void fill(Stager& stager, std::byte* chunk, std::uint64_t step) const {
    for (int peer = 0; peer < pieces.size; ++peer) {
      if (peer == pieces.rank || step >= piece.steps(parts.bytes(peer))) continue;
      piece.fill(stager,
                 chunk + pieces.offset(peer),
                 data + parts.offset(peer),
                 parts.bytes(peer),
                 step,
                 parts.bytes(peer) >= long_from);
    }
    own.copy(step, piece.bytes(), step + 1 == most);
  }
  bool gives(int peer) const { return peer != pieces.rank && parts.bytes(peer) != 0; }
  bool expose(ShmGroup& group, const engine::Call& call) const {
    if (!exposes) return false;
    std::size_t end = 0;
    for (int peer = 0; peer < pieces.size; ++peer) {
      const engine::Part part{parts.offset(peer), parts.bytes(peer)};
      group.set_part(call, peer, part);
      end = std::max(end, part.offset + part.bytes);
    }
    if (!os::others_may_read(data, end)) return false;
    group.expose(call, data);
    return true;
  }
  void keep_own() const { own.copy_all(); }
};

struct GiveNothing {
  static constexpr Readers kReaders = Readers::kSeveral;
  std::uint64_t steps() const { return 0; }
  void fill(Stager&, std::byte*, std::uint64_t) const {}
};

struct TakeNothing {
  std::uint64_t steps() const { return 0; }
  bool from(int, std::uint64_t) const { return false; }
  void take(int, const Staged&, std::uint64_t) const {}
  void finish(std::uint64_t) const {}
};

}  // namespace hocket::engines::shm
