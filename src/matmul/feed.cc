#include "matmul/feed.h"

#include <algorithm>
#include <numeric>

namespace hocket::matmul {
namespace {

// Elements of the inner extent that are put together at once: enough for a BLAS to be quick, and
// few enough for the caches.
constexpr std::size_t kPanel = 512;
constexpr std::size_t kLine = 64;

const Axis& outer_axis(Feed::Side side, const Factor& factor) {
  return factor.tiling.axis(side == Feed::kLeft ? 0 : 1);
}
const Axis& wanted_axis(Feed::Side side, const Workload& work) {
  return side == Feed::kLeft ? work.m : work.n;
}
std::size_t wanted_place(Feed::Side side, const Workload& work) {
  return side == Feed::kLeft ? work.m_place : work.n_place;
}
std::size_t inner_place(Feed::Side side, const InnerStep& step) {
  return side == Feed::kLeft ? step.left_place : step.right_place;
}
std::vector<Run> inner_runs(Feed::Side side, const InnerStep& step) {
  return side == Feed::kLeft ? step.left_runs() : step.right_runs();
}
// Whether the outer axis is the one that elements lie along.
bool is_outer_first(Feed::Side side, const Factor& factor) {
  return (side == Feed::kLeft) != factor.is_transposed;
}

Change change_of(const Factor& factor, DType dtype) {
  if (dtype == DType::kFloat16 || dtype == DType::kBFloat16) return Change::kToFloat32;
  const bool is_complex = dtype == DType::kComplex64 || dtype == DType::kComplex128;
  // BLAS conjugates what it transposes, and nothing else.
  return is_complex && factor.is_conjugated && !factor.is_transposed ? Change::kConjugate
                                                                     : Change::kNone;
}

Stored stored_of(const Factor& factor) {
  if (!factor.is_transposed) return Stored::kPlain;
  return factor.is_conjugated ? Stored::kConjugateTransposed : Stored::kTransposed;
}

}  // namespace

Feed::Feed(Communicator& comm,
           const Problem& problem,
           const Workloads& workloads,
           std::optional<Duration> deadline)
    : comm_(comm),
      problem_(problem),
      deadline_(deadline),
      me_(comm.rank()),
      element_(size_of(problem.dtype)),
      mine_(workloads(comm.rank())) {
  std::size_t bytes = 0;
  for (const Side side : {kLeft, kRight}) {
    holders_[side] = holders(side, mine_);
    for (const Holder& holder : holders_[side]) outer_count_[side] += total(holder.outer);
    const std::vector<bool> wanted = find_wanted(side, workloads);
    is_shown_[side] = wanted[static_cast<std::size_t>(me_)];
    if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) continue;
    shelf_at_[side] = bytes;
    bytes += (factor(side).tiling.most() * element_ + kLine - 1) / kLine * kLine;
  }
  if (bytes > 0) {
    shelves_.emplace(comm, bytes, deadline);
    is_shared_ = shelves_->is_shared();
  }
  if (!is_shared_) {
    shelves_.reset();
    make_messages(workloads);
    return;
  }
  // What lies in one piece on both sides is multiplied as it lies.
  for (auto& panel : mine_.panels) {
    std::vector<InnerStep> steps;
    for (const InnerStep& step : panel) {
      if (is_direct(kLeft, step) && is_direct(kRight, step)) {
        steps.push_back(step);
      } else {
        for (InnerStep& part : cut_step(step, kPanel)) steps.push_back(std::move(part));
      }
    }
    panel = std::move(steps);
  }
}

std::array<std::size_t, 2> Feed::places(Side side, int rank) const {
  const auto place = factor(side).tiling.place_of(rank);
  return side == kLeft ? place : std::array{place[1], place[0]};
}

int Feed::rank_at(Side side, std::size_t outer, std::size_t inner) const {
  const Tiling& tiling = factor(side).tiling;
  return side == kLeft ? tiling.rank_at(outer, inner, me_) : tiling.rank_at(inner, outer, me_);
}

std::size_t Feed::stride_of(Side side, int rank) const {
  return factor(side).tiling.held(rank, factor(side).is_transposed ? 1 : 0);
}

std::vector<Feed::Holder> Feed::holders(Side side, const Workload& work) const {
  std::vector<Holder> all;
  const Axis& axis = outer_axis(side, factor(side));
  for (std::size_t place = 0; place < axis.places(); ++place) {
    auto runs = shared_runs(wanted_axis(side, work), wanted_place(side, work), axis, place);
    if (runs.empty()) continue;
    auto packed = packed_from(runs);
    all.push_back({place, std::move(runs), std::move(packed)});
  }
  return all;
}

// Whose parts others need, by rank.
std::vector<bool> Feed::find_wanted(Side side, const Workloads& workloads) const {
  std::vector<bool> wanted(static_cast<std::size_t>(comm_.size()));
  if (factor(side).tiling.is_replicated()) return wanted;
  for (int rank = 0; rank < comm_.size(); ++rank) {
    const Workload work = workloads(rank);
    const std::vector<Holder> holding = holders(side, work);
    for (const auto& panel : work.panels) {
      for (const InnerStep& step : panel) {
        if (step.length == 0) continue;
        for (const Holder& holder : holding) {
          const int at = rank_at(side, holder.place, inner_place(side, step));
          if (at != rank) wanted[static_cast<std::size_t>(at)] = true;
        }
      }
    }
  }
  return wanted;
}

bool Feed::is_direct(Side side, const InnerStep& step) const {
  const auto& holding = holders_[side];
  return holding.size() == 1 && holding[0].outer.size() == 1 &&
         inner_runs(side, step).size() == 1 &&
         change_of(factor(side), problem_.dtype) == Change::kNone;
}

void Feed::make_messages(const Workloads& workloads) {
  const auto ranks = static_cast<std::size_t>(comm_.size());
  messages_.resize(panels());
  for (Message& message : messages_) {
    message.sends.resize(ranks);
    message.receives.resize(ranks);
  }
  std::vector<std::size_t> sent(panels());
  for (int to = 0; to < comm_.size(); ++to) {
    if (to == me_) continue;
    const Workload work = workloads(to);
    std::array<std::vector<Run>, 2> outer;
    for (const Side side : {kLeft, kRight}) {
      if (factor(side).tiling.is_replicated()) continue;
      outer[side] = packed_to(shared_runs(wanted_axis(side, work),
                                          wanted_place(side, work),
                                          outer_axis(side, factor(side)),
                                          places(side, me_)[0]));
    }
    for (std::size_t t = 0; t < panels(); ++t) {
      for (const InnerStep& step : work.panels[t]) {
        for (const Side side : {kLeft, kRight}) {
          if (outer[side].empty() || step.length == 0 ||
              inner_place(side, step) != places(side, me_)[1]) {
            continue;
          }
          const std::size_t count = total(outer[side]) * step.length;
          const bool outer_first = is_outer_first(side, factor(side));
          std::vector<Run> inner = inner_runs(side, step);
          messages_[t].packs.push_back({side,
                                        outer_first ? outer[side] : inner,
                                        outer_first ? inner : outer[side],
                                        sent[t],
                                        outer_first ? total(outer[side]) : step.length});
          messages_[t].sends[static_cast<std::size_t>(to)] += count;
          sent[t] += count;
        }
      }
    }
  }
  std::size_t most_sent = 0, most_received = 0;
  for (std::size_t t = 0; t < panels(); ++t) {
    Message& message = messages_[t];
    message.places.resize(steps(t).size());
    std::vector<std::vector<std::size_t*>> from(ranks);
    for (std::size_t s = 0; s < steps(t).size(); ++s) {
      const InnerStep& step = steps(t)[s];
      for (const Side side : {kLeft, kRight}) {
        auto& places = message.places[s][side];
        places.resize(holders_[side].size());
        for (std::size_t h = 0; h < places.size(); ++h) {
          const int rank = rank_at(side, holders_[side][h].place, inner_place(side, step));
          if (rank == me_ || step.length == 0) continue;
          const auto r = static_cast<std::size_t>(rank);
          places[h] = message.receives[r];  // of that rank's part, which begins below
          message.receives[r] += total(holders_[side][h].outer) * step.length;
          from[r].push_back(&places[h]);
        }
      }
    }
    std::size_t begin = 0;
    for (std::size_t r = 0; r < ranks; ++r) {
      for (std::size_t* place : from[r]) *place += begin;
      begin += message.receives[r];
    }
    most_sent = std::max(most_sent, sent[t]);
    most_received = std::max(most_received, begin);
  }
  for (std::size_t i = 0; i < 2; ++i) {
    packed_[i].resize(most_sent * element_);
    received_[i].resize(most_received * element_);
  }
}

std::size_t Feed::room(Side side) const {
  const bool grows = change_of(factor(side), problem_.dtype) == Change::kToFloat32;
  std::size_t longest = 0;
  for (const auto& panel : mine_.panels) {
    for (const InnerStep& step : panel) {
      if (!is_shared_ || !is_direct(side, step)) longest = std::max(longest, step.length);
    }
  }
  return longest * outer_count_[side] * (grows ? size_of(DType::kFloat32) : element_);
}

void Feed::show(const void* left, const void* right) {
  given_ = {static_cast<const std::byte*>(left), static_cast<const std::byte*>(right)};
  if (!is_shared_) return;
  for (const Side side : {kLeft, kRight}) {
    if (!is_shown_[side]) continue;
    std::copy_n(
        given_[side], factor(side).tiling.held(me_) * element_, shelves_->mine() + shelf_at_[side]);
  }
}

void Feed::open() {
  if (!is_shared_) start(0);
}

void Feed::start(std::size_t panel) {
  const Message& message = messages_[panel];
  auto &packed = packed_[panel % 2], &received = received_[panel % 2];
  for (const Message::Pack& pack : message.packs) {
    copy_block(pack.rows,
               pack.columns,
               {given_[pack.side], stride_of(pack.side, me_)},
               {packed.data() + pack.at * element_, pack.stride},
               problem_.dtype);
  }
  const auto count = [](const std::vector<std::size_t>& counts) {
    return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  };
  works_[panel % 2] =
      comm_.all_to_all_v_async(ConstArrayView(packed.data(), count(message.sends), problem_.dtype),
                               {.counts = message.sends},
                               ArrayView(received.data(), count(message.receives), problem_.dtype),
                               {.counts = message.receives},
                               {.deadline = deadline_});
}

void Feed::wait(std::size_t panel) {
  if (is_shared_) return;
  works_[panel % 2].wait();
  if (panel + 1 < panels()) start(panel + 1);
}

void Feed::close() noexcept {
  if (shelves_) shelves_->turn();
}

Columns<const std::byte> Feed::held(Side side, int rank) const {
  const std::byte* at = rank == me_ ? given_[side] : shelves_->of(rank) + shelf_at_[side];
  return {at, stride_of(side, rank)};
}

FactorView Feed::fetch(Side side,
                       std::size_t panel,
                       std::size_t number,
                       std::vector<std::byte>& room) const {
  const InnerStep& step = steps(panel)[number];
  const Factor& source = factor(side);
  const bool outer_first = is_outer_first(side, source);
  const Change change = change_of(source, problem_.dtype);
  const std::vector<Run> inner = inner_runs(side, step);
  const std::vector<Run> all_inner{{0, 0, step.length}};
  const auto& holding = holders_[side];
  FactorView view{.stored = stored_of(source)};
  for (std::size_t h = 0; h < holding.size(); ++h) {
    const int rank = rank_at(side, holding[h].place, inner_place(side, step));
    const bool is_message = !is_shared_ && rank != me_;
    Columns<const std::byte> from;
    if (is_message) {
      from = {received_[panel % 2].data() + messages_[panel].places[number][side][h] * element_,
              outer_first ? total(holding[h].outer) : step.length};
    } else {
      from = held(side, rank);
    }
    const auto& outer_runs = is_message ? holding[h].packed : holding[h].outer;
    const auto& inner_here = is_message ? all_inner : inner;
    const auto &rows = outer_first ? outer_runs : inner_here,
               &columns = outer_first ? inner_here : outer_runs;
    if (holding.size() == 1 && rows.size() == 1 && columns.size() == 1 && change == Change::kNone) {
      view.columns = {from.at + (rows[0].from + columns[0].from * from.stride) * element_,
                      from.stride};
      return view;
    }
    const std::size_t stride = outer_first ? outer_count_[side] : step.length;
    const std::size_t size = outer_count_[side] * step.length *
                             (change == Change::kToFloat32 ? size_of(DType::kFloat32) : element_);
    if (room.size() < size) room.resize(size);
    view.columns = {room.data(), stride};
    copy_block(rows, columns, from, {room.data(), stride}, problem_.dtype, change);
  }
  return view;
}

}  // namespace hocket::matmul
