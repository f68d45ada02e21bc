// The table of all kinds of calls: one row for each. A row has the kind's name, whether it has a
// root, and what a rank gives and takes. No other file keeps a list of kinds for such questions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace hocket::engine {

enum class Kind : std::uint8_t {
  kNone,
  kBarrier,
  kBroadcast,
  kReduce,
  kAllReduce,
  kScan,
  kExscan,
  kReduceScatter,
  kAllGather,
  kGather,
  kScatter,
  kAllToAll,
  kReduceScatterV,
  kAllGatherV,
  kGatherV,
  kScatterV,
  kAllToAllV,
  kReproducibleSum,
  kNewGroup,
  kSplit,
  kIntraNode,
  kInterNode,
  kSymmetricAllocate,
  kNvshmemAllocate,
  kSymmetricFree,
  kNvshmemTeam,
  // Each of the kinds below is composed of calls of other kinds, and only these calls are recorded.
  // Texts about these calls use the name of the composed kind. So do refusals before the first of
  // them.
  kArgmin,
  kArgmax,
  kCompressedAllReduce,
  kHierarchicalAllReduce,
  kAllReduceCoalesced,
  kBroadcastCoalesced,
  kAllGatherCoalesced,
  kReduceScatterCoalesced,
  kFft,
  kMatmul,
  kBroadcastObject,
  kGatherObject,
  kAllGatherObject,
  kScatterObject,
  kSparseBroadcast,
  kSparseAllGather,
  kSparseGather,
  kSparseScatter,
  kSparseAllToAll,
  kSparseReduce,
  kSparseAllReduce,
  kSparseReduceScatter,
  kRedistribute,
  kHandOver,
  kSend,
  kRecv,
};
inline constexpr int kKindCount = static_cast<int>(Kind::kRecv) + 1;

// The part of hocket that carries a kind.
enum class Done : std::uint8_t {
  kByEngines,   // an engine that carries the kind
  kByCalls,     // calls of other kinds; this kind is only recorded and compared
  kByMessages,  // messages, outside the order of collectives
};

// The direction of the data.
enum class Flow : std::uint8_t { kAmongAll, kToRoot, kFromRoot, kBetweenTwo };

// The data that a rank gives or takes. Flow excludes some ranks: with kToRoot only the root takes
// data, and with kFromRoot only the root gives data.
enum class Has : std::uint8_t {
  kNothing,
  kCount,  // the whole array, of equal length on all ranks
  kShare,  // a single part
  kAll,    // a part for each rank
};

// The arrays that peers access directly if the arrays lie in the host's symmetric memory.
enum class Reach : std::uint8_t { kNone, kIn, kOut, kInAndOut };

// The ranks whose arrays are combined for rank r: all ranks, ranks 0 to r, or ranks 0 to r - 1.
// With kExclusive, rank 0 gets nothing.
enum class Prefix : std::uint8_t { kNone, kInclusive, kExclusive };

// A row of the table. A value.
struct KindRow {
  Kind kind = Kind::kNone;
  std::string_view name;
  Done done = Done::kByCalls;
  Flow flow = Flow::kAmongAll;
  Has gives = Has::kNothing;
  Has takes = Has::kNothing;
  bool reduces = false;   // engines combine the data of the ranks
  bool operates = false;  // it has an operator: it reduces, or is composed of calls that do
  bool typed = true;      // it has elements, with a type and a count
  Kind regular = kind;    // a v-form (parts of listed sizes) has here the kind with equal parts
  Reach reach = Reach::kNone;
  Prefix prefix = Prefix::kNone;
};

namespace detail {

constexpr KindRow reduction(Kind kind, std::string_view name, Flow flow, Has gives, Has takes) {
  return {.kind = kind,
          .name = name,
          .done = Done::kByEngines,
          .flow = flow,
          .gives = gives,
          .takes = takes,
          .reduces = true,
          .operates = true};
}
constexpr KindRow movement(Kind kind, std::string_view name, Flow flow, Has gives, Has takes) {
  return {.kind = kind,
          .name = name,
          .done = Done::kByEngines,
          .flow = flow,
          .gives = gives,
          .takes = takes};
}
// Returns the row of a kind that engines never see. Only its name is used.
constexpr KindRow composed(Kind kind, std::string_view name, bool typed) {
  return {.kind = kind, .name = name, .typed = typed};
}
constexpr KindRow with(KindRow row, Reach reach) {
  row.reach = reach;
  return row;
}
constexpr KindRow with(KindRow row, Prefix prefix) {
  row.prefix = prefix;
  return row;
}
constexpr KindRow listed(const KindRow& of, Kind kind, std::string_view name) {
  KindRow row = of;
  row.kind = kind;
  row.name = name;
  row.regular = of.kind;
  row.reach = Reach::kNone;
  return row;
}

constexpr std::array<KindRow, kKindCount> make_rows() {
  using enum Kind;
  using enum Flow;
  using enum Has;
  constexpr KindRow kinds_reduce_scatter =
      reduction(kReduceScatter, "reduce_scatter", kAmongAll, kAll, kShare);
  constexpr KindRow kinds_all_gather = movement(kAllGather, "all_gather", kAmongAll, kShare, kAll);
  constexpr KindRow kinds_gather = movement(kGather, "gather", kToRoot, kShare, kAll);
  constexpr KindRow kinds_scatter = movement(kScatter, "scatter", kFromRoot, kAll, kShare);
  constexpr KindRow kinds_all_to_all = movement(kAllToAll, "all_to_all", kAmongAll, kAll, kAll);
  return {{
      composed(kNone, "call", false),
      {.kind = kBarrier, .name = "barrier", .done = Done::kByEngines, .typed = false},
      with(movement(kBroadcast, "broadcast", kFromRoot, kCount, kCount), Reach::kOut),
      with(reduction(kReduce, "reduce", kToRoot, kCount, kCount), Reach::kIn),
      with(reduction(kAllReduce, "all_reduce", kAmongAll, kCount, kCount), Reach::kInAndOut),
      with(reduction(kScan, "scan", kAmongAll, kCount, kCount), Prefix::kInclusive),
      with(reduction(kExscan, "exscan", kAmongAll, kCount, kCount), Prefix::kExclusive),
      with(kinds_reduce_scatter, Reach::kIn),
      with(kinds_all_gather, Reach::kIn),
      kinds_gather,
      kinds_scatter,
      with(kinds_all_to_all, Reach::kIn),
      listed(kinds_reduce_scatter, kReduceScatterV, "reduce_scatter_v"),
      listed(kinds_all_gather, kAllGatherV, "all_gather_v"),
      listed(kinds_gather, kGatherV, "gather_v"),
      listed(kinds_scatter, kScatterV, "scatter_v"),
      listed(kinds_all_to_all, kAllToAllV, "all_to_all_v"),
      {.kind = kReproducibleSum, .name = "reproducible_sum", .operates = true},
      composed(kNewGroup, "new_group", false),
      composed(kSplit, "split", false),
      composed(kIntraNode, "intra_node", false),
      composed(kInterNode, "inter_node", false),
      composed(kSymmetricAllocate, "symmetric.empty", true),
      composed(kNvshmemAllocate, "symmetric.empty", true),
      composed(kSymmetricFree, "symmetric.free", false),
      composed(kNvshmemTeam, "symmetric.nvshmem_team", false),
      composed(kArgmin, "argmin", false),
      composed(kArgmax, "argmax", false),
      composed(kCompressedAllReduce, "compressed_all_reduce", false),
      composed(kHierarchicalAllReduce, "hierarchical_all_reduce", false),
      composed(kAllReduceCoalesced, "all_reduce_coalesced", false),
      composed(kBroadcastCoalesced, "broadcast_coalesced", false),
      composed(kAllGatherCoalesced, "all_gather_coalesced", false),
      composed(kReduceScatterCoalesced, "reduce_scatter_coalesced", false),
      composed(kFft, "fft", false),
      composed(kMatmul, "matmul", false),
      composed(kBroadcastObject, "broadcast_object", false),
      composed(kGatherObject, "gather_object", false),
      composed(kAllGatherObject, "all_gather_object", false),
      composed(kScatterObject, "scatter_object", false),
      composed(kSparseBroadcast, "sparse.broadcast", false),
      composed(kSparseAllGather, "sparse.all_gather", false),
      composed(kSparseGather, "sparse.gather", false),
      composed(kSparseScatter, "sparse.scatter", false),
      composed(kSparseAllToAll, "sparse.all_to_all", false),
      composed(kSparseReduce, "sparse.reduce", false),
      composed(kSparseAllReduce, "sparse.all_reduce", false),
      composed(kSparseReduceScatter, "sparse.reduce_scatter", false),
      composed(kRedistribute, "redistribute", false),
      composed(kHandOver, "hand_over", false),
      {.kind = kSend,
       .name = "send",
       .done = Done::kByMessages,
       .flow = kBetweenTwo,
       .gives = kCount},
      {.kind = kRecv,
       .name = "recv",
       .done = Done::kByMessages,
       .flow = kBetweenTwo,
       .takes = kCount},
  }};
}

}  // namespace detail

inline constexpr std::array<KindRow, kKindCount> kKinds = detail::make_rows();
static_assert([] {
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    if (kKinds[i].kind != static_cast<Kind>(i)) return false;
  }
  return true;
}());

constexpr const KindRow& row_of(Kind kind) noexcept {
  return kKinds[static_cast<std::size_t>(kind)];
}

constexpr std::string_view name_of(Kind kind) noexcept { return row_of(kind).name; }
// Returns the first kind of this name; kNone if there is none.
constexpr Kind kind_named(std::string_view name) noexcept {
  for (const KindRow& row : kKinds) {
    if (row.name == name) return row.kind;
  }
  return Kind::kNone;
}
// Returns whether engines carry this kind.
constexpr bool is_carried(Kind kind) noexcept { return row_of(kind).done == Done::kByEngines; }
// Returns whether this is a v-form: the program lists the size of each part.
constexpr bool is_listed(Kind kind) noexcept { return row_of(kind).regular != kind; }
// Returns whether this kind has a root: one rank with a special role.
constexpr bool is_rooted(Kind kind) noexcept {
  const Flow flow = row_of(kind).flow;
  return flow == Flow::kToRoot || flow == Flow::kFromRoot;
}
// Returns whether engines combine the data of the ranks.
constexpr bool is_reduction(Kind kind) noexcept { return row_of(kind).reduces; }
// Returns whether rank r gets a combination of ranks 0 to r, or of ranks 0 to r - 1.
constexpr bool is_prefix(Kind kind) noexcept { return row_of(kind).prefix != Prefix::kNone; }
// Returns how many ranks, from rank 0 on, are combined into the result of `rank`. 0: it gets no
// result.
constexpr int combined(Kind kind, int rank, int size) noexcept {
  switch (row_of(kind).prefix) {
    case Prefix::kNone:
      return size;
    case Prefix::kInclusive:
      return rank + 1;
    case Prefix::kExclusive:
      return rank;
  }
  return size;
}
// Returns whether engines move data without combining it.
constexpr bool only_moves(Kind kind) noexcept {
  return is_carried(kind) && !is_reduction(kind) && row_of(kind).takes != Has::kNothing;
}
// Returns whether the arrays of all ranks correspond element by element. If so, all ranks must have
// the same order of axes.
constexpr bool takes_whole_arrays(Kind kind) noexcept {
  return row_of(kind).gives == Has::kCount || row_of(kind).takes == Has::kCount;
}
// Returns whether an array has a part for each rank.
constexpr bool has_parts(Kind kind) noexcept {
  return row_of(kind).gives == Has::kAll || row_of(kind).takes == Has::kAll;
}
// Returns whether each rank sends different data to each other rank.
constexpr bool swaps_parts(Kind kind) noexcept {
  return row_of(kind).gives == Has::kAll && row_of(kind).takes == Has::kAll;
}
// Returns whether this is a v-form in which every rank knows the sizes of all parts.
// Signature::count is then the sum of these sizes.
constexpr bool counts_parts(Kind kind) noexcept {
  return is_listed(kind) && !is_rooted(kind) && !swaps_parts(kind);
}
// Returns whether every rank takes data into an array of equal length that a peer may write. Scan
// and exscan are excluded, because each rank has a different result.
constexpr bool all_take_alike(Kind kind) noexcept {
  const KindRow& row = row_of(kind);
  return is_carried(kind) && !is_listed(kind) && !is_prefix(kind) && row.flow != Flow::kToRoot &&
         (row.takes == Has::kCount || row.takes == Has::kAll);
}
// Return what a rank gives and what it takes. In kinds without a root, `at_root` is true on rank 0,
// which takes nothing in an exscan.
constexpr Has given(Kind kind, bool at_root) noexcept {
  const KindRow& row = row_of(kind);
  return row.flow == Flow::kFromRoot && !at_root ? Has::kNothing : row.gives;
}
constexpr Has taken(Kind kind, bool at_root) noexcept {
  const KindRow& row = row_of(kind);
  if (row.prefix == Prefix::kExclusive && at_root) return Has::kNothing;
  return row.flow == Flow::kToRoot && !at_root ? Has::kNothing : row.takes;
}
// Return the kind with equal parts, and the v-form with listed parts.
constexpr Kind regular_of(Kind kind) noexcept { return row_of(kind).regular; }
constexpr Kind listed_of(Kind kind) noexcept {
  for (const KindRow& row : kKinds) {
    if (row.regular == kind && row.kind != kind) return row.kind;
  }
  return kind;
}

// A set of kinds. A value.
class KindSet {
 public:
  constexpr KindSet() noexcept = default;
  constexpr KindSet(std::initializer_list<Kind> kinds) noexcept {
    for (const Kind kind : kinds) bits_ |= bit(kind);
  }
  template <typename Condition>
  static constexpr KindSet where(const Condition& condition) noexcept {
    KindSet set;
    for (const KindRow& row : kKinds) {
      if (condition(row.kind)) set.bits_ |= bit(row.kind);
    }
    return set;
  }
  constexpr bool has(Kind kind) const noexcept { return (bits_ & bit(kind)) != 0; }
  constexpr KindSet operator|(const KindSet& other) const noexcept {
    KindSet both = *this;
    both.bits_ |= other.bits_;
    return both;
  }
  constexpr bool operator==(const KindSet&) const noexcept = default;

 private:
  static constexpr std::uint64_t bit(Kind kind) noexcept {
    return std::uint64_t{1} << static_cast<unsigned>(kind);
  }
  std::uint64_t bits_ = 0;
};
static_assert(kKindCount <= 64);

// A table with a value for some kinds, such as an engine's code for each kind that it carries. It
// has no entry for other kinds, so a new kind needs no change here. A value.
template <typename Value>
class KindTable {
 public:
  constexpr KindTable(std::initializer_list<std::pair<Kind, Value>> values) noexcept {
    for (const auto& [kind, value] : values) {
      values_[static_cast<std::size_t>(kind)] = value;
      has_[static_cast<std::size_t>(kind)] = true;
    }
  }
  constexpr KindSet kinds() const noexcept {
    return KindSet::where([this](Kind kind) { return has_[static_cast<std::size_t>(kind)]; });
  }
  // Returns the value of `kind`, which must be in the table.
  constexpr const Value& operator[](Kind kind) const noexcept {
    return values_[static_cast<std::size_t>(kind)];
  }

 private:
  std::array<Value, kKindCount> values_{};
  std::array<bool, kKindCount> has_{};
};

// The kinds that an engine can carry with the table's rows as the only description. Their data goes
// among all ranks, to the root or from the root, as arrays, shares or parts. A new kind that needs
// code of its own does not belong in this set.
inline constexpr KindSet kCommonKinds{Kind::kBarrier,
                                      Kind::kBroadcast,
                                      Kind::kReduce,
                                      Kind::kAllReduce,
                                      Kind::kReduceScatter,
                                      Kind::kAllGather,
                                      Kind::kGather,
                                      Kind::kScatter,
                                      Kind::kAllToAll,
                                      Kind::kReduceScatterV,
                                      Kind::kAllGatherV,
                                      Kind::kGatherV,
                                      Kind::kScatterV,
                                      Kind::kAllToAllV};

}  // namespace hocket::engine
