// The memory through which the ranks of one group on one host exchange data, and its rules.
//
// A *call* is one collective with its sequence number s. Each rank has *slots* for small data, with
// a flag in front of the data. Slots of different lengths are separate arrays, and calls with a
// root have slots of their own. For larger data each rank has two *chunks* for even s and two for
// odd s. A call alternates between its two chunks: the rank fills one while peers read the other. A
// rank writes only its own slots, chunks and words. It reads the slots, chunks and words of all
// ranks.
//
//   rank r:   words | brief slots | wide slots | ... | chunks of even s | chunks of odd s
//
// Long slots have only their heads among the slots. Their data lies in the chunks:
//
//   chunks of even s:   | s = 0 mod 8 | 2 mod 8 | 4 mod 8 | 6 mod 8 |     odd s: 1, 3, 5, 7
//
// Groups of at least ManyRanks::seconds_ranks ranks also have *second slots*. They lie behind the
// first slots of all ranks, one set for each rank. A rank writes there the results that it combined
// or collected for other ranks; see small_among_many.cc.
//
// The words of a rank never decrease. (s, k) is the value `word(s, k)`:
//   slot flag   s: the slot holds the rank's data of call s
//   staged      (s, k): the first k chunks of call s are filled
//   reduced     (s, k): the first k chunks of call s hold results
//   done        (s, k): the rank has read the first k chunks of call s of all ranks;
//               (s + 1, 0): it has finished call s
// Two more words may decrease; see exposure.h. `exposed` is s while peers may directly read the
// rank's input of call s, or write its output. `copying` is 1 + the rank whose array this rank
// reads or writes now, or 0. An exposed input counts as one chunk.
//
// One rule protects all memory: a rank writes for call s only after every peer has finished the
// last call that used the same chunk or slot. For a chunk this is call s - 2. For a slot of a kind
// with n slots it is call s - n; for a long slot also the last call in which the rank has filled
// its chunks. A call that waits for all ranks proves this without extra cost
// (`saw_everybody`). Otherwise the rank reads the `done` words of all peers.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

#include "engine/call.h"
#include "engine/task.h"
#include "engines/shm/exposure.h"
#include "engines/shm/staging.h"
#include "foundation/base/atomic.h"
#include "foundation/core/reduce.h"
#include "membership/control/group.h"

namespace hocket::engines::shm {

inline constexpr std::size_t kSlotBytes = 4096;
inline constexpr std::size_t kBriefBytes = 240;
inline constexpr std::size_t kMiddleBytes = 1008;
inline constexpr std::size_t kLongBytes = 64 * 1024;
inline constexpr std::size_t kChunkBytes = 128 * 1024;  // length of a chunk in most calls
inline constexpr std::size_t kLongChunkBytes = 256 * 1024;
inline constexpr std::size_t kShortChunkBytes = 32 * 1024;
inline constexpr std::size_t kChunks = 2;
inline constexpr std::size_t kBlockBytes = 16 * 1024;  // fits into a core's private cache

// Returns the memory of one chunk in bytes. Two ranks do not profit from long chunks, because each
// step between them is cheap. In groups of hundreds of ranks long chunks would take too much
// memory.
constexpr std::size_t chunk_room(int size) noexcept {
  return size > 2 && size <= 64 ? kLongChunkBytes : kChunkBytes;
}
// Returns the bytes of a chunk that a regular call uses. See chunk_bytes.cc.
std::size_t chunk_bytes(const engine::Signature& signature, int size) noexcept;

// The head of a slot, contiguous with its data, so that one cache line carries the head and 48
// bytes of data.
struct SlotHead {
  base::Atomic<std::uint64_t> flag{0};
  base::NonAtomic<std::uint64_t> fingerprint = 0;
};
template <std::size_t kBytes>
struct alignas(control::kApart) Slot : SlotHead {
  std::byte data[kBytes];
};
struct alignas(control::kApart) LongSlotHead : SlotHead {};
// The kind of slot that a call uses. Calls with a root have more slots, so that ranks that only
// give data may run many calls ahead of the root. Ranks that share a processor then switch less
// often. Other calls have few slots, which stay in the nearest cache.
enum class SlotKind : std::uint8_t {
  kBrief,
  kWide,
  kBriefRooted,
  kMiddleRooted,
  kWideRooted,
  kLong
};
inline constexpr std::uint64_t kSlotsOf[] = {16, 2, 24, 16, 4, 8};
// A reader of a slot may ask for the writer's record of that call, so the record must still exist.
static_assert(*std::max_element(std::begin(kSlotsOf), std::end(kSlotsOf)) + 2 < control::kRecords);
constexpr std::uint64_t slots_of(SlotKind kind) noexcept {
  return kSlotsOf[static_cast<std::size_t>(kind)];
}
constexpr SlotKind slot_kind_of(std::size_t bytes, bool rooted) noexcept {
  if (bytes > kSlotBytes) return SlotKind::kLong;
  if (bytes <= kBriefBytes) return rooted ? SlotKind::kBriefRooted : SlotKind::kBrief;
  if (!rooted) return SlotKind::kWide;
  return bytes <= kMiddleBytes ? SlotKind::kMiddleRooted : SlotKind::kWideRooted;
}
static_assert(slots_of(SlotKind::kLong) * kLongBytes <= 2 * kChunks * kChunkBytes);
// The slots of one rank.
struct RankSlots {
  Slot<kBriefBytes> brief[slots_of(SlotKind::kBrief)];
  Slot<kBriefBytes> brief_rooted[slots_of(SlotKind::kBriefRooted)];
  Slot<kMiddleBytes> middle_rooted[slots_of(SlotKind::kMiddleRooted)];
  Slot<kSlotBytes> wide[slots_of(SlotKind::kWide)];
  Slot<kSlotBytes> wide_rooted[slots_of(SlotKind::kWideRooted)];
  LongSlotHead long_heads[slots_of(SlotKind::kLong)];
};

struct alignas(control::kApart) RankWords {
  base::Atomic<std::uint64_t> staged{0};
  // One for each parity of the sequence number, as are all arrays of two below. The rank writes
  // them before `staged`.
  base::NonAtomic<std::uint64_t> fingerprint[2] = {};
  // In symmetric calls: the positions of the rank's arrays in the host's segment, in bytes.
  base::NonAtomic<std::uint64_t> in[2] = {};
  base::NonAtomic<std::uint64_t> out[2] = {};
  // The arrays that the rank exposes in this call, as bits, and their addresses in its process.
  enum : std::uint8_t { kInput = 1, kOutput = 2 };
  base::NonAtomic<std::uint8_t> exposes[2] = {};
  base::NonAtomic<std::uint64_t> input_at[2] = {};
  base::NonAtomic<std::uint64_t> output_at[2] = {};
  // For each chunk of the rank: 1 if peers may claim its cache lines, see Stager. The rank writes
  // it before `staged`.
  base::NonAtomic<std::uint8_t> claimable[2 * kChunks] = {};
  alignas(control::kApart) base::Atomic<std::uint64_t> reduced{0};
  alignas(control::kApart) base::Atomic<std::uint64_t> done{0};
  alignas(control::kApart) TicketWord exposed{0};
  alignas(control::kApart) TicketWord copying{0};
};

// One rank's view of the group's memory. A resource, used by one thread at a time.
class ShmGroup {
 public:
  // `has_seconds`: each rank has second slots.
  static std::size_t bytes(int size, bool has_seconds);
  ShmGroup(control::GroupControl& control,
           engine::Consistency& consistency,
           std::byte* memory,
           const engine::GroupFacts& facts,
           bool has_seconds);

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  // Returns whether some ranks share a processor. Each wait for a peer may then cost a context
  // switch. All ranks get the same answer.
  bool is_crowded() const noexcept { return is_crowded_; }
  // Returns how often this rank polls the slots of peers [first, last) before it starts a more
  // expensive wait. Call it after peer `first` was found missing. So many polls take about as long
  // as the transfer of a cache line. Returns 0 if a missing peer may need this processor.
  int eager_polls(int first, int last, const engine::Call& call, SlotKind kind) const noexcept {
    if (spins_) return kEagerPolls;
    for (int peer = first; peer < last; ++peer) {
      if (peer != rank_ && control_.was_beside(peer) && !posted(peer, call, kind)) return 0;
    }
    return kCrowdedPolls;
  }
  // Returns the number of polls without regard to which peers are missing.
  int eager_polls() const noexcept { return spins_ ? kEagerPolls : kCrowdedPolls; }

  // Return scratch memory for the current call: for each rank a pointer to read from and a pointer
  // to write to, and a block of kBlockBytes bytes.
  const void** sources() noexcept { return sources_.data(); }
  void** outs() noexcept { return outs_.data(); }
  std::byte* block() noexcept { return block_; }
  // Returns the timings of arrays of about `bytes` bytes.
  LongStores& long_stores(std::size_t bytes) noexcept {
    const auto doubled = static_cast<std::size_t>(std::bit_width(bytes / Stager::kReducedFrom));
    return long_stores_[std::min(doubled, long_stores_.size() - 1)];
  }
  Stager& stager(Readers readers) noexcept {
    return readers == Readers::kOne ? for_one_ : for_several_;
  }
  // Returns the kernel for the call's dtype and op. The most recent kernel is cached.
  core::ReduceKernel kernel(const engine::Call& call, core::Stores stores) {
    const auto& s = call.signature;
    const auto wanted = KernelKey{s.dtype, s.op, stores};
    if (kernel_ == nullptr || !(wanted == kernel_key_)) {
      kernel_ = core::reduce_kernel(s.dtype, s.op, stores);
      kernel_key_ = wanted;
    }
    return kernel_;
  }

  static constexpr int kStepBits = 24;
  static constexpr std::uint64_t word(std::uint64_t sequence, std::uint64_t step) noexcept {
    return sequence << kStepBits | step;
  }
  static constexpr std::uint64_t sequence_of(std::uint64_t word) noexcept {
    return word >> kStepBits;
  }

  // Return the slot of a rank, and the data in it.
  SlotHead& slot(int rank, std::uint64_t sequence, SlotKind kind) const noexcept {
    RankSlots& slots = slots_[rank];
    switch (kind) {
      case SlotKind::kBrief:
        return slots.brief[sequence % slots_of(SlotKind::kBrief)];
      case SlotKind::kWide:
        return slots.wide[sequence % slots_of(SlotKind::kWide)];
      case SlotKind::kBriefRooted:
        return slots.brief_rooted[sequence % slots_of(SlotKind::kBriefRooted)];
      case SlotKind::kMiddleRooted:
        return slots.middle_rooted[sequence % slots_of(SlotKind::kMiddleRooted)];
      case SlotKind::kWideRooted:
        return slots.wide_rooted[sequence % slots_of(SlotKind::kWideRooted)];
      case SlotKind::kLong:
        break;
    }
    return slots.long_heads[sequence % slots_of(SlotKind::kLong)];
  }
  std::byte* data(int rank, std::uint64_t sequence, SlotKind kind) const noexcept {
    if (kind == SlotKind::kLong) {
      constexpr std::uint64_t kOfAParity = slots_of(SlotKind::kLong) / 2;
      return chunk(rank, sequence, 0) + sequence / 2 % kOfAParity * kLongBytes;
    }
    return reinterpret_cast<std::byte*>(&slot(rank, sequence, kind) + 1);
  }
  std::byte* chunk(int rank, std::uint64_t sequence, std::uint64_t step) const noexcept {
    const std::size_t index =
        2 * kChunks * static_cast<std::size_t>(rank) + chunk_index(sequence, step);
    return chunks_ + index * chunk_room_;
  }
  // Returns a peer's chunk. The peer must have `staged` it.
  Staged staged_chunk(int peer, std::uint64_t sequence, std::uint64_t step) const noexcept {
    return {{chunk(peer, sequence, step), chunk_room_},
            words_[peer].claimable[chunk_index(sequence, step)] != 0};
  }

  // Return whether this rank may write for `call`, by the rule at the head of this file. The first
  // form is for its slot of `kind`, the second for all its memory except slots. A call waits for
  // the permission before it writes.
  bool may_write(const engine::Call& call, SlotKind kind) noexcept {
    if (kind != SlotKind::kLong) return has_room(call, slots_of(kind));
    return has_room(call, std::min(slots_of(kind), call.sequence - chunked_));
  }
  bool may_write(const engine::Call& call) noexcept { return has_room(call, 2); }
  // Records that every peer has begun `call`.
  void saw_everybody(const engine::Call& call) noexcept { floor_ = call.sequence; }

  // `post` announces this rank's data in its slot. `has_posted` returns whether this rank has
  // posted its slot for `call`.
  bool has_posted(const engine::Call& call) const noexcept { return posted_ == call.sequence; }
  void post(const engine::Call& call, SlotKind kind) noexcept {
    posted_ = call.sequence;
    announce(slot(rank_, call.sequence, kind), call);
  }
  bool posted(int peer, const engine::Call& call, SlotKind kind) const noexcept {
    return slot(peer, call.sequence, kind).flag.load(std::memory_order_acquire) == call.sequence;
  }
  // Throws if the peer made a different call. The peer must have `posted`.
  void check_slot(int peer, const engine::Call& call, SlotKind kind) {
    check(slot(peer, call.sequence, kind), peer, call);
  }

  // The functions for a rank's second slots. They correspond to those for first slots above; see
  // small_among_many.cc.
  std::byte* second_data(int rank, std::uint64_t sequence, SlotKind kind) const noexcept {
    return data(size_ + rank, sequence, kind);
  }
  bool has_posted_second(const engine::Call& call) const noexcept {
    return posted_second_ == call.sequence;
  }
  void post_second(const engine::Call& call, SlotKind kind) noexcept {
    posted_second_ = call.sequence;
    announce(slot(size_ + rank_, call.sequence, kind), call);
  }
  bool posted_second(int peer, const engine::Call& call, SlotKind kind) const noexcept {
    return posted(size_ + peer, call, kind);
  }
  void check_second_slot(int peer, const engine::Call& call, SlotKind kind) {
    check(slot(size_ + peer, call.sequence, kind), peer, call);
  }

  // Prepares this rank's words for a call through chunks. Call it before the first `stage`.
  void begin_staging(const engine::Call& call) noexcept {
    words_[rank_].fingerprint[call.sequence & 1] = call.fingerprint;
    words_[rank_].exposes[call.sequence & 1] = 0;
    chunked_ = call.sequence;
  }
  // Prepares them for a call on symmetric arrays, which peers read directly.
  void begin_sharing(const engine::Call& call) noexcept {
    begin_staging(call);
    const auto& host = control_.host();
    RankWords& own = words_[rank_];
    if (host.memory.contains(call.in)) own.in[call.sequence & 1] = host.memory.offset_of(call.in);
    if (host.memory.contains(call.out))
      own.out[call.sequence & 1] = host.memory.offset_of(call.out);
  }
  // Return the symmetric input or output of `peer`, `bytes` bytes long. `staged` must have returned
  // true for the peer, and `check_staged` must have succeeded.
  std::byte* peer_in(int peer, const engine::Call& call, std::size_t bytes) const {
    return control_.host().memory.at(words_[peer].in[call.sequence & 1], bytes);
  }
  std::byte* peer_out(int peer, const engine::Call& call, std::size_t bytes) const {
    return control_.host().memory.at(words_[peer].out[call.sequence & 1], bytes);
  }
  // Announces that this rank has filled its first `chunks` chunks of the call. `claimable` is for
  // the last of them.
  void stage(const engine::Call& call, std::uint64_t chunks, bool claimable = false) noexcept {
    words_[rank_].claimable[chunk_index(call.sequence, chunks - 1)] = claimable ? 1 : 0;
    words_[rank_].staged.store(word(call.sequence, chunks), std::memory_order_release);
    control_.ring_peers();
  }
  bool staged(int peer, const engine::Call& call, std::uint64_t chunks) const noexcept {
    return words_[peer].staged.load(std::memory_order_acquire) >= word(call.sequence, chunks);
  }
  void check_staged(int peer, const engine::Call& call) {
    if (words_[peer].fingerprint[call.sequence & 1] != call.fingerprint) {
      consistency_.confirm(peer, call.sequence);
    }
  }
  // Exposes `array` to readers instead of staging it. The rank then tells its peers by `stage` with
  // 1 chunk. Before it does, `set_part` stores which part of the array each peer may read. The
  // destructor of the call's Exposing object ends the exposure.
  void expose(const engine::Call& call, const void* array) noexcept {
    also_exposes(call, RankWords::kInput);
    words_[rank_].input_at[call.sequence & 1] = reinterpret_cast<std::uintptr_t>(array);
    words_[rank_].exposed.store(call.sequence, std::memory_order_relaxed);
  }
  // Exposes an output in the same way. Peers write to the array.
  void expose_output(const engine::Call& call, void* array) noexcept {
    also_exposes(call, RankWords::kOutput);
    words_[rank_].output_at[call.sequence & 1] = reinterpret_cast<std::uintptr_t>(array);
    words_[rank_].exposed.store(call.sequence, std::memory_order_relaxed);
  }
  void set_part(const engine::Call& call, int reader, const engine::Part& part) const noexcept {
    base::copy_plain(part_at(rank_, call, reader), &part, sizeof part);
  }
  // Returns the array that `peer` exposes, or nothing if the peer stages its data. `staged` must
  // have returned true for the peer, and `check_staged` must have succeeded.
  std::optional<ExposedArray> exposed(int peer, const engine::Call& call) const noexcept {
    return exposed(peer, call, RankWords::kInput, words_[peer].input_at);
  }
  // Returns the output that `peer` exposes, under the same conditions.
  std::optional<ExposedArray> exposed_output(int peer, const engine::Call& call) const noexcept {
    return exposed(peer, call, RankWords::kOutput, words_[peer].output_at);
  }
  // Returns the part of the peer's exposed input that is for this rank.
  engine::Part exposed_part(int peer, const engine::Call& call) const noexcept {
    engine::Part part;
    base::copy_plain(&part, part_at(peer, call, rank_), sizeof part);
    return part;
  }
  // See read_exposed.
  int read(const ExposedArray& array,
           void* to,
           std::size_t offset,
           std::size_t bytes) const noexcept {
    return read_exposed(
        control_, array, words_[rank_].copying, mark_of(array.owner), to, offset, bytes);
  }
  // See write_exposed.
  int write(const ExposedArray& array,
            const void* from,
            std::size_t offset,
            std::size_t bytes) const noexcept {
    return write_exposed(
        control_, array, words_[rank_].copying, mark_of(array.owner), from, offset, bytes);
  }
  // Withdraws this rank's exposed arrays, if any. Peers no longer copy from or to them when this
  // returns; see withdraw in exposure.h.
  void end_exposing() const noexcept;
  // Returns whether ranks of this host may read exposed arrays: never, where it is faster, or
  // always.
  base::SingleCopy single_copy() const noexcept {
    return control_.host().peer_memory.single_copy();
  }
  // Returns whether ranks of this host may also write to exposed arrays.
  bool may_write_arrays() const noexcept { return control_.host().peer_memory.may_write(); }

  void reduced(const engine::Call& call, std::uint64_t chunks) noexcept {
    words_[rank_].reduced.store(word(call.sequence, chunks), std::memory_order_release);
    control_.ring_peers();
  }
  bool is_reduced(int peer, const engine::Call& call, std::uint64_t chunks) const noexcept {
    return words_[peer].reduced.load(std::memory_order_acquire) >= word(call.sequence, chunks);
  }

  static constexpr std::uint64_t kAllChunks = (std::uint64_t{1} << kStepBits) - 1;
  void done(const engine::Call& call, std::uint64_t chunks) noexcept {
    words_[rank_].done.store(word(call.sequence, chunks), std::memory_order_release);
    control_.ring_peers();
  }
  // Returns whether every peer has read the first `chunks` chunks of the call.
  bool all_done(const engine::Call& call, std::uint64_t chunks) noexcept {
    return all_reached(word(call.sequence, chunks));
  }
  // Returns whether one peer has read the first `chunks` chunks of the call.
  bool has_done(int peer, const engine::Call& call, std::uint64_t chunks) const noexcept {
    return words_[peer].done.load(std::memory_order_acquire) >= word(call.sequence, chunks);
  }
  // Announces that this rank has finished a call and needs none of its memory any more.
  void finish(std::uint64_t sequence) noexcept {
    words_[rank_].done.store(word(sequence + 1, 0), std::memory_order_release);
    control_.ring_peers();
  }

 private:
  static constexpr int kEagerPolls = 500;
  static constexpr int kCrowdedPolls = 60;
  struct KernelKey {
    DType dtype{};
    ReduceOp op{};
    core::Stores stores{};
    bool operator==(const KernelKey&) const = default;
  };
  void announce(SlotHead& own, const engine::Call& call) noexcept {
    own.fingerprint = call.fingerprint;
    own.flag.store(call.sequence, std::memory_order_release);  // pairs with posted
    control_.ring_peers();
  }
  void check(const SlotHead& head, int peer, const engine::Call& call) {
    if (head.fingerprint != call.fingerprint) consistency_.confirm(peer, call.sequence);
  }
  void also_exposes(const engine::Call& call, std::uint8_t which) noexcept {
    base::NonAtomic<std::uint8_t>& exposes = words_[rank_].exposes[call.sequence & 1];
    const std::uint8_t before = exposes;
    exposes = static_cast<std::uint8_t>(before | which);
  }
  // Returns the value of `copying` while a rank copies from or to an array of `owner`.
  static constexpr std::uint64_t mark_of(int owner) noexcept {
    return 1 + static_cast<std::uint64_t>(owner);
  }
  std::optional<ExposedArray> exposed(
      int peer,
      const engine::Call& call,
      std::uint8_t which,
      const base::NonAtomic<std::uint64_t> (&at)[2]) const noexcept {
    if ((words_[peer].exposes[call.sequence & 1] & which) == 0) return std::nullopt;
    const std::uint64_t address = at[call.sequence & 1];
    return ExposedArray{peer,
                        reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address)),
                        &words_[peer].exposed,
                        call.sequence};
  }
  std::byte* part_at(int owner, const engine::Call& call, int reader) const noexcept {
    return chunk(owner, call.sequence, 0) + sizeof(engine::Part) * static_cast<std::size_t>(reader);
  }
  // Returns the index of a chunk among the chunks of its rank.
  static std::size_t chunk_index(std::uint64_t sequence, std::uint64_t step) noexcept {
    return (sequence & 1) * kChunks + step % kChunks;
  }
  // Returns whether every peer has finished the call whose number is `places` less.
  bool has_room(const engine::Call& call, std::uint64_t places) noexcept {
    if (floor_ + places <= call.sequence) raise_floor();
    return floor_ + places > call.sequence;
  }
  void raise_floor() noexcept {
    std::uint64_t least = ~std::uint64_t{0};
    for (int i = 0; i < size_; ++i) {
      if (i != rank_) least = std::min(least, words_[i].done.load(std::memory_order_acquire));
    }
    floor_ = std::max(floor_, sequence_of(least));
  }
  bool all_reached(std::uint64_t target) noexcept {
    for (int i = 0; i < size_; ++i) {
      if (i != rank_ && words_[i].done.load(std::memory_order_acquire) < target) return false;
    }
    return true;
  }

  control::GroupControl& control_;
  engine::Consistency& consistency_;
  int rank_;
  int size_;
  bool spins_;  // this rank has a processor of its own
  bool is_crowded_ = false;
  // Every peer has finished all calls with a smaller sequence number.
  std::uint64_t floor_ = 1;
  std::uint64_t chunked_ = 0;        // the last call in which this rank may have filled its chunks
  std::uint64_t posted_ = 0;         // the last call for which this rank posted its first slot
  std::uint64_t posted_second_ = 0;  // the last call for which it posted its second slot
  RankWords* words_;
  RankSlots* slots_;
  std::byte* chunks_;
  std::size_t chunk_room_;
  std::vector<const void*> sources_;
  std::vector<void*> outs_;
  alignas(control::kCacheLine) std::byte block_[kBlockBytes];
  Stager for_one_;
  Stager for_several_;
  std::array<LongStores, 8> long_stores_;  // by length of the array
  KernelKey kernel_key_;
  core::ReduceKernel kernel_ = nullptr;
};

// Guards the arrays that a rank exposes in a call. The destructor withdraws them: peers may read
// and write the arrays until it returns. Create it after the call's CallScope, so that its
// destructor runs first.
class Exposing {
 public:
  explicit Exposing(const ShmGroup& group) noexcept : group_(group) {}
  Exposing(const Exposing&) = delete;
  Exposing& operator=(const Exposing&) = delete;
  ~Exposing() { group_.end_exposing(); }

 private:
  const ShmGroup& group_;
};

// The lifetime of a call on the group. The destructor reports that this rank has finished the call,
// even after an error, so that peers may reuse the memory.
class CallScope {
 public:
  CallScope(ShmGroup& group, const engine::Call& call) noexcept
      : group_(group), sequence_(call.sequence) {}
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;
  ~CallScope() { group_.finish(sequence_); }

 private:
  ShmGroup& group_;
  std::uint64_t sequence_;
};

}  // namespace hocket::engines::shm
