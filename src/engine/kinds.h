// What each collective is: one row a kind. Whoever wants to know what a kind's name is, whether it
// has a root, what a rank gives and takes, asks its row; nobody else keeps a list of kinds that
// answers such a question.
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
  // Made of calls of other kinds, which are recorded; these name what is refused before them.
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
  kSend,
  kRecv,
};
inline constexpr int kKindCount = static_cast<int>(Kind::kRecv) + 1;

// Who does it.
enum class Done : std::uint8_t {
  kByEngines,   // an engine that carries the kind
  kByCalls,     // calls of other kinds; only recorded and compared
  kByMessages,  // outside of the order of collectives
};

// Whose data go to whom.
enum class Flow : std::uint8_t { kAmongAll, kToRoot, kFromRoot, kBetweenTwo };

// What a rank has of an array. A rank that Flow leaves out has nothing of it: of what goes to the
// root the root alone takes, of what comes from the root it alone gives.
enum class Has : std::uint8_t {
  kNothing,
  kCount,  // the whole array, as long on all ranks
  kShare,  // a single part
  kAll,    // a part for each rank
};

// Which of its arrays peers reach where they lie, if these lie in the host's symmetric memory.
enum class Reach : std::uint8_t { kNone, kIn, kOut, kInAndOut };

// Whose arrays are combined for a rank: those of all, those up to its own, or those before it, of
// which rank 0 has none.
enum class Prefix : std::uint8_t { kNone, kInclusive, kExclusive };

// A value.
struct KindRow {
  Kind kind = Kind::kNone;
  std::string_view name;
  Done done = Done::kByCalls;
  Flow flow = Flow::kAmongAll;
  Has gives = Has::kNothing;
  Has takes = Has::kNothing;
  bool reduces = false;   // engines combine what the ranks bring
  bool operates = false;  // it has an operator: the above, and what is made of it
  bool typed = true;      // its elements have a type, and a number
  Kind regular = kind;    // of a v-form, whose parts are listed with their sizes: the form without
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
// One that no engine sees and that is told by its name.
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
// Whether engines carry it.
constexpr bool is_carried(Kind kind) noexcept { return row_of(kind).done == Done::kByEngines; }
// Whether it is a v-form, whose parts are listed with their sizes.
constexpr bool is_listed(Kind kind) noexcept { return row_of(kind).regular != kind; }
// Whether one rank, the root, has a part of its own in it.
constexpr bool is_rooted(Kind kind) noexcept {
  const Flow flow = row_of(kind).flow;
  return flow == Flow::kToRoot || flow == Flow::kFromRoot;
}
// Whether engines combine in it what the ranks bring.
constexpr bool is_reduction(Kind kind) noexcept { return row_of(kind).reduces; }
// Whether each rank takes what ranks up to itself, or before it, bring.
constexpr bool is_prefix(Kind kind) noexcept { return row_of(kind).prefix != Prefix::kNone; }
// Of how many ranks, from 0 on, `rank` of `size` takes what they bring, combined. 0: it takes
// nothing.
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
// Whether engines carry data in it, and combine none.
constexpr bool only_moves(Kind kind) noexcept {
  return is_carried(kind) && !is_reduction(kind) && row_of(kind).takes != Has::kNothing;
}
// Whether the arrays of the ranks correspond element by element, whatever their axes: then the
// order of these matters.
constexpr bool takes_whole_arrays(Kind kind) noexcept {
  return row_of(kind).gives == Has::kCount || row_of(kind).takes == Has::kCount;
}
// Whether an array has a part for each rank.
constexpr bool has_parts(Kind kind) noexcept {
  return row_of(kind).gives == Has::kAll || row_of(kind).takes == Has::kAll;
}
// Whether each rank sends each other something of its own.
constexpr bool swaps_parts(Kind kind) noexcept {
  return row_of(kind).gives == Has::kAll && row_of(kind).takes == Has::kAll;
}
// Whether it is a v-form of which all ranks know all sizes, so that the count is their sum.
constexpr bool counts_parts(Kind kind) noexcept {
  return is_listed(kind) && !is_rooted(kind) && !swaps_parts(kind);
}
// Whether every rank takes something into an array as long as that of all others, where a peer may
// write it: of prefixes each rank has its own.
constexpr bool all_take_alike(Kind kind) noexcept {
  const KindRow& row = row_of(kind);
  return is_carried(kind) && !is_listed(kind) && !is_prefix(kind) && row.flow != Flow::kToRoot &&
         (row.takes == Has::kCount || row.takes == Has::kAll);
}
// What a rank gives and takes. In kinds without a root, rank 0 is the root: it takes nothing of an
// exclusive prefix.
constexpr Has given(Kind kind, bool at_root) noexcept {
  const KindRow& row = row_of(kind);
  return row.flow == Flow::kFromRoot && !at_root ? Has::kNothing : row.gives;
}
constexpr Has taken(Kind kind, bool at_root) noexcept {
  const KindRow& row = row_of(kind);
  if (row.prefix == Prefix::kExclusive && at_root) return Has::kNothing;
  return row.flow == Flow::kToRoot && !at_root ? Has::kNothing : row.takes;
}
// The form without listed parts, or with.
constexpr Kind regular_of(Kind kind) noexcept { return row_of(kind).regular; }
constexpr Kind listed_of(Kind kind) noexcept {
  for (const KindRow& row : kKinds) {
    if (row.regular == kind && row.kind != kind) return row.kind;
  }
  return kind;
}

// Some of the kinds. A value.
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

// Something for each of some kinds: an engine's code for what it carries. Those that are not
// listed it has not; a kind that is new changes nothing. A value.
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
  // Of a kind that it has.
  constexpr const Value& operator[](Kind kind) const noexcept {
    return values_[static_cast<std::size_t>(kind)];
  }

 private:
  std::array<Value, kKindCount> values_{};
  std::array<bool, kKindCount> has_{};
};

// Those that engines of before know by their rows alone: data go among all, to the root or from it,
// as arrays, shares or parts. One that is new and that needs code of its own is not among these.
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
