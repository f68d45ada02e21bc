// A sum whose bits depend only on the shards.
//
// A binary tree stands over the shard numbers 0..S-1. Node (level, i) covers the shards [i *
// 2^level, (i + 1) * 2^level). Its value is the sum of its two children, or the left child if the
// right one covers no shard.
//
//   level 2         (2,0)
//   level 1     (1,0)   (1,1)
//   level 0     0   1   2   3      shards
//
// A rank computes the largest nodes that lie within its shards. So every node is computed from the
// same operands in the same order, on any rank. Then each rank gets its slice of the elements of
// all these nodes, adds the rest of the tree, and rounds. Finally the slices are gathered.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <type_traits>

#include "calls/device/host_copies.h"
#include "calls/world/communicator_impl.h"
#include "foundation/core/averages.h"
#include "hocket/error.h"

namespace hocket {

using engine::Kind;
using engine::Signature;
using world::CommunicatorImpl;

namespace {

struct Node {
  int level;
  std::uint64_t index;
  std::uint64_t first() const { return index << level; }
  std::uint64_t end(std::uint64_t shards) const { return std::min(shards, (index + 1) << level); }
};

// Finds the largest nodes within the shards [first, end) of `shards`, from left to right.
void cover(Node node,
           std::uint64_t first,
           std::uint64_t end,
           std::uint64_t shards,
           std::vector<Node>& found) {
  const std::uint64_t a = node.first();
  const std::uint64_t b = node.end(shards);
  if (a >= b || b <= first || a >= end) return;
  if (a >= first && b <= end) {
    found.push_back(node);
    return;
  }
  cover({node.level - 1, node.index * 2}, first, end, shards, found);
  cover({node.level - 1, node.index * 2 + 1}, first, end, shards, found);
}

Node whole_tree(std::uint64_t shards) {
  return {static_cast<int>(std::bit_width(std::max<std::uint64_t>(1, shards) - 1)), 0};
}

// Rows of `count` elements of the accumulation type.
class Rows {
 public:
  Rows(std::size_t rows, std::size_t count, DType type)
      : row_bytes_(count * size_of(type)), bytes_(rows * row_bytes_) {}
  std::byte* row(std::size_t i) { return bytes_.data() + i * row_bytes_; }

 private:
  std::size_t row_bytes_;
  std::vector<std::byte> bytes_;
};

// Computes nodes from a function that knows the leaves.
class Tree {
 public:
  Tree(std::uint64_t shards, std::size_t count, DType type)
      : shards_(shards), count_(count), type_(type) {}

  // Writes the value of `node` to `out`. `leaf(node, out)` writes the value of a node that it
  // knows, and then returns true.
  template <typename Leaf>
  void sum(Node node, std::byte* out, const Leaf& leaf) const {
    if (leaf(node, out)) return;
    const Node left{node.level - 1, node.index * 2};
    const Node right{node.level - 1, node.index * 2 + 1};
    sum(left, out, leaf);
    if (right.first() >= shards_) return;
    std::vector<std::byte> other(count_ * size_of(type_));
    sum(right, other.data(), leaf);
    core::add(out, out, other.data(), count_, type_);
  }

 private:
  std::uint64_t shards_;
  std::size_t count_;
  DType type_;
};

// The elements [first, first + count) of `total` that belong to `rank`.
struct Slice {
  std::size_t first;
  std::size_t count;
};
Slice slice_of(int rank, int size, std::size_t total) {
  const auto n = static_cast<std::size_t>(size);
  const std::size_t each = (total + n - 1) / n;
  const std::size_t first = std::min(total, static_cast<std::size_t>(rank) * each);
  return {first, std::min(each, total - first)};
}

// Makes all NaNs equal. The NaN that a sum gives depends on the order of its terms and on the
// infinities in it.
template <typename T>
void make_nans_alike(std::vector<std::byte>& sums) {
  for (std::size_t at = 0; at + sizeof(T) <= sums.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, sums.data() + at, sizeof(T));
    if (!std::isnan(value)) continue;
    value = std::numeric_limits<T>::quiet_NaN();
    std::memcpy(sums.data() + at, &value, sizeof(T));
  }
}

// One reproducible sum of one rank.
class ReproducibleSum {
 public:
  ReproducibleSum(world::CommunicatorImpl& impl,
                  ConstArrayView shards,
                  ArrayView out,
                  const ReduceOptions& options)
      : impl_(impl),
        in_(shards),
        out_(out),
        options_(options),
        type_(core::accumulation_type(out.dtype(), options.op)),
        shown_{.kind = Kind::kReproducibleSum,
               .dtype = out.dtype(),
               .op = options.op,
               .count = out.count()} {}

  void run() {
    auto counts = before_call([&] { return checked(); });
    learn_shards(counts);
    if (total_ == 0) {
      std::memset(out_.data(), 0, out_.bytes());
      return;
    }
    Exchange exchanged = before_call([&] {
      cover_all(counts);
      return prepare(local_nodes());
    });
    exchange(exchanged);
    const Gathering gathering = before_call([&] { return finish(exchanged.incoming); });
    gather(gathering);
  }

 private:
  // The data that this rank sends to each rank, and receives from it.
  struct Exchange {
    std::vector<std::size_t> send, receive;  // bytes
    std::vector<std::byte> outgoing, incoming;
  };
  struct Gathering {
    std::vector<std::byte> own;  // this rank's slice of the result
    std::vector<std::size_t> counts;
  };

  template <typename Part>
  std::invoke_result_t<const Part&> before_call(const Part& part) {
    return impl_.before_call(Kind::kReproducibleSum, part);
  }
  std::size_t element() const { return size_of(type_); }
  const std::vector<Node>& nodes(int rank) const { return nodes_[static_cast<std::size_t>(rank)]; }
  Slice slice(int rank) const { return slice_of(rank, impl_.size(), out_.count()); }

  // Returns the error of the arguments. Empty: none.
  std::string what_is_wrong() const {
    const std::size_t count = out_.count();
    if (std::string fault = call::fault_of(in_, "shards"); !fault.empty()) return fault;
    if (std::string fault = call::fault_of(out_, "out"); !fault.empty()) return fault;
    if (in_.dtype() != out_.dtype()) return "shards and out differ in dtype";
    if (options_.op != ReduceOp::kSum && options_.op != ReduceOp::kAvg) {
      return fmt::format("op is {}, expected sum or avg", name_of(options_.op));
    }
    if (!is_defined(options_.op, out_.dtype())) {
      return fmt::format("op {} has no meaning on {}", name_of(options_.op), name_of(out_.dtype()));
    }
    if (count == 0 ? in_.count() == 0 : in_.count() % count == 0) return {};
    return "shards must hold a whole number of arrays of out's " + std::to_string(count) +
           " elements, and has " + std::to_string(in_.count());
  }

  // Checks the arguments and allocates memory for every rank's number of shards.
  std::vector<std::uint64_t> checked() const {
    const std::string wrong = what_is_wrong();
    if (!wrong.empty()) throw InvalidArgument(wrong);
    return std::vector<std::uint64_t>(static_cast<std::size_t>(impl_.size()));
  }

  // Returns the record of a part of the call that needs all ranks.
  Signature meeting() const {
    Signature shown = shown_;
    shown.digest = engine::kMeetsAll;
    return shown;
  }

  // Gathers every rank's number of shards.
  void learn_shards(std::vector<std::uint64_t>& counts) {
    const std::uint64_t mine = out_.count() == 0 ? 0 : in_.count() / out_.count();
    impl_.run_as(meeting(),
                 {.kind = Kind::kAllGather,
                  .in = {&mine, 1, DType::kUInt64},
                  .out = {counts.data(), counts.size(), DType::kUInt64},
                  .deadline = options_.deadline});
    total_ = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  }

  // Determines the nodes of every rank.
  void cover_all(const std::vector<std::uint64_t>& counts) {
    std::uint64_t first = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (static_cast<int>(i) == impl_.rank()) first_ = first;
      nodes_.emplace_back();
      if (counts[i] > 0) {
        cover(whole_tree(total_), first, first + counts[i], total_, nodes_.back());
      }
      first += counts[i];
    }
  }

  // Computes the values of this rank's nodes.
  Rows local_nodes() {
    const std::vector<Node>& own = nodes(impl_.rank());
    const std::size_t count = out_.count();
    Rows rows(own.size(), count, type_);
    const Tree tree(total_, count, type_);
    const auto shard = [&](Node node, std::byte* out) {
      if (node.level != 0) return false;
      const ConstArrayView from = in_.slice((node.index - first_) * count, count);
      core::widen(out, from.data(), count, in_.dtype(), options_.op);
      return true;
    };
    for (std::size_t i = 0; i < own.size(); ++i) tree.sum(own[i], rows.row(i), shard);
    return rows;
  }

  // Prepares each rank's slice of this rank's nodes, and memory for this rank's slice of all nodes.
  Exchange prepare(Rows rows) const {
    const auto n = static_cast<std::size_t>(impl_.size());
    const std::size_t own = nodes(impl_.rank()).size();
    Exchange made{.send = std::vector<std::size_t>(n),
                  .receive = std::vector<std::size_t>(n),
                  .outgoing = {},
                  .incoming = {}};
    made.outgoing.reserve(own * out_.count() * element());
    for (std::size_t r = 0; r < n; ++r) {
      const Slice theirs = slice(static_cast<int>(r));
      made.send[r] = own * theirs.count * element();
      made.receive[r] = nodes_[r].size() * slice(impl_.rank()).count * element();
      for (std::size_t i = 0; i < own; ++i) {
        const std::byte* at = rows.row(i) + theirs.first * element();
        made.outgoing.insert(made.outgoing.end(), at, at + theirs.count * element());
      }
    }
    made.incoming.resize(std::accumulate(made.receive.begin(), made.receive.end(), std::size_t{0}));
    return made;
  }

  void exchange(Exchange& of) {
    // A rank that has no data for other ranks would leave the call before these can refuse it. So
    // all ranks meet first.
    const bool have_all = std::ranges::none_of(nodes_, &std::vector<Node>::empty) &&
                          slice(impl_.size() - 1).count != 0;
    std::optional<call::Core::Commitment> bound;
    if (!have_all) {
      impl_.run_as(meeting(), {.kind = Kind::kBarrier, .deadline = options_.deadline});
      bound.emplace(impl_);
    }
    impl_.run_as(shown_,
                 {.kind = Kind::kAllToAllV,
                  .in = {of.outgoing.data(), of.outgoing.size(), DType::kUInt8},
                  .out = {of.incoming.data(), of.incoming.size(), DType::kUInt8},
                  .in_parts = {.counts = of.send},
                  .out_parts = {.counts = of.receive},
                  .deadline = options_.deadline});
  }

  // Adds the rest of the tree for this rank's slice, and rounds.
  Gathering finish(const std::vector<std::byte>& sums) const {
    const std::size_t count = slice(impl_.rank()).count;
    std::vector<Node> all;
    for (const auto& some : nodes_) all.insert(all.end(), some.begin(), some.end());
    const auto known = [&](Node node, std::byte* out) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i].level != node.level || all[i].index != node.index) continue;
        if (count != 0) std::memcpy(out, sums.data() + i * count * element(), count * element());
        return true;
      }
      return false;
    };
    std::vector<std::byte> sum(count * element());
    Tree(total_, count, type_).sum(whole_tree(total_), sum.data(), known);
    if (type_ == DType::kFloat32 || type_ == DType::kComplex64) make_nans_alike<float>(sum);
    if (type_ == DType::kFloat64 || type_ == DType::kComplex128) make_nans_alike<double>(sum);
    Gathering made{.own = std::vector<std::byte>(count * size_of(out_.dtype())), .counts = {}};
    core::narrow(
        made.own.data(), sum.data(), count, out_.dtype(), options_.op, static_cast<int>(total_));
    for (int r = 0; r < impl_.size(); ++r) {
      made.counts.push_back(slice(r).count * size_of(out_.dtype()));
    }
    return made;
  }

  void gather(const Gathering& of) {
    impl_.run_as(shown_,
                 {.kind = Kind::kAllGatherV,
                  .in = {of.own.data(), of.own.size(), DType::kUInt8},
                  .out = {out_.data(), out_.bytes(), DType::kUInt8},
                  .out_parts = {.counts = of.counts},
                  .deadline = options_.deadline});
  }

  world::CommunicatorImpl& impl_;
  ConstArrayView in_;
  ArrayView out_;
  ReduceOptions options_;
  DType type_;  // accumulation type
  Signature shown_;
  std::uint64_t first_ = 0;  // number of this rank's first shard
  std::uint64_t total_ = 0;
  std::vector<std::vector<Node>> nodes_;  // by rank
};

}  // namespace

void Communicator::reproducible_sum(ConstArrayView shards,
                                    ArrayView out,
                                    const ReduceOptions& options) {
  if (shards.memory() == MemoryKind::kCuda || out.memory() == MemoryKind::kCuda) {
    const auto copies = impl_->before_call(
        Kind::kReproducibleSum, [&] { return impl_->copy_to_host(shards, out, options.stream); });
    ReproducibleSum(*impl_, copies->in(), copies->out(), options).run();
    copies->finish();
    return;
  }
  ReproducibleSum(*impl_, shards, out, options).run();
}

}  // namespace hocket
