#include "engines/algorithm/cost_model.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "engines/algorithm/cores.h"
#include "engines/algorithm/trees.h"
#include "foundation/core/averages.h"

namespace hocket::algorithm {

using engine::Kind;
using engine::Signature;

namespace {

// Scratch memory up to kKeptBytes bytes is cached for the next call; see Scratch. An algorithm with
// more scratch memory pays kPageFaults microseconds for each byte.
constexpr double kKeptBytes = 32 * 1024 * 1024;
constexpr double kPageFaults = 3e-4;
// The additional microseconds for each byte that is reduced after it has left the caches. Measured
// between two hosts.
constexpr double kLeftCaches = 1e-4;

// Returns the size ratio of a partial result to the array's elements; see Partial.
double widening(const Signature& s) noexcept {
  if (s.op != ReduceOp::kSum && s.op != ReduceOp::kAvg && s.op != ReduceOp::kProduct) return 1;
  return static_cast<double>(size_of(core::accumulation_type(s.dtype, s.op))) /
         static_cast<double>(size_of(s.dtype));
}

// The terms of the formulas, in microseconds. m_ is the bytes of the array if each rank has a
// complete array. In all other kinds m_ is the bytes of one rank's share. all_ is n times m_.
class Terms {
 public:
  Terms(const Signature& s, int n, const NetworkCosts& net, const Pieces& pieces)
      : net_(net),
        beta_next_(net.beta_next > 0 ? net.beta_next : net.beta),
        n_(n),
        peers_(n - 1),
        log_(doublings(n)),
        chunk_(static_cast<double>(pieces.chunk)),
        scratch_(static_cast<double>(pieces.scratch)) {
    const auto bytes = static_cast<double>(bytes_of(s));
    m_ = counts_parts(s.kind) ? bytes / n : bytes;
    all_ = m_ * n;
    wide_ = widening(s);
    core_ = core_size(n);
    core_log_ = std::countr_zero(static_cast<unsigned>(core_size(n)));  // a power of two
    excess_ = core_excess(n) > 0 ? 1 : 0;
  }

  // The table of formulas, one for each Way.
  struct OfWays;

 private:
  double message(double bytes) const { return net_.alpha + net_.beta * bytes; }
  // A message whose data is reduced after its arrival. Partial results may be wider than elements.
  double reduced(double bytes) const {
    return net_.alpha + (net_.beta + net_.gamma) * wide_ * bytes;
  }
  // A message in a step in which each rank sends to the next rank and receives from the previous.
  double neighbour(double bytes) const { return net_.alpha + beta_next_ * bytes; }
  double neighbour_reduced(double bytes) const {
    return net_.alpha + (beta_next_ + net_.gamma) * wide_ * bytes;
  }
  // n - 1 messages at the same time, from one rank to all or from all to one.
  double one_to_all(double bytes_each) const {
    return net_.alpha + peers_ * (net_.overhead + net_.beta * bytes_each);
  }
  double copied(double bytes) const { return net_.gamma * bytes; }
  // The cost of new scratch memory: the kernel provides it page by page in every call.
  double page_faults(double bytes) const { return bytes > kKeptBytes ? kPageFaults * bytes : 0; }
  // A step of a reduction around a ring. All data of the step is in flight at the same time, so
  // long data leaves the caches before it is reduced.
  double ring_step(double bytes) const {
    const double left = wide_ * bytes > scratch_ ? kLeftCaches * wide_ * bytes : 0;
    return neighbour_reduced(bytes) + left;
  }
  // Collects one share of `bytes` bytes from every rank at the same time, and reduces them. It
  // works in rounds, whose size the scratch memory limits; see lane_bytes.
  double collected(double bytes) const {
    const std::size_t lane = lane_bytes(static_cast<std::size_t>(scratch_),
                                        static_cast<std::size_t>(std::max(1.0, peers_)));
    const double rounds =
        std::max(1.0, std::ceil(bytes / std::max(64.0, static_cast<double>(lane))));
    return net_.alpha + peers_ * (rounds * net_.overhead + net_.beta * bytes) +
           copied(bytes * peers_);
  }
  // A pipeline of chunks down or up a binary tree.
  double tree(double bytes, bool folds) const {
    const double chunks = std::max(1.0, std::ceil(bytes / chunk_));
    const double step = folds ? reduced(bytes / chunks) : message(bytes / chunks);
    const double second = peers_ < 2 ? 0 : step - net_.alpha + net_.overhead;
    return (tree_depth(TreeShape::kBinary, n_) + chunks - 1) * (step + second);
  }
  // A pipeline of chunks along a chain of all ranks.
  double chain(double bytes, bool folds) const {
    const double chunks = std::max(1.0, std::ceil(bytes / chunk_));
    const double step = folds ? neighbour_reduced(bytes / chunks) : neighbour(bytes / chunks);
    return (peers_ + chunks - 1) * step;
  }
  // Recursive halving of arrays of `bytes` bytes, including the reduction of the excess ranks'
  // arrays.
  double halving(double bytes) const {
    const double swapped = bytes * (core_ - 1) / core_;
    return excess_ * reduced(bytes) + core_log_ * net_.alpha + reduced(swapped) - net_.alpha;
  }
  // Recursive doubling up to `bytes` bytes, including the message to the excess ranks.
  double doubling(double bytes) const {
    const double swapped = bytes * (core_ - 1) / core_;
    return core_log_ * net_.alpha + net_.beta * swapped + excess_ * message(bytes);
  }
  // All shares travel to all ranks, or to one rank, in ceil(log2 n) rounds. They are copied once at
  // the end.
  double gathered() const {
    return log_ * net_.alpha + peers_ * net_.beta * m_ + copied(all_) + page_faults(all_);
  }

  NetworkCosts net_;
  double beta_next_;
  int n_;
  double peers_;
  double log_;
  double chunk_;
  double scratch_;
  double m_, all_, wide_, core_, core_log_, excess_;
};

struct Terms::OfWays {
  using enum Kind;
  using enum Algorithm;
  using Term = double (*)(const Terms&);
  static constexpr WayTable<Term> kAll{
      {{kBarrier}, kDissemination, [](const Terms& t) { return t.log_ * t.net_.alpha; }},

      {{kBroadcast}, kBinomial, [](const Terms& t) { return t.log_ * t.message(t.m_); }},
      {{kBroadcast}, kBinaryTree, [](const Terms& t) { return t.tree(t.m_, false); }},
      {{kBroadcast}, kChain, [](const Terms& t) { return t.chain(t.m_, false); }},
      {{kBroadcast},
       kScatterRing,
       [](const Terms& t) {
         return t.one_to_all(t.m_ / t.n_) + t.peers_ * t.neighbour(t.m_ / t.n_);
       }},

      {{kReduce},
       kGathered,
       [](const Terms& t) {
         return t.one_to_all(t.m_) + t.copied(t.all_) + t.page_faults(t.all_);
       }},
      {{kReduce}, kBinomial, [](const Terms& t) { return t.log_ * t.reduced(t.m_); }},
      {{kReduce}, kBinaryTree, [](const Terms& t) { return t.tree(t.m_, true); }},
      {{kReduce}, kChain, [](const Terms& t) { return t.chain(t.m_, true); }},
      {{kReduce},
       kRabenseifner,
       [](const Terms& t) { return t.halving(t.m_) + t.one_to_all(t.m_ / t.n_); }},
      {{kReduce},
       kScattered,
       [](const Terms& t) {
         const double stretches = std::max(1.0, std::ceil(t.m_ / t.scratch_));
         const double part = t.m_ / stretches / t.n_;
         return stretches * (t.collected(part) + t.one_to_all(part));
       }},

      {{kAllReduce, kScan, kExscan}, kGathered, [](const Terms& t) { return t.gathered(); }},
      {{kAllReduce},
       kRing,
       [](const Terms& t) {
         return t.peers_ * (t.ring_step(t.m_ / t.n_) + t.neighbour(t.m_ / t.n_)) +
                t.page_faults(2 * t.wide_ * t.m_ / t.n_);
       }},
      {{kAllReduce},
       kRecursiveDoubling,
       [](const Terms& t) {
         return t.copied(2 * t.wide_ * t.m_) + t.core_log_ * t.reduced(t.m_) +
                t.excess_ * (t.reduced(t.m_) + t.message(t.m_)) + t.page_faults(2 * t.wide_ * t.m_);
       }},
      {{kAllReduce},
       kRabenseifner,
       [](const Terms& t) {
         const double stretches = std::max(1.0, std::ceil(t.m_ / (4 * t.scratch_)));
         const double one = t.m_ / stretches;
         return t.copied(t.wide_ * t.m_) + stretches * (t.halving(one) + t.doubling(one));
       }},
      {{kAllReduce},
       kScattered,
       [](const Terms& t) {
         return t.collected(t.m_ / t.n_) + t.peers_ * t.neighbour(t.m_ / t.n_);
       }},

      {{kScan, kExscan}, kChain, [](const Terms& t) { return t.chain(t.m_, true); }},
      {{kScan, kExscan},
       kRecursiveDoubling,
       [](const Terms& t) {
         return t.copied(2 * t.wide_ * t.m_) + t.log_ * t.reduced(t.m_) +
                t.page_faults(2 * t.wide_ * t.m_);
       }},

      {{kReduceScatter, kReduceScatterV},
       kPairwise,
       [](const Terms& t) { return t.collected(t.m_); }},
      {{kReduceScatter, kReduceScatterV},
       kRing,
       [](const Terms& t) {
         return t.peers_ * t.ring_step(t.m_) + t.page_faults(2 * t.wide_ * t.m_);
       }},
      {{kReduceScatter, kReduceScatterV},
       kRecursiveHalving,
       [](const Terms& t) {
         return t.copied(t.all_) + t.halving(t.all_) + t.excess_ * t.message(t.m_) +
                t.page_faults(2 * t.wide_ * t.all_);
       }},

      {{kAllGather, kAllGatherV},
       kRing,
       [](const Terms& t) { return t.peers_ * t.neighbour(t.m_); }},
      {{kAllGather, kAllGatherV}, kDirect, [](const Terms& t) { return t.one_to_all(t.m_); }},
      {{kAllGather}, kBruck, [](const Terms& t) { return t.gathered(); }},
      {{kAllGather},
       kRecursiveDoubling,
       [](const Terms& t) { return t.excess_ * t.message(t.m_) + t.doubling(t.all_); }},

      {{kGather, kScatter, kGatherV, kScatterV},
       kLinear,
       [](const Terms& t) { return t.one_to_all(t.m_); }},
      {{kGather, kScatter}, kBinomial, [](const Terms& t) { return t.gathered(); }},

      {{kAllToAll, kAllToAllV},
       kPairwise,
       [](const Terms& t) { return t.peers_ * t.message(t.m_); }},
      {{kAllToAll},
       kBruck,
       [](const Terms& t) {
         return t.log_ * t.message(t.all_ / 2) + t.copied(2 * t.all_ + t.log_ * t.all_) +
                t.page_faults(2 * t.all_);
       }},
  };
};

}  // namespace

double predicted_us(Algorithm algorithm,
                    const Signature& signature,
                    int n,
                    const NetworkCosts& network,
                    const Pieces& pieces) noexcept {
  const Terms terms(signature, n, network, pieces);
  return Terms::OfWays::kAll.of(signature.kind, algorithm)(terms);
}

double least_predicted_us(const Signature& signature,
                          int n,
                          const NetworkCosts& network,
                          const Pieces& pieces) noexcept {
  double least = 0;
  for (const Way& way : ways_of(signature.kind)) {
    const double us = predicted_us(way.algorithm, signature, n, network, pieces);
    if (least == 0 || us < least) least = us;
  }
  return least;
}

}  // namespace hocket::algorithm
