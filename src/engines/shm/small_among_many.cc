// Reductions of a few KiB among many ranks. In small.cc every rank reads the slots of all other
// ranks, one after the other. Here some ranks first combine or collect the data of others, and
// leave the result in their second slots. So each rank reads fewer slots. All reductions combine
// the data in ascending rank order.
#include "engines/shm/collectives.h"
#include "engines/shm/exchange.h"
#include "foundation/base/relax.h"
#include "foundation/core/averages.h"

namespace hocket::engines::shm {

using engine::Call;
using engine::Kind;
using engine::Signature;
using engine::Task;
using engine::until;

namespace {

constexpr int kNobody = -1;

// One rank's slots in a call. The base of InRows, InParts and Collected, the three algorithms of
// this file.
class SlotsOfCall {
 protected:
  SlotsOfCall(ShmGroup& group, const Call& call)
      : group_(group),
        call_(call),
        kind_(slot_kind_of(bytes(), call.signature.kind != Kind::kAllReduce)) {}

  std::size_t bytes() const { return bytes_of(call_.signature); }
  int rank() const { return group_.rank(); }
  std::byte* first(int of) const { return group_.data(of, call_.sequence, kind_); }
  std::byte* second(int of) const { return group_.second_data(of, call_.sequence, kind_); }

  bool may_write() { return group_.may_write(call_, kind_); }
  // Post this rank's first or second slot, unless an earlier attempt has posted the slot already.
  void post_first() {
    if (group_.has_posted(call_)) return;
    base::copy_plain(first(rank()), call_.in, bytes());
    group_.post(call_, kind_);
  }
  template <typename Fill>
  void post_second(const Fill& fill) {
    if (group_.has_posted_second(call_)) return;
    fill(second(rank()));
    group_.post_second(call_, kind_);
  }
  // Return whether a peer has posted its first or second slot. If it has, compare the peer's call
  // with this rank's call, and throw if they differ.
  bool has_first(int peer) {
    if (!group_.posted(peer, call_, kind_)) return false;
    group_.check_slot(peer, call_, kind_);
    return true;
  }
  bool has_second(int peer) {
    if (!group_.posted_second(peer, call_, kind_)) return false;
    group_.check_second_slot(peer, call_, kind_);
    return true;
  }
  // Combines the first `sources` entries of group_.sources() into `out`.
  void reduce(void* out, int sources, std::size_t count) {
    group_.kernel(call_, core::Stores::kCached)(&out, 1, group_.sources(), sources, count, sources);
  }

  ShmGroup& group_;
  const Call& call_;
  SlotKind kind_;
};

// A prefix reduction along a chain of rows:
//
//   row 0    0   1   2  [3]
//   row 1    4   5   6  [7]
//   row 2    8  [9]
//
// A rank posts its data in its first slot, for the later ranks of its row. The last rank of a row,
// in brackets, leads the row. In its second slot it posts the combined data of all ranks up to
// itself. A rank combines the second slot of the previous row's leader with the data of its row.
class InRows : SlotsOfCall {
 public:
  InRows(ShmGroup& group, const Call& call, const ManyRanks& many)
      : SlotsOfCall(group, call),
        row_(rank() / many.scan_width * many.scan_width),
        next_(row_),
        leads_(rank() + 1 == row_ + many.scan_width),
        is_last_(rank() + 1 == group.size()) {}

  // Does all steps for which the peers' data is there. Returns true when the call is complete.
  bool advance() {
    if (!has_begun_) {
      if (!is_last_ && !may_write()) return false;
      if (!is_last_ && !leads_) post_first();
      has_begun_ = true;
    }
    for (; next_ < rank(); ++next_) {
      if (!has_first(next_)) return false;
    }
    if (row_ > 0 && !has_second(row_ - 1)) {
      fetch_row();
      return false;
    }
    combine();
    return true;
  }
  int moves() const { return next_; }

 private:
  // Prefetches the row's data into this core's caches while the previous rows are combined.
  void fetch_row() {
    for (; fetched_ < rank(); ++fetched_) {
      for (std::size_t at = 0; at < bytes(); at += control::kCacheLine) {
        __builtin_prefetch(first(fetched_) + at);
      }
    }
  }
  // Posts the combined data of all ranks up to this one if this rank leads a row. Then computes
  // this rank's result. In an exscan the result excludes this rank's own data.
  void combine() {
    int sources = 0;
    if (row_ > 0) group_.sources()[sources++] = second(row_ - 1);
    for (int i = row_; i < rank(); ++i) group_.sources()[sources++] = first(i);
    group_.sources()[sources] = call_.in;
    const std::size_t count = call_.signature.count;
    if (is_last_) {
      group_.saw_everybody(call_);
    } else if (leads_) {
      post_second([&](std::byte* to) { reduce(to, sources + 1, count); });
    }
    if (call_.signature.kind != Kind::kExscan) ++sources;
    if (sources != 0) reduce(call_.out, sources, count);
  }

  int row_;   // the first rank of this rank's row
  int next_;  // the rank of the row that this rank waits for next
  bool leads_;
  bool is_last_;
  bool has_begun_ = false;
  int fetched_ = row_;
};

// An all_reduce, or a reduce to a root, by parts. The array is divided into parts. Each helper, a
// rank that has a part, combines this part of all ranks' data and leaves it in its second slot. The
// ranks that need the result copy the parts from the helpers' second slots.
//
//              part 0        part 1        part 2
//   helper     rank h        rank h + 1    rank h + 2     h = first_helper_
class InParts : SlotsOfCall {
 public:
  InParts(ShmGroup& group, const Call& call, const ManyRanks& many)
      : SlotsOfCall(group, call),
        takes_(receives(group, call)),
        first_helper_(is_reduce() ? (call.signature.root + 1) % group.size() : 0),
        part_bytes_(part_bytes(is_reduce() ? many.reduce_part : kLeastPart)) {}

  bool advance() {
    if (!has_begun_) {
      if (!may_write()) return false;
      post_first();
      has_begun_ = true;
    }
    const StepRange own = part_of(rank());
    if (own.length != 0 && !has_combined_) {
      for (; met_ < group_.size(); ++met_) {
        if (!has_first(peer(met_))) return false;
      }
      post_second([&](std::byte* to) { combine(to, own); });
      has_combined_ = true;
    }
    while (takes_ && taken_ < group_.size()) {
      const int from = peer(taken_);
      const StepRange part = part_of(from);
      if (part.length != 0) {
        if (from != rank() && !has_second(from)) return false;
        base::copy_plain(
            static_cast<std::byte*>(call_.out) + part.first, second(from), part.length);
      }
      ++taken_;
    }
    // A helper has seen the first slots of all ranks. A rank that took a part knows that the helper
    // has seen the first slots of all ranks.
    if (takes_ || own.length != 0) group_.saw_everybody(call_);
    return true;
  }
  int moves() const { return met_ + taken_; }

 private:
  // One cache line holds the head of a slot and the first 48 bytes of its data.
  static constexpr std::size_t kLeastPart = 48;

  bool is_reduce() const { return call_.signature.kind == Kind::kReduce; }
  std::size_t part_bytes(std::size_t least) const {
    constexpr std::size_t kAligned = 16;  // the alignment of the largest element
    const auto n = static_cast<std::size_t>(group_.size());
    return std::max(least, ((bytes() + n - 1) / n + kAligned - 1) / kAligned * kAligned);
  }
  // Returns the rank that this rank reads in position i. Each rank begins with itself, so that the
  // ranks do not all read the same slot at the same time.
  int peer(int i) const { return (rank() + i) % group_.size(); }
  StepRange part_of(int of) const {
    const int number = (of - first_helper_ + group_.size()) % group_.size();
    return range_of(static_cast<std::uint64_t>(number), part_bytes_, bytes());
  }
  void combine(std::byte* to, const StepRange& part) {
    for (int i = 0; i < group_.size(); ++i) {
      const std::byte* data = i == rank() ? static_cast<const std::byte*>(call_.in) : first(i);
      group_.sources()[i] = data + part.first;
    }
    reduce(to, group_.size(), part.length / size_of(call_.signature.dtype));
  }

  bool takes_;
  int first_helper_;
  std::size_t part_bytes_;
  bool has_begun_ = false;
  bool has_combined_ = false;
  int met_ = 1;    // ranks whose first slots this rank has seen, including itself
  int taken_ = 0;  // ranks whose parts this rank has copied
};

// A reduce of a few elements to a root. The ranks form rows of kWidth. The last rank of each row
// leads it: it copies the data of the row, not combined, into its second slot. The root combines
// the data of all ranks. It reads the first slots of its own row directly.
class Collected : SlotsOfCall {
 public:
  Collected(ShmGroup& group, const Call& call, const ManyRanks&)
      : SlotsOfCall(group, call), row_(first_of(rank())), next_(row_) {}

  bool advance() {
    const bool is_root = rank() == root();
    const bool collects = !is_root && row_ != first_of(root()) && rank() == leader_of(row_);
    if (!is_root && !has_begun_) {
      if (!may_write()) return false;
      if (!collects) post_first();
      has_begun_ = true;
    }
    if (!is_root && !collects) return true;
    for (const int last = leader_of(row_); next_ <= last; ++next_) {
      if (next_ != rank() && !has_first(next_)) return false;
    }
    if (collects) {
      post_second([&](std::byte* to) { collect(to); });
      return true;
    }
    for (; rows_ < group_.size(); rows_ += kWidth) {
      if (rows_ != row_ && !has_second(leader_of(rows_))) return false;
    }
    for (int i = 0; i < group_.size(); ++i) group_.sources()[i] = data_of(i);
    reduce(call_.out, group_.size(), call_.signature.count);
    group_.saw_everybody(call_);
    return true;
  }
  int moves() const { return next_ + rows_; }

  static bool fits(std::size_t bytes) { return bytes * kWidth <= kBriefBytes; }

 private:
  static constexpr int kWidth = 8;  // ranks in a row

  int root() const { return call_.signature.root; }
  static int first_of(int rank) { return rank / kWidth * kWidth; }
  int leader_of(int row) const { return std::min(row + kWidth, group_.size()) - 1; }
  void collect(std::byte* to) const {
    for (int i = row_; i < rank(); ++i, to += bytes()) base::copy_plain(to, first(i), bytes());
    base::copy_plain(to, call_.in, bytes());
  }
  const void* data_of(int of) const {
    if (of == rank()) return call_.in;
    const int row = first_of(of);
    if (row == row_) return first(of);
    return second(leader_of(row)) + static_cast<std::size_t>(of - row) * bytes();
  }

  int row_;       // the first rank of this rank's row
  int next_;      // the rank of the row that this rank waits for next
  int rows_ = 0;  // the first rank of the row whose leader the root waits for next
  bool has_begun_ = false;
};

template <typename Part>
bool attempt(ShmGroup& group, const Call& call, const ManyRanks& many) {
  Part part(group, call, many);
  try {
    int polls = group.eager_polls();
    for (int moves = kNobody; !part.advance();) {
      if (std::exchange(moves, part.moves()) != part.moves()) polls = group.eager_polls();
      if (polls-- == 0) return false;
      base::relax();
    }
  } catch (...) {  // no CallScope does this, because no task follows
    group.finish(call.sequence);
    throw;
  }
  group.finish(call.sequence);
  return true;
}

template <typename Part>
Task run(ShmGroup& group, Call call, ManyRanks many) {
  const CallScope turn(group, call);
  Part part(group, call, many);
  co_await until([&] { return part.advance(); });
}

}  // namespace

SmallWay small_way_of(const Signature& s, int size, const ManyRanks& many) noexcept {
  const std::size_t bytes = bytes_of(s);
  const std::size_t total = bytes * static_cast<std::size_t>(size);
  const auto if_from = [](bool is_best, SmallWay way) { return is_best ? way : SmallWay::kAtOnce; };
  if (engine::is_prefix(s.kind)) {
    // A second slot holds elements of the array's dtype. So a partial result must not need more
    // precision, and must not be an average.
    const bool is_exact =
        s.op != ReduceOp::kAvg && core::accumulation_type(s.dtype, s.op) == s.dtype;
    return if_from(is_exact && size >= many.rows_ranks, SmallWay::kInRows);
  }
  if (s.kind == Kind::kAllReduce) {
    return if_from(size >= many.all_reduce_ranks && total >= many.all_reduce_total,
                   SmallWay::kInParts);
  }
  if (s.kind != Kind::kReduce) return SmallWay::kAtOnce;
  if (Collected::fits(bytes)) return if_from(size >= many.collected_ranks, SmallWay::kCollected);
  return if_from(size >= many.reduce_ranks && total >= many.reduce_total, SmallWay::kInParts);
}

bool attempt_among_many(ShmGroup& group, const Call& call, SmallWay way, const ManyRanks& many) {
  switch (way) {
    case SmallWay::kInRows:
      return attempt<InRows>(group, call, many);
    case SmallWay::kInParts:
      return attempt<InParts>(group, call, many);
    case SmallWay::kCollected:
      return attempt<Collected>(group, call, many);
    case SmallWay::kAtOnce:
      break;
  }
  return attempt_small(group, call);
}

Task small_among_many(ShmGroup& group, const Call& call, SmallWay way, const ManyRanks& many) {
  switch (way) {
    case SmallWay::kInRows:
      return run<InRows>(group, call, many);
    case SmallWay::kInParts:
      return run<InParts>(group, call, many);
    case SmallWay::kCollected:
      return run<Collected>(group, call, many);
    case SmallWay::kAtOnce:
      break;
  }
  return small(group, call);
}

}  // namespace hocket::engines::shm
