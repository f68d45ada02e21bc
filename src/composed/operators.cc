// Reductions by an operator of the program's own, in rounds: the ranks exchange, so that each has
// its part of everybody's array; each combines these; the results go where they belong.
//
// A rank that cannot go on, its arguments being wrong or its operator failing, refuses the barrier
// in front of what comes next. The others have begun nothing else then: a barrier is left by nobody
// before all have come to it, and can be made up for by an engine that cannot take back its calls.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/hash.h"
#include "call/request.h"
#include "engine/made_of_calls.h"
#include "hocket/error.h"
#include "hocket/operator.h"
#include "world/communicator_impl.h"

namespace hocket {
namespace {

using call::Request;
using engine::Kind;
using engine::Signature;

// What the parts of all ranks may take on each, and a part at the least and the most.
constexpr std::size_t kRoom = std::size_t{64} << 20;
constexpr std::size_t kLeastPart = std::size_t{64} << 10;
constexpr std::size_t kMostPart = std::size_t{1} << 20;

struct UnitRange {
  std::size_t first;
  std::size_t count;
};

// The i-th of n parts of `total`, which differ by one at the most.
UnitRange part_of(std::size_t total, std::size_t n, std::size_t i) {
  const std::size_t each = total / n, more = total % n;
  return {i * each + std::min(i, more), each + (i < more ? 1 : 0)};
}

// One call of one rank. Whatever is counted in units is called `units`.
class OwnReduction {
 public:
  OwnReduction(Communicator& comm,
               Kind kind,
               ConstArrayView in,
               ArrayView out,
               const Operator& op,
               const OperatorOptions& options)
      : impl_(*comm.impl()),
        kind_(kind),
        in_(in),
        out_(out),
        op_(op),
        root_(kind == Kind::kReduce ? options.root : 0),
        end_(base::Deadline::in(options.deadline.value_or(comm.deadline()))),
        n_(static_cast<std::size_t>(std::max(comm.size(), 1))),
        rank_(static_cast<std::size_t>(std::max(comm.rank(), 0))) {}

  void run() {
    impl_.before_call(kind_, [&] {
      require_sound();
      lay_out();
    });
    meet();
    for (std::size_t i = 0; i < rounds_ && units_ != 0; ++i) {
      const UnitRange round = part_of(units_, rounds_, i);
      mine_ = is_scattered() ? round : part_of(round.count, n_, rank_);
      exchange(round);
      impl_.before_call(kind_, [&] { combine(); });
      meet();
      hand_out(round);
    }
  }

 private:
  bool is_scattered() const { return kind_ == Kind::kReduceScatter; }
  bool is_prefix() const { return engine::is_prefix(kind_); }
  bool takes() const {
    if (kind_ == Kind::kReduce) return static_cast<std::size_t>(root_) == rank_;
    return kind_ != Kind::kExscan || rank_ != 0;
  }
  std::size_t unit_bytes() const { return op_.unit * size_of(in_.dtype()); }

  // --- Before it --------------------------------------------------------------------------------
  void require_sound() const {
    if (op_.combine == nullptr) throw InvalidArgument("the operator has no function");
    if (op_.unit == 0) throw InvalidArgument("the operator's unit is 0; 1 is one element");
    require_on_host(in_, "in");
    if (op_.dtype && *op_.dtype != in_.dtype()) {
      throw InvalidArgument(fmt::format(
          "in holds {}, and the operator is for {}", name_of(in_.dtype()), name_of(*op_.dtype)));
    }
    if (kind_ == Kind::kReduce && (root_ < 0 || static_cast<std::size_t>(root_) >= n_)) {
      throw InvalidArgument(fmt::format("root is {}, expected a rank from 0 to {}", root_, n_ - 1));
    }
    if (is_scattered() && in_.count() % n_ != 0) {
      throw InvalidArgument(
          fmt::format("in has {} elements, which do not divide among {} ranks", in_.count(), n_));
    }
    if (length() % op_.unit != 0) {
      throw InvalidArgument(
          fmt::format("{} elements are no whole number of the operator's {}", length(), op_.unit));
    }
    if (takes()) require_fitting_out();
  }
  static void require_on_host(ConstArrayView array, const char* name) {
    call::require_array(array, name);
    if (array.memory() == MemoryKind::kHost) return;
    throw InvalidArgument(
        fmt::format("{} lies in a GPU's memory, where an operator of one's own cannot work; copy "
                    "it to the host's",
                    name));
  }
  void require_fitting_out() const {
    require_on_host(out_, "out");
    if (out_.dtype() != in_.dtype() || out_.count() != length()) {
      throw InvalidArgument(fmt::format("out is {}[{}], expected {}[{}]",
                                        name_of(out_.dtype()),
                                        out_.count(),
                                        name_of(in_.dtype()),
                                        length()));
    }
    const auto a = reinterpret_cast<std::uintptr_t>(in_.data());
    const auto b = reinterpret_cast<std::uintptr_t>(out_.data());
    if (a == b || out_.bytes() == 0 || a + in_.bytes() <= b || b + out_.bytes() <= a) return;
    throw InvalidArgument(
        "in and out overlap without being the same array; use one array for both, or two apart");
  }
  // Elements of what is cut into rounds.
  std::size_t length() const { return is_scattered() ? in_.count() / n_ : in_.count(); }

  void lay_out() {
    units_ = length() / op_.unit;
    const std::size_t most = std::clamp(kRoom / n_, kLeastPart, kMostPart);
    const std::size_t part =
        std::max<std::size_t>(1, most / std::max<std::size_t>(1, unit_bytes()));
    const std::size_t round = is_scattered() ? part : part * n_;
    rounds_ = std::max<std::size_t>(1, units_ / round + (units_ % round != 0 ? 1 : 0));
    if (!is_scattered()) rounds_ = std::min(rounds_, std::max<std::size_t>(1, units_ / n_));
    const std::size_t longest = part_of(units_, rounds_, 0).count;
    const std::size_t row = is_scattered() ? longest : part_of(longest, n_, 0).count;
    rows_.resize(n_ * row * unit_bytes());
    if (is_prefix()) so_far_.resize(row * unit_bytes());
    for (std::vector<std::size_t>* each : {&mine_of_all_, &begins_, &all_of_mine_}) {
      each->resize(n_);
    }
    const auto order =
        in_.order() == MemoryOrder::kFortran ? MemoryOrder::kFortran : MemoryOrder::kC;
    const std::uint64_t agreed = base::mix(engine::digest_of(order), op_.unit);
    shown_ = {.kind = kind_,
              .dtype = in_.dtype(),
              .root = root_,
              .count = length(),
              .digest = engine::digest_by_operator(kind_, agreed)};
  }

  // --- A round ----------------------------------------------------------------------------------
  // In front of what is refused by nobody.
  void meet() {
    Signature shown = shown_;
    shown.kind = Kind::kBarrier;
    impl_.run_as(shown, {.kind = Kind::kBarrier, .deadline = end_.left()});
  }
  void call(Request request) {
    const call::Core::Bound bound(impl_);
    request.deadline = end_.left();
    impl_.run_as(shown_, request);
  }

  std::byte* row(std::size_t i) { return rows_.data() + i * row_bytes(); }
  std::size_t row_bytes() const { return mine_.count * unit_bytes(); }
  ArrayView rows(std::size_t n) { return {rows_.data(), n * mine_.count * op_.unit, in_.dtype()}; }
  ArrayView out_of(UnitRange round) const {
    return out_.slice(round.first * op_.unit, round.count * op_.unit);
  }
  ArrayView taken_of(UnitRange round) const {
    return takes() ? out_of(round) : ArrayView(nullptr, 0, in_.dtype());
  }
  // What each rank has of a round.
  Parts parts_of(UnitRange round) {
    for (std::size_t i = 0; i < n_; ++i) {
      const UnitRange part = part_of(round.count, n_, i);
      all_of_mine_[i] = part.count * op_.unit;
    }
    return {.counts = all_of_mine_};
  }

  // Everybody's part that is this rank's, as rows.
  void exchange(UnitRange round) {
    for (std::size_t i = 0; i < n_; ++i) {
      const UnitRange part = is_scattered() ? UnitRange{i * units_ + round.first, round.count}
                                            : part_of(round.count, n_, i);
      all_of_mine_[i] = part.count * op_.unit;
      begins_[i] = (part.first + (is_scattered() ? 0 : round.first)) * op_.unit;
      mine_of_all_[i] = mine_.count * op_.unit;
    }
    call({.kind = Kind::kAllToAllV,
          .in = in_,
          .out = rows(n_),
          .in_parts = {all_of_mine_, begins_},
          .out_parts = {.counts = mine_of_all_}});
  }

  void combine() {
    if (mine_.count == 0) return;
    try {
      is_prefix() ? combine_prefixes() : combine_all();
    } catch (const std::exception& error) {
      throw InvalidArgument(
          fmt::format("the operator has failed on rank {}: {}", rank_, error.what()));
    }
  }
  void combine_all() {
    for (std::size_t i = 1; i < n_; ++i) combine_into(row(0), row(i));
  }
  // Row i becomes what rows 0 to i are, combined.
  void combine_prefixes() {
    std::memcpy(so_far_.data(), row(0), row_bytes());
    const std::size_t last = kind_ == Kind::kExscan ? n_ - 1 : n_;
    for (std::size_t i = 1; i < last; ++i) {
      combine_into(so_far_.data(), row(i));
      std::memcpy(row(i), so_far_.data(), row_bytes());
    }
  }
  void combine_into(std::byte* left, const std::byte* right) const {
    op_.combine(left, right, mine_.count * op_.unit, op_.context);
  }

  void hand_out(UnitRange round) {
    if (is_scattered()) {
      std::memcpy(out_of(round).data(), row(0), row_bytes());
    } else if (kind_ == Kind::kExscan) {
      hand_out_before(round);
    } else if (kind_ == Kind::kScan) {
      call({.kind = Kind::kAllToAllV,
            .in = rows(n_),
            .out = out_of(round),
            .in_parts = {.counts = mine_of_all_},
            .out_parts = parts_of(round)});
    } else {
      call({.kind = kind_ == Kind::kReduce ? Kind::kGatherV : Kind::kAllGatherV,
            .in = rows(1),
            .out = taken_of(round),
            .root = root_,
            .out_parts = parts_of(round)});
    }
  }
  // Each rank gets the row of the one before it, and rank 0 none.
  void hand_out_before(UnitRange round) {
    const Parts out_parts = parts_of(round);
    if (rank_ == 0) std::fill(all_of_mine_.begin(), all_of_mine_.end(), 0);
    mine_of_all_[0] = 0;
    for (std::size_t i = 0; i < n_; ++i) begins_[i] = (i == 0 ? 0 : i - 1) * mine_.count * op_.unit;
    call({.kind = Kind::kAllToAllV,
          .in = rows(n_),
          .out = taken_of(round),
          .in_parts = {mine_of_all_, begins_},
          .out_parts = out_parts});
  }

  world::CommunicatorImpl& impl_;
  const Kind kind_;
  const ConstArrayView in_;
  const ArrayView out_;
  const Operator& op_;
  const int root_;
  const base::Deadline end_;
  const std::size_t n_;
  const std::size_t rank_;
  Signature shown_;
  std::size_t units_ = 0;  // of what is cut into rounds
  std::size_t rounds_ = 0;
  UnitRange mine_{};  // of the round
  std::vector<std::byte> rows_, so_far_;
  std::vector<std::size_t> mine_of_all_, begins_, all_of_mine_;  // elements, by rank
};

}  // namespace

void all_reduce(Communicator& comm,
                ConstArrayView in,
                ArrayView out,
                const Operator& op,
                const OperatorOptions& options) {
  OwnReduction(comm, Kind::kAllReduce, in, out, op, options).run();
}

void reduce(Communicator& comm,
            ConstArrayView in,
            ArrayView out,
            const Operator& op,
            const OperatorOptions& options) {
  OwnReduction(comm, Kind::kReduce, in, out, op, options).run();
}

void reduce_scatter(Communicator& comm,
                    ConstArrayView in,
                    ArrayView out,
                    const Operator& op,
                    const OperatorOptions& options) {
  OwnReduction(comm, Kind::kReduceScatter, in, out, op, options).run();
}

void scan(Communicator& comm,
          ConstArrayView in,
          ArrayView out,
          const Operator& op,
          const OperatorOptions& options) {
  OwnReduction(comm, Kind::kScan, in, out, op, options).run();
}

void exscan(Communicator& comm,
            ConstArrayView in,
            ArrayView out,
            const Operator& op,
            const OperatorOptions& options) {
  OwnReduction(comm, Kind::kExscan, in, out, op, options).run();
}

}  // namespace hocket
