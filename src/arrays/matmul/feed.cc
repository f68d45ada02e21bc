#include "arrays/matmul/feed.h"

#include <algorithm>

namespace hocket::matmul {
namespace {

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
// Returns whether the factor's elements are contiguous along the outer axis.
bool is_outer_first(Feed::Side side, const Factor& factor) {
  return (side == Feed::kLeft) != factor.is_transposed;
}

Stored stored_of(const Factor& factor) {
  if (!factor.is_transposed) return Stored::kPlain;
  return factor.is_conjugated ? Stored::kConjugateTransposed : Stored::kTransposed;
}

// Divides the steps into panels, so that each panel has a part of each step.
std::vector<std::vector<InnerStep>> in_panels(const std::vector<InnerStep>& steps,
                                              std::size_t count) {
  std::vector<std::vector<InnerStep>> panels(count);
  for (const InnerStep& step : steps) {
    std::vector<InnerStep> parts = parts_of_step(step, count);
    for (std::size_t t = 0; t < count; ++t) panels[t].push_back(std::move(parts[t]));
  }
  return panels;
}

}  // namespace

Feed::Feed(Communicator& comm,
           const Problem& problem,
           Local& local,
           const Workloads& workloads,
           std::size_t panels,
           std::optional<Duration> deadline)
    : comm_(comm),
      problem_(problem),
      local_(local),
      deadline_(deadline),
      me_(comm.rank()),
      element_(size_of(problem.dtype())) {
  const Workload mine = workloads(me_);
  std::size_t bytes = 0;
  for (const Side side : {kLeft, kRight}) {
    holders_[side] = holders(side, mine);
    for (const Holder& holder : holders_[side]) outer_count_[side] += total(holder.outer);
    const std::vector<bool> wanted = find_wanted(side, workloads);
    is_shown_[side] = wanted[static_cast<std::size_t>(me_)];
    if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) continue;
    shelf_at_[side] = bytes;
    bytes += (factor(side).tiling.most() * element_ + kLine - 1) / kLine * kLine;
  }
  if (bytes > 0) {
    buffers_.emplace(comm, bytes, deadline, local.memory());
    is_shared_ = buffers_->is_shared();
  }
  if (!is_shared_) {
    buffers_.reset();
    panels_ = in_panels(mine.steps, panels);
    is_narrow_ = std::all_of(
        panels_.begin(), panels_.end(), [&](const auto& steps) { return can_be_narrow(steps); });
    make_messages(workloads, panels);
    return;
  }
  is_narrow_ = can_be_narrow(mine.steps);
  // Steps whose parts are contiguous on both sides are multiplied in place. They come first. The
  // other steps are cut into shorter steps, whose parts are copied.
  auto& steps = panels_.emplace_back();
  for (const InnerStep& step : mine.steps) {
    if (is_direct(step)) steps.push_back(step);
  }
  for (const InnerStep& step : mine.steps) {
    if (is_direct(step)) continue;
    for (InnerStep& part : cut_step(step, local.panel())) steps.push_back(std::move(part));
  }
}

void Feed::reserve() {
  fetches_.resize(panels());
  for (std::size_t t = 0; t < panels(); ++t) {
    fetches_[t].resize(steps(t).size());
    for (std::size_t s = 0; s < steps(t).size(); ++s) {
      for (const Side side : {kLeft, kRight}) {
        Fetch& fetch = fetches_[t][s][side] = make_fetch(side, t, s);
        if (fetch.is_direct) continue;
        for (Piece& piece : fetch.pieces) local_.prepare(piece.patch, change(side));
      }
    }
  }
  std::size_t most_sent = 0, most_received = 0;
  for (Message& message : messages_) {
    for (Message::Pack& pack : message.packs) local_.prepare(pack.patch, Change::kNone);
    most_sent = std::max(most_sent, message.sent);
    most_received = std::max(most_received, message.received);
  }
  for (std::size_t i = 0; i < 2; ++i) {
    packed_[i] = local_.room(most_sent * element_);
    received_[i] = local_.room(most_received * element_);
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

// Returns, for each rank, whether other ranks need its parts of a factor.
std::vector<bool> Feed::find_wanted(Side side, const Workloads& workloads) const {
  std::vector<bool> wanted(static_cast<std::size_t>(comm_.size()));
  if (factor(side).tiling.is_replicated()) return wanted;
  for (int rank = 0; rank < comm_.size(); ++rank) {
    const Workload work = workloads(rank);
    const std::vector<Holder> holding = holders(side, work);
    for (const InnerStep& step : work.steps) {
      if (step.length == 0) continue;
      for (const Holder& holder : holding) {
        const int at = rank_at(side, holder.place, inner_place(side, step));
        if (at != rank) wanted[static_cast<std::size_t>(at)] = true;
      }
    }
  }
  return wanted;
}

bool Feed::can_be_narrow(const std::vector<InnerStep>& steps) const {
  const Factor &left = problem_.left, &right = problem_.right;
  if (!is_float8(left.dtype) || !left.is_transposed || right.is_transposed) return false;
  const auto fits = [](std::size_t count) { return count % kFloat8Unit == 0; };
  const auto all_fit = [&](const std::vector<std::size_t>& counts) {
    return std::all_of(counts.begin(), counts.end(), fits);
  };
  if (!all_fit(problem_.result.axis(0).held) || !all_fit(left.tiling.axis(1).held) ||
      !all_fit(right.tiling.axis(0).held)) {
    return false;
  }
  for (const InnerStep& step : steps) {
    for (const InnerRun& run : step.runs) {
      if (!fits(run.left) || !fits(run.right) || !fits(run.length)) return false;
    }
  }
  return local_.multiplies(left.dtype, right.dtype);
}

Change Feed::change(Side side) const {
  const DType dtype = factor(side).dtype, wanted = this->dtype(side);
  if (dtype != wanted) {
    return wanted == DType::kFloat16 ? Change::kToFloat16 : Change::kToFloat32;
  }
  const bool is_complex = dtype == DType::kComplex64 || dtype == DType::kComplex128;
  // BLAS conjugates only transposed matrices.
  return is_complex && factor(side).is_conjugated && !factor(side).is_transposed
             ? Change::kConjugate
             : Change::kNone;
}

// Returns whether a step's part is multiplied in place, without a copy.
bool Feed::is_direct(Side side, const InnerStep& step) const {
  const auto& holding = holders_[side];
  if (holding.size() != 1 || change(side) != Change::kNone) return false;
  const bool is_mine = rank_at(side, holding[0].place, inner_place(side, step)) == me_;
  return holding[0].outer.size() == 1 && inner_runs(side, step).size() == 1 &&
         (is_mine || local_.multiplies_afar());
}

void Feed::make_messages(const Workloads& workloads, std::size_t panels) {
  const auto ranks = static_cast<std::size_t>(comm_.size());
  messages_.resize(panels);
  for (Message& message : messages_) {
    message.sends.resize(ranks);
    message.receives.resize(ranks);
  }
  for (int to = 0; to < comm_.size(); ++to) {
    if (to == me_) continue;
    const Workload work = workloads(to);
    const auto their_panels = in_panels(work.steps, panels);
    std::array<std::vector<Run>, 2> outer;
    for (const Side side : {kLeft, kRight}) {
      if (factor(side).tiling.is_replicated()) continue;
      outer[side] = packed_to(shared_runs(wanted_axis(side, work),
                                          wanted_place(side, work),
                                          outer_axis(side, factor(side)),
                                          places(side, me_)[0]));
    }
    for (std::size_t t = 0; t < panels; ++t) {
      for (const InnerStep& step : their_panels[t]) {
        for (const Side side : {kLeft, kRight}) {
          if (outer[side].empty() || step.length == 0 ||
              inner_place(side, step) != places(side, me_)[1]) {
            continue;
          }
          const std::size_t count = total(outer[side]) * step.length;
          const bool outer_first = is_outer_first(side, factor(side));
          std::vector<Run> inner = inner_runs(side, step);
          Message& message = messages_[t];
          message.packs.push_back(
              {side,
               {outer_first ? outer[side] : inner, outer_first ? inner : outer[side]},
               message.sent,
               outer_first ? total(outer[side]) : step.length});
          message.sends[static_cast<std::size_t>(to)] += count;
          message.sent += count;
        }
      }
    }
  }
  for (std::size_t t = 0; t < panels; ++t) {
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
          places[h] = message.receives[r];  // offset in that rank's data, which begins below
          message.receives[r] += total(holders_[side][h].outer) * step.length;
          from[r].push_back(&places[h]);
        }
      }
    }
    for (std::size_t r = 0; r < ranks; ++r) {
      for (std::size_t* place : from[r]) *place += message.received;
      message.received += message.receives[r];
    }
  }
}

Feed::Fetch Feed::make_fetch(Side side, std::size_t panel, std::size_t number) const {
  const InnerStep& step = steps(panel)[number];
  const bool outer_first = is_outer_first(side, factor(side));
  const std::vector<Run> inner = inner_runs(side, step);
  const std::vector<Run> all_inner{{0, 0, step.length}};
  const auto& holding = holders_[side];
  Fetch fetch{.stride = outer_first ? outer_count_[side] : step.length};
  for (std::size_t h = 0; h < holding.size(); ++h) {
    Piece piece{.rank = rank_at(side, holding[h].place, inner_place(side, step))};
    piece.is_message = !is_shared_ && piece.rank != me_;
    piece.at = piece.is_message ? messages_[panel].places[number][side][h] : 0;
    if (!piece.is_message) {
      piece.stride = stride_of(side, piece.rank);
    } else {
      piece.stride = outer_first ? total(holding[h].outer) : step.length;
    }
    const auto& outer_runs = piece.is_message ? holding[h].packed : holding[h].outer;
    const auto& inner_here = piece.is_message ? all_inner : inner;
    piece.patch = {outer_first ? outer_runs : inner_here, outer_first ? inner_here : outer_runs};
    fetch.pieces.push_back(std::move(piece));
  }
  fetch.is_direct =
      step.length > 0 && holding.size() == 1 && change(side) == Change::kNone &&
      fetch.pieces[0].patch.is_one_piece() &&
      (fetch.pieces[0].rank == me_ || fetch.pieces[0].is_message || local_.multiplies_afar());
  if (fetch.is_direct) return fetch;
  fetch.bytes = outer_count_[side] * step.length * size_of(dtype(side));
  return fetch;
}

std::size_t Feed::room(Side side, std::size_t panel, std::size_t step) const {
  return fetches_[panel][step][side].bytes;
}

std::size_t Feed::room(Side side) const {
  std::size_t most = 0;
  for (const auto& panel : fetches_) {
    for (const auto& step : panel) most = std::max(most, step[side].bytes);
  }
  return most;
}

void Feed::show(const void* left, const void* right) {
  given_ = {static_cast<const std::byte*>(left), static_cast<const std::byte*>(right)};
  if (!is_shared_) return;
  for (const Side side : {kLeft, kRight}) {
    if (!is_shown_[side]) continue;
    local_.copy(
        buffers_->mine() + shelf_at_[side], given_[side], factor(side).tiling.held(me_) * element_);
  }
}

void Feed::open() {
  if (!is_shared_) start(0);
}

void Feed::start(std::size_t panel) {
  const Message& message = messages_[panel];
  const Room &packed = packed_[panel % 2], &received = received_[panel % 2];
  for (const Message::Pack& pack : message.packs) {
    local_.copy(pack.patch,
                {given_[pack.side], stride_of(pack.side, me_)},
                {packed.data() + pack.at * element_, pack.stride},
                factor(pack.side).dtype,
                Change::kNone);
  }
  works_[panel % 2] =
      comm_.all_to_all_v_async(local_.view(packed.data(), message.sent, problem_.dtype()),
                               {.counts = message.sends},
                               local_.view(received.data(), message.received, problem_.dtype()),
                               {.counts = message.receives},
                               {.deadline = deadline_, .stream = local_.aside()});
}

void Feed::wait(std::size_t panel) {
  if (is_shared_) return;
  local_.join(works_[panel % 2]);
  if (panel + 1 < panels()) start(panel + 1);
}

void Feed::close() noexcept {
  if (buffers_) buffers_->turn();
}

const std::byte* Feed::held(Side side, int rank) const {
  return rank == me_ ? given_[side] : buffers_->of(rank) + shelf_at_[side];
}

FactorView Feed::fetch(Side side, std::size_t panel, std::size_t step, const Room& room) const {
  const Fetch& fetch = fetches_[panel][step][side];
  FactorView view{.columns = {room.data(), fetch.stride}, .stored = stored_of(factor(side))};
  for (const Piece& piece : fetch.pieces) {
    const std::byte* const at = piece.is_message ? received_[panel % 2].data() + piece.at * element_
                                                 : held(side, piece.rank);
    if (fetch.is_direct) {
      const std::size_t begin =
          piece.patch.rows[0].from + piece.patch.columns[0].from * piece.stride;
      view.columns = {at + begin * element_, piece.stride};
      return view;
    }
    local_.copy(piece.patch,
                {at, piece.stride},
                {room.data(), fetch.stride},
                factor(side).dtype,
                change(side));
  }
  return view;
}

}  // namespace hocket::matmul
