#include "algorithm/cost_model.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "algorithm/cores.h"
#include "algorithm/trees.h"

namespace hocket::algorithm {

using engine::Kind;
using engine::Signature;

namespace {

// What is kept for the next call (see Scratch), and microseconds that a byte beyond costs.
constexpr double kKeptBytes = 32 * 1024 * 1024;
constexpr double kPageFaults = 3e-4;
// The same for a byte that is folded when it has left the caches again; measured between two hosts.
constexpr double kLeftCaches = 1e-4;

// Bytes of a partial result for one of the array; see Partial.
double widening(const Signature& s) noexcept {
  if (!order_matters(s)) return 1;
  const std::size_t bytes = size_of(s.dtype);
  return bytes == 1 ? 4 : bytes == 2 ? 2 : 1;
}

// The words of the formulas: m is the array of the kinds that have one on each rank, else a rank's
// share; all is n shares.
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

  double message(double bytes) const { return net_.alpha + net_.beta * bytes; }
  // One that is folded when it has come; partial results may be wider.
  double folded(double bytes) const {
    return net_.alpha + (net_.beta + net_.gamma) * wide_ * bytes;
  }
  // The same between ranks of which each has one to send to and one to hear from.
  double passed(double bytes) const { return net_.alpha + beta_next_ * bytes; }
  double passed_folded(double bytes) const {
    return net_.alpha + (beta_next_ + net_.gamma) * wide_ * bytes;
  }
  // n - 1 messages at once, through one rank.
  double fan(double bytes_each) const {
    return net_.alpha + peers_ * (net_.overhead + net_.beta * bytes_each);
  }
  double copied(double bytes) const { return net_.gamma * bytes; }
  // Scratch memory: much of it comes from the system page by page, each time anew.
  double fresh(double bytes) const { return bytes > kKeptBytes ? kPageFaults * bytes : 0; }
  // A step of the ring that folds: all of it is under way at once.
  double ring_step(double bytes) const {
    const double left = wide_ * bytes > scratch_ ? kLeftCaches * wide_ * bytes : 0;
    return passed_folded(bytes) + left;
  }
  // Everybody's version of a share of `bytes`, collected from all at once in as many rounds as
  // there is memory for, of which two are under way.
  double collected(double bytes) const {
    const std::size_t lane = lane_bytes(static_cast<std::size_t>(scratch_),
                                        static_cast<std::size_t>(std::max(1.0, peers_)));
    const double rounds =
        std::max(1.0, std::ceil(bytes / std::max(64.0, static_cast<double>(lane))));
    return net_.alpha + peers_ * (rounds * net_.overhead + net_.beta * bytes) +
           copied(bytes * peers_);
  }
  // Down or up a tree in chunks, where a rank serves two.
  double tree(double bytes, bool folds) const {
    const double chunks = std::max(1.0, std::ceil(bytes / chunk_));
    const double step = folds ? folded(bytes / chunks) : message(bytes / chunks);
    const double second = peers_ < 2 ? 0 : step - net_.alpha + net_.overhead;
    return (tree_depth(TreeShape::kBinary, n_) + chunks - 1) * (step + second);
  }
  double chain(double bytes, bool folds) const {
    const double chunks = std::max(1.0, std::ceil(bytes / chunk_));
    const double step = folds ? passed_folded(bytes / chunks) : passed(bytes / chunks);
    return (peers_ + chunks - 1) * step;
  }
  // What halving costs on arrays of `bytes`, the folding of excess ranks included.
  double halving(double bytes) const {
    const double swapped = bytes * (core_ - 1) / core_;
    return excess_ * folded(bytes) + core_log_ * net_.alpha + folded(swapped) - net_.alpha;
  }
  double doubling(double bytes) const {
    const double swapped = bytes * (core_ - 1) / core_;
    return core_log_ * net_.alpha + net_.beta * swapped + excess_ * message(bytes);
  }

  double broadcast(Algorithm algorithm) const;
  double reduce(Algorithm algorithm) const;
  double all_reduce(Algorithm algorithm) const;
  double scan(Algorithm algorithm) const;
  double reduce_scatter(Algorithm algorithm) const;
  double all_gather(Algorithm algorithm) const;
  double rooted(Algorithm algorithm) const;
  double all_to_all(Algorithm algorithm) const;
  double barrier(Algorithm) const { return log_ * net_.alpha; }

 private:
  NetworkCosts net_;
  double beta_next_;
  int n_;
  double peers_;
  double log_;
  double chunk_;
  double scratch_;
  double m_, all_, wide_, core_, core_log_, excess_;
};

double Terms::broadcast(Algorithm algorithm) const {
  switch (algorithm) {
    case Algorithm::kBinaryTree:
      return tree(m_, false);
    case Algorithm::kChain:
      return chain(m_, false);
    case Algorithm::kScatterRing:
      return fan(m_ / n_) + peers_ * passed(m_ / n_);
    default:
      return log_ * message(m_);
  }
}

double Terms::reduce(Algorithm algorithm) const {
  switch (algorithm) {
    case Algorithm::kBinomial:
      return log_ * folded(m_);
    case Algorithm::kBinaryTree:
      return tree(m_, true);
    case Algorithm::kChain:
      return chain(m_, true);
    case Algorithm::kRabenseifner:
      return halving(m_) + fan(m_ / n_);
    case Algorithm::kScattered: {
      const double stretches = std::max(1.0, std::ceil(m_ / scratch_));
      const double part = m_ / stretches / n_;
      return stretches * (collected(part) + fan(part));
    }
    default:
      return fan(m_) + copied(all_) + fresh(all_);
  }
}

double Terms::all_reduce(Algorithm algorithm) const {
  switch (algorithm) {
    case Algorithm::kRing:
      return peers_ * (ring_step(m_ / n_) + passed(m_ / n_)) + fresh(2 * wide_ * m_ / n_);
    case Algorithm::kRecursiveDoubling:
      return copied(2 * wide_ * m_) + core_log_ * folded(m_) +
             excess_ * (folded(m_) + message(m_)) + fresh(2 * wide_ * m_);
    case Algorithm::kRabenseifner: {
      const double stretches = std::max(1.0, std::ceil(m_ / (4 * scratch_)));
      const double one = m_ / stretches;
      return copied(wide_ * m_) + stretches * (halving(one) + doubling(one));
    }
    case Algorithm::kScattered:
      return collected(m_ / n_) + peers_ * passed(m_ / n_);
    default:
      return log_ * net_.alpha + peers_ * net_.beta * m_ + copied(all_) + fresh(all_);
  }
}

double Terms::scan(Algorithm algorithm) const {
  if (algorithm == Algorithm::kChain) return chain(m_, true);
  if (algorithm == Algorithm::kRecursiveDoubling) {
    return copied(2 * wide_ * m_) + log_ * folded(m_) + fresh(2 * wide_ * m_);
  }
  return all_reduce(Algorithm::kGathered);
}

double Terms::reduce_scatter(Algorithm algorithm) const {
  switch (algorithm) {
    case Algorithm::kRing:
      return peers_ * ring_step(m_) + fresh(2 * wide_ * m_);
    case Algorithm::kRecursiveHalving:
      return copied(all_) + halving(all_) + excess_ * message(m_) + fresh(2 * wide_ * all_);
    default:
      return collected(m_);
  }
}

double Terms::all_gather(Algorithm algorithm) const {
  switch (algorithm) {
    case Algorithm::kBruck:
      return log_ * net_.alpha + peers_ * net_.beta * m_ + copied(all_) + fresh(all_);
    case Algorithm::kRecursiveDoubling:
      return excess_ * message(m_) + doubling(all_);
    case Algorithm::kDirect:
      return fan(m_);
    default:
      return peers_ * passed(m_);
  }
}

double Terms::rooted(Algorithm algorithm) const {
  if (algorithm == Algorithm::kLinear) return fan(m_);
  return log_ * net_.alpha + peers_ * net_.beta * m_ + copied(all_) + fresh(all_);
}

double Terms::all_to_all(Algorithm algorithm) const {
  if (algorithm == Algorithm::kPairwise) return peers_ * message(m_);
  return log_ * message(all_ / 2) + copied(2 * all_ + log_ * all_) + fresh(2 * all_);
}

using Term = double (Terms::*)(Algorithm) const;
constexpr engine::KindTable<Term> kTerms{
    {Kind::kBarrier, &Terms::barrier},
    {Kind::kBroadcast, &Terms::broadcast},
    {Kind::kReduce, &Terms::reduce},
    {Kind::kAllReduce, &Terms::all_reduce},
    {Kind::kScan, &Terms::scan},
    {Kind::kExscan, &Terms::scan},
    {Kind::kReduceScatter, &Terms::reduce_scatter},
    {Kind::kReduceScatterV, &Terms::reduce_scatter},
    {Kind::kAllGather, &Terms::all_gather},
    {Kind::kAllGatherV, &Terms::all_gather},
    {Kind::kGather, &Terms::rooted},
    {Kind::kGatherV, &Terms::rooted},
    {Kind::kScatter, &Terms::rooted},
    {Kind::kScatterV, &Terms::rooted},
    {Kind::kAllToAll, &Terms::all_to_all},
    {Kind::kAllToAllV, &Terms::all_to_all},
};
// What has an algorithm has a cost.
static_assert(kTerms.kinds() == engine::KindSet::where(engine::is_carried));

}  // namespace

double predicted_us(Algorithm algorithm,
                    const Signature& signature,
                    int n,
                    const NetworkCosts& network,
                    const Pieces& pieces) noexcept {
  const Terms terms(signature, n, network, pieces);
  return (terms.*kTerms[signature.kind])(algorithm);
}

}  // namespace hocket::algorithm
