#include "interfaces/cli/bench/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "interfaces/cli/bench/libraries.h"

namespace hocket::cli::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr long kMostCalls = 100'000'000;
// The least number of batches of a case if time is short.
constexpr int kFewestBatches = 3;
// Failures in a row after which a library is not started again for this collective.
constexpr int kMostFailures = 3;

// A row that is being measured: the case that a team holds open in a slot.
struct Entry {
  std::unique_ptr<Team>* team = nullptr;
  int slot = 0;
  Row row;
  long calls = 1;
  Clock::duration spent{};  // time spent waiting for the team
};

Request request_for(Verb verb, const Entry& entry) {
  return {.verb = verb, .slot = entry.slot, .subject = entry.row.subject};
}

std::int64_t slowest(const std::vector<Answer>& answers) {
  std::int64_t most = 0;
  for (const Answer& answer : answers) most = std::max(most, answer.nanoseconds);
  return most;
}

// A resource: the cases of one point, opened on every team that can do them.
class PointRun {
 public:
  PointRun(const Plan& plan,
           Collective collective,
           DType dtype,
           std::size_t bytes,
           std::string place,
           std::optional<Clock::time_point> end,
           const Listeners& listeners)
      : plan_(plan), place_(std::move(place)), end_(end), listeners_(listeners) {
    subject_.collective = collective;
    subject_.dtype = dtype;
    subject_.op = plan.op;
    subject_.elements = elements_for(collective, bytes, dtype, plan.ranks);
  }

  Point run(std::vector<std::unique_ptr<Team>>& teams) {
    for (auto& team : teams) open(team);
    for (int turn = 1; turn <= plan_.checks; ++turn) {
      for_all("checking",
              [this, turn](Entry& entry) { check(entry, static_cast<std::uint32_t>(turn)); });
    }
    const double batch_ns = batch_length();
    for_all("calibrating", [this, batch_ns](Entry& entry) { calibrate(entry, batch_ns); });
    for (int batch = 1; batch <= plan_.repeats; ++batch) {
      if (end_ && batch > kFewestBatches && Clock::now() > *end_) break;
      for_all(fmt::format("batch {} of {}", batch, plan_.repeats), [this](Entry& entry) {
        if (may_go_on(entry)) time(entry);
      });
    }
    for_all("checking again", [this](Entry& entry) {
      check(entry, static_cast<std::uint32_t>(plan_.checks + 1));
      ask(entry, request_for(Verb::kClose, entry));
    });
    Point rows;
    for (Entry& entry : entries_) {
      // If a library failed, its calls were not checked afterwards, so their times do not count.
      if (*entry.team != nullptr && !entry.row.times_us.empty()) {
        rows.push_back(std::move(entry.row));
      }
    }
    return rows;
  }

 private:
  void open(std::unique_ptr<Team>& team) {
    if (team == nullptr) return;
    const bool has_symmetric =
        team->library() == kHocket || team->library() == kPeerEngine || team->library() == kBare;
    const bool has_choice = in_place_is_a_choice(subject_.collective);
    const bool has_arrays = subject_.collective != Collective::kBarrier;
    std::set<std::pair<Memory, bool>> done;
    for (const Memory wanted : plan_.memories) {
      for (const bool wanted_in_place : plan_.places) {
        const bool has_kinds =
            has_symmetric && has_arrays && in_symmetric_memory(subject_.collective);
        const Memory memory = has_kinds ? wanted : plan_.plain;
        const bool in_place =
            has_choice ? wanted_in_place : subject_.collective == Collective::kBroadcast;
        if (done.emplace(memory, in_place).second) open(team, memory, in_place);
      }
    }
  }

  void open(std::unique_ptr<Team>& team, Memory memory, bool in_place) {
    if (team == nullptr) return;
    Entry entry;
    entry.team = &team;
    entry.slot = static_cast<int>(entries_.size());
    entry.row.library = team->library();
    entry.row.subject = subject_;
    entry.row.subject.memory = memory;
    entry.row.subject.in_place = in_place;
    entry.row.ranks = plan_.ranks;
    entry.row.bytes = bytes_of(subject_, plan_.ranks);
    guarded(entry, [&](Entry& opened) {
      const std::vector<Answer> answers = ask(opened, request_for(Verb::kOpen, opened));
      for (const Answer& answer : answers) {
        if (answer.outcome != Outcome::kRefused) continue;
        listeners_.problem(fmt::format("{} does not do {}: {}",
                                       opened.row.library,
                                       describe(opened.row.subject),
                                       answer.text));
        return;
      }
      entries_.push_back(opened);
    });
  }

  // True if symmetric memory is measured as well. On GPUs it makes a difference only for
  // collectives that write directly to it.
  bool in_symmetric_memory(Collective collective) const {
    return plan_.plain != Memory::kCuda || writes_to_peers(collective);
  }

  static std::string describe(const Case& subject) {
    std::string text(name_of(subject.collective));
    if (reduces(subject.collective)) text += fmt::format(" {}", hocket::name_of(subject.op));
    return fmt::format("{} {}", text, hocket::name_of(subject.dtype));
  }

  template <typename F>
  void for_all(const std::string& what, F f) {
    for (Entry& entry : entries_) {
      if (*entry.team == nullptr) continue;
      listeners_.progress(fmt::format("{}{} {} B: {}, {}",
                                      place_,
                                      describe(subject_),
                                      bytes_of(subject_, plan_.ranks),
                                      entry.row.library,
                                      what));
      guarded(entry, f);
    }
  }

  std::vector<Answer> ask(Entry& entry, const Request& request) {
    const auto begin = Clock::now();
    std::vector<Answer> answers = (*entry.team)->ask(request);
    entry.spent += Clock::now() - begin;
    return answers;
  }

  // Returns whether a library may run another batch. With a time limit, a slow library runs fewer
  // batches, but at least one.
  bool may_go_on(const Entry& entry) const {
    return !end_ || entry.row.times_us.empty() || entry.spent < plan_.case_limit;
  }

  // The length of a batch in ns: as planned, or less if little time is left for this point.
  // Calibration, warm-up and checks take about as long as two batches.
  double batch_length() const {
    const double wanted = std::chrono::duration<double, std::nano>(plan_.batch).count();
    if (!end_ || entries_.empty()) return wanted;
    constexpr double kShortest = 2e5;
    const double left = std::chrono::duration<double, std::nano>(*end_ - Clock::now()).count();
    return std::clamp(
        left / static_cast<double>(entries_.size()) / (plan_.repeats + 2), kShortest, wanted);
  }

  // Calls `f` for a library. If it fails, the library is dropped, and the others continue.
  template <typename F>
  void guarded(Entry& entry, F f) {
    try {
      f(entry);
    } catch (const TeamFailed& error) {
      listeners_.problem(fmt::format("{} failed in {} of {} B, {} ranks: {}",
                                     entry.row.library,
                                     describe(subject_),
                                     entry.row.bytes,
                                     plan_.ranks,
                                     error.what()));
      listeners_.unfinished(
          {entry.row.library, entry.row.subject, plan_.ranks, entry.row.bytes, error.what()});
      entry.team->reset();
    }
  }

  void check(Entry& entry, std::uint32_t seed) {
    Request request = request_for(Verb::kCheck, entry);
    // Each point has different numbers, so that leftovers cannot be taken for results.
    request.seed = seed + 16 * static_cast<std::uint32_t>(entry.slot + entry.row.bytes);
    for (const Answer& answer : ask(entry, request)) {
      if (answer.outcome == Outcome::kWrong && entry.row.wrong.empty()) {
        entry.row.wrong = answer.text;
      }
    }
  }

  double run_ns(Entry& entry, long warmup, long calls) {
    Request request = request_for(Verb::kRun, entry);
    request.warmup = warmup;
    request.calls = calls;
    request.dirty = plan_.dirty;
    return static_cast<double>(slowest(ask(entry, request)));
  }

  void calibrate(Entry& entry, double wanted) {
    long calls = 1;
    for (;;) {
      const double took = std::max(1.0, run_ns(entry, calls, calls));
      const double fitting = std::ceil(wanted / took * static_cast<double>(calls));
      if (took >= wanted / 5 || calls >= kMostCalls) {
        entry.calls = static_cast<long>(std::clamp(fitting, 1.0, double(kMostCalls)));
        return;
      }
      calls = static_cast<long>(std::clamp(fitting / 2, 2.0 * double(calls), 32.0 * double(calls)));
    }
  }

  void time(Entry& entry) {
    const double took = run_ns(entry, std::max(1L, entry.calls / 8), entry.calls);
    const double messages =
        static_cast<double>(entry.calls) * messages_in_call(entry.row.subject.collective);
    entry.row.times_us.push_back(took / 1000 / messages);
  }

  const Plan& plan_;
  std::string place_;                     // position among the points: "[3/97] "
  std::optional<Clock::time_point> end_;  // of this point
  const Listeners& listeners_;
  Case subject_;
  std::vector<Entry> entries_;
};

}  // namespace

double quantile_of(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double place = part * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

double Row::median_us() const { return quantile_of(times_us, 0.5); }
double Row::lower_quartile_us() const { return quantile_of(times_us, 0.25); }
double Row::upper_quartile_us() const { return quantile_of(times_us, 0.75); }
double Row::min_us() const { return *std::min_element(times_us.begin(), times_us.end()); }
double Row::max_us() const { return *std::max_element(times_us.begin(), times_us.end()); }
double Row::gigaflops() const {
  const double median = median_us();
  return median > 0 ? operations_of(subject) / median / 1000 : 0;
}
double Row::algorithm_gbps() const {
  const double median = median_us();
  return median > 0 ? static_cast<double>(bytes) / median / 1000 : 0;
}
double Row::bus_gbps() const { return algorithm_gbps() * bus_factor(subject.collective, ranks); }

Ratio ratio_of(const Row& row, const Row& peer) {
  std::vector<double> side_by_side;
  for (std::size_t i = 0; i < std::min(row.times_us.size(), peer.times_us.size()); ++i) {
    side_by_side.push_back(row.times_us[i] / peer.times_us[i]);
  }
  return {quantile_of(side_by_side, 0.5),
          quantile_of(side_by_side, 0.25),
          quantile_of(side_by_side, 0.75)};
}

Ratio::Side Ratio::side() const noexcept {
  const double shown = std::round(median * 100) / 100;
  if (high < 1 && shown < 1) return Side::kBelow;
  return low > 1 && shown > 1 ? Side::kAbove : Side::kEven;
}

namespace {

// A collective, dtype and size, in the order of measuring.
struct Spot {
  Collective collective;
  DType dtype;
  std::size_t bytes;
};

std::vector<Spot> spots_of(const Plan& plan) {
  std::vector<Spot> spots;
  for (const Collective collective : plan.collectives) {
    const bool has_arrays = collective != Collective::kBarrier;
    std::set<std::pair<DType, std::size_t>> done;
    for (const DType asked : plan.dtypes) {
      for (const std::size_t bytes : plan.sizes) {
        const DType dtype = has_arrays ? asked : DType::kUInt8;
        if (done.emplace(dtype, elements_for(collective, bytes, dtype, plan.ranks)).second) {
          spots.push_back({collective, dtype, bytes});
        }
      }
    }
  }
  return spots;
}

// Returns the share of `time` that the first spot gets. Long arrays take longer to fill and check.
Clock::duration part_of(Clock::duration time, std::span<const Spot> spots) {
  const auto weight = [](const Spot& spot) {
    constexpr double kAsLongAsAnyOther = 4 << 20;
    return 1 + static_cast<double>(spot.bytes) / kAsLongAsAnyOther;
  };
  double all = 0;
  for (const Spot& spot : spots) all += weight(spot);
  const std::chrono::duration<double> part = time * (weight(spots.front()) / all);
  return std::chrono::duration_cast<Clock::duration>(part);
}

// Restarts the teams that have failed, except teams with kMostFailures failures in a row.
void revive(std::vector<std::unique_ptr<Team>>& teams,
            std::vector<int>& failures,
            const Listeners& listeners) {
  for (std::size_t i = 0; i < teams.size(); ++i) {
    if (teams[i] != nullptr || failures[i] < 1 || failures[i] >= kMostFailures) continue;
    teams[i] = listeners.restart(i);
    if (teams[i] == nullptr) failures[i] = kMostFailures;
  }
}

}  // namespace

std::vector<Point> measure(const Plan& plan,
                           std::vector<std::unique_ptr<Team>>& teams,
                           const Listeners& listeners) {
  std::vector<Point> points;
  std::vector<int> failures(teams.size());  // failures of each team in a row
  std::vector<bool> takes_part(teams.size());
  for (std::size_t i = 0; i < teams.size(); ++i) takes_part[i] = teams[i] != nullptr;
  const std::vector<Spot> spots = spots_of(plan);
  for (std::size_t k = 0; k < spots.size(); ++k) {
    const Spot& spot = spots[k];
    const auto now = Clock::now();
    if (plan.end && now >= *plan.end) {
      listeners.problem(fmt::format("the time was over before {} of {} points, {} ranks",
                                    spots.size() - k,
                                    spots.size(),
                                    plan.ranks));
      break;
    }
    std::optional<Clock::time_point> end;
    if (plan.end) end = now + part_of(*plan.end - now, std::span(spots).subspan(k));
    if (k > 0 && spot.collective != spots[k - 1].collective) {
      for (std::size_t i = 0; i < teams.size(); ++i) {
        if (takes_part[i] && teams[i] == nullptr) failures[i] = 1;
      }
    }
    revive(teams, failures, listeners);
    std::string place = fmt::format("[{}/{}] ", k + 1, spots.size());
    Point point =
        PointRun(plan, spot.collective, spot.dtype, spot.bytes, std::move(place), end, listeners)
            .run(teams);
    for (std::size_t i = 0; i < teams.size(); ++i) {
      failures[i] = teams[i] == nullptr && takes_part[i] ? failures[i] + 1 : 0;
    }
    if (point.empty()) continue;
    listeners.measured(point);
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace hocket::cli::bench
