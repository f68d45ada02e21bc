#include "interfaces/mpi/files/choice.h"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace hocket::mpi {
namespace {

constexpr std::int64_t kLeastWindow = 16 * kFilePage;
constexpr std::int64_t kLongestWindow = std::int64_t{1} << 30;  // offsets have 32 bits
// Two phases are quicker if each rank has so many runs, and if they are shorter than this. A read
// counts the gaps to its runs. docs/notes/performance.md has the measurements.
constexpr std::int64_t kManyRuns = 64;
constexpr double kShortRead = 2048;
constexpr double kShortReadOfCrowd = 512;  // if ranks share processors, as exchanges wait longer
constexpr double kShortWrite = 16384;

constexpr const char* kWayOfReads = "romio_cb_read";
constexpr const char* kWayOfWrites = "romio_cb_write";
constexpr const char* kWindow = "cb_buffer_size";
constexpr const char* kWays[] = {"automatic", "disable", "enable"};
enum Way : std::int64_t { kAutomatic, kDisabled, kEnabled };

std::optional<Way> way_of(const std::string& value) {
  for (const Way way : {kAutomatic, kDisabled, kEnabled}) {
    if (value == kWays[way]) return way;
  }
  return {};
}

// Returns the bytes of cb_buffer_size, rounded up to pages. Absent if the value is no such number.
std::optional<std::int64_t> window_bytes(const std::string& value) {
  std::int64_t bytes = 0;
  for (const char digit : value) {
    if (digit < '0' || digit > '9' || bytes > kLongestWindow) return {};
    bytes = 10 * bytes + (digit - '0');
  }
  if (bytes == 0 || bytes > kLongestWindow) return {};
  return (bytes + kFilePage - 1) / kFilePage * kFilePage;
}

// A rank's message to all ranks before a call. A value, whose members are sent as they are.
struct Facts {
  std::int64_t begin = 0, end = 0;  // of the rank's bytes in the file
  std::int64_t bytes = 0;
  std::int64_t runs = 0, bytes_of_runs = 0;  // the rank's first runs
  std::int64_t window = 0;                   // cb_buffer_size
  std::int64_t way = kAutomatic;
  std::int64_t is_write = 0;
  std::int64_t is_crowded = 0;  // the rank's host has fewer processors than ranks
};

Facts facts_of(const File& file, const Portion& own) {
  Facts facts{.bytes = own.end - own.begin, .is_write = own.is_write};
  facts.window = *window_bytes(*file.info->find(kWindow));
  facts.way = *way_of(*file.info->find(own.is_write ? kWayOfWrites : kWayOfReads));
  if (file.is_atomic) facts.way = kDisabled;
  const auto hosts = file.comm->net->hosts();
  const auto ranks =
      std::count(hosts.begin(), hosts.end(), hosts[static_cast<std::size_t>(file.comm->rank)]);
  facts.is_crowded = ranks > ::sysconf(_SC_NPROCESSORS_ONLN);
  if (facts.bytes == 0 || facts.way == kDisabled) return facts;
  facts.begin = own.view.place_of(own.begin);
  facts.end = own.view.place_of(own.end - 1) + 1;
  own.view.each_run(own.begin, own.end, [&](std::int64_t, std::int64_t length) {
    facts.bytes_of_runs += length;
    return ++facts.runs < 2 * kManyRuns;
  });
  return facts;
}

// Decides from the facts of all ranks. The sums are only compared, so they need not be exact.
std::optional<Rounds> decide(std::span<const Facts> all) {
  Rounds rounds{.begin = std::numeric_limits<std::int64_t>::max(), .window = kLongestWindow};
  std::int64_t end = 0, runs = 0;
  double bytes = 0, bytes_of_runs = 0, extents = 0;
  bool is_enabled = false, is_crowded = false;
  for (const Facts& one : all) {
    if (one.way == kDisabled || one.is_write != all[0].is_write) return {};
    is_enabled = is_enabled || one.way == kEnabled;
    is_crowded = is_crowded || one.is_crowded != 0;
    rounds.window = std::min(rounds.window, one.window);
    if (one.bytes == 0) continue;
    rounds.begin = std::min(rounds.begin, one.begin);
    end = std::max(end, one.end);
    bytes += static_cast<double>(one.bytes);
    extents += static_cast<double>(one.end - one.begin);
    runs += one.runs;
    bytes_of_runs += static_cast<double>(one.bytes_of_runs);
  }
  if (runs == 0) return {};
  const auto ranks = static_cast<std::int64_t>(all.size());
  const auto span = static_cast<double>(end - rounds.begin);
  const double length = bytes_of_runs / static_cast<double>(runs);
  // A write gains where runs of several ranks touch. They do if more than half is written. A read
  // gains also on one rank, because it goes on through gaps.
  const double short_read = is_crowded ? kShortReadOfCrowd : kShortRead;
  const bool is_quicker = all[0].is_write != 0
                              ? extents > span && 2 * bytes > span && length < kShortWrite
                              : length * std::max(1.0, span / bytes) < short_read;
  if (!is_enabled && !(is_quicker && runs >= ranks * kManyRuns)) return {};
  // If ranks overlap, a window gets more bytes than it has, so it becomes smaller.
  const std::int64_t share = (end - rounds.begin) / ranks / kFilePage * kFilePage + kFilePage;
  const auto fitting =
      static_cast<std::int64_t>(static_cast<double>(rounds.window) * std::min(1.0, span / bytes));
  const std::int64_t least = std::min(rounds.window, kLeastWindow);
  rounds.window = std::max(least, std::min(share, fitting / kFilePage * kFilePage));
  return rounds;
}

}  // namespace

void take_hints(File& file, const Info& given) {
  Info& used = *file.info;
  if (used.entries.empty()) {
    used.entries = {{kWayOfReads, "automatic"}, {kWayOfWrites, "automatic"}, {kWindow, "1048576"}};
  }
  for (const auto& [key, value] : given.entries) {
    const bool is_way = key == kWayOfReads || key == kWayOfWrites;
    if (is_way && !way_of(value)) continue;
    if (key == kWindow && !window_bytes(value)) continue;
    used.set(key, value);
  }
}

std::optional<Rounds> agreed_rounds(const File& file, const Portion& own) {
  constexpr std::size_t kCount = sizeof(Facts) / sizeof(std::int64_t);
  const Facts facts = facts_of(file, own);
  std::vector<Facts> all(static_cast<std::size_t>(file.comm->size()));
  file.comm->net->all_gather(ConstArrayView(&facts, kCount, DType::kInt64),
                             ArrayView(all.data(), kCount * all.size(), DType::kInt64));
  return decide(all);
}

}  // namespace hocket::mpi
