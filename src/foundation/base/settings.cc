// The table of the variables that belong to no engine.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "foundation/base/config.h"
#include "foundation/base/log.h"

namespace hocket::base {
namespace {

using Row = SettingRow;

constexpr std::array kRows{
    Row{"HOCKET_LOG", "What is logged: debug, info, warning (default), error, off"},
    Row{"HOCKET_DEADLINE", "Seconds a call may take, or forever; default 300"},
    Row{"HOCKET_WARN",
        "Seconds after which a wait says who has not come; default 10; 0: it says nothing"},
    Row{"HOCKET_DEADLOCK_AFTER",
        "Seconds after which a wait looks for a deadlock; default 0.03; 0: it does not"},
    Row{"HOCKET_ENGINES", "Engines to use, best first, with commas; default all that work"},
    Row{"HOCKET_ALGORITHM",
        "Algorithms to use whatever they cost: NAME or COLLECTIVE=NAME, with commas"},
    Row{"HOCKET_SEGMENT_GIB", "Shared memory a rank may use, in GiB; default by the machine"},
    Row{"HOCKET_DUMP_DIR", "Folder where a failing rank writes its last calls; default none"},
    Row{"HOCKET_TRACE",
        "Folder where each rank writes all its calls, for hocket trace; default none"},
    Row{"HOCKET_AUDIT",
        "Folder where each rank keeps digests of its calls' arrays, for hocket trace --diff; 1: "
        "that "
        "of HOCKET_TRACE, or hocket-audit; default none"},
    Row{"HOCKET_TOP", "0: `hocket top` is not shown what this rank does; default 1"},
    Row{"HOCKET_METRICS",
        "HOST:PORT where the job's metrics are served, or count: by others; default nowhere"},
    Row{"HOCKET_METRICS_TOKEN", "What readers of metrics must show; default nothing"},
    Row{"HOCKET_NVSHMEM_LIBRARY",
        "NVSHMEM's host library; default: in the process, Python's package, the system's"},
    Row{"HOCKET_BLAS_LIBRARY",
        "What multiplies within a rank: openblas, mkl, blis, none, a file; default the first "
        "found"},
    Row{"HOCKET_CUBLAS_LIBRARY",
        "File of cuBLAS; default the process's own, Python's package's, the system's"},
    Row{"HOCKET_CUFFT_LIBRARY",
        "File of cuFFT; default the process's own, Python's package's, the system's"},
    Row{"HOCKET_FFT_LIBRARY",
        "What transforms within a rank: fftw, mkl, eigen, a file; default FFTW where it is, Eigen"},
    Row{kMulticastVariable, "1: libraries may use NVLink multicast (NVLS) between GPUs; default 0"},
    Row{"HOCKET_COSTS",
        "File of `hocket bench --tune`: which engine carries what on GPUs; default hocket's own"},
    Row{"HOCKET_RANK", "This process's number in the job; set by hocket run"},
    Row{"HOCKET_SIZE", "Number of processes of the job; set by hocket run"},
    Row{"HOCKET_LOCAL_RANK", "This process's number on its host; set by hocket run"},
    Row{"HOCKET_LOCAL_SIZE", "Number of the job's processes on this host; set by hocket run"},
    Row{"HOCKET_STORE", "Where the ranks meet, host:port or unix:NAME; set by hocket run"},
    Row{"HOCKET_JOB", "The job's name, no secret; set by hocket run"},
    Row{"HOCKET_DOOR",
        "Where newcomers wait to join the running job, host:port or unix:NAME; default this host"},
    Row{"HOCKET_JOIN", "The running job that this process joins: its door's address, or its name"},
    Row{"HOCKET_KEY_FD", "Descriptor that holds the job's key; set by hocket run"},
    Row{"HOCKET_WITHIN",
        "Other launchers' variables that hocket run was started with; set by hocket run"},
    Row{"HOCKET_CHILD_OF", "The rank that started this process; set by hocket.init in Python"},
    Row{"HOCKET_KEY_FILE", "File with the job's key, made by hocket key"},
    Row{"HOCKET_TRUST_NETWORK", "1: no key between hosts. Anybody on the network can join"},
    Row{"HOCKET_INTERFACE",
        "Network interface, or an address of it, for other hosts; default the way to the store"},
    Row{"HOCKET_PORTS",
        "Ports on which ranks listen for other hosts, low-high; default: the system chooses"},
    Row{"HOCKET_SILENCE", "Seconds after which a host that says nothing counts as lost; default 3"},
    Row{"HOCKET_SINGLE_COPY",
        "Whether ranks of a host copy from and to each other's arrays by the kernel: auto "
        "(default), "
        "where that is quicker; always, where they may; never"},
    Row{"HOCKET_HOST",
        "Added to the host's identity: ranks that differ in it count as on different hosts"},
    Row{"HOCKET_COMPAT", "Packages that hocket stands in for in Python; set by hocket.compat"},
};

// Prefixes of the variables of hocket's own tests and benchmarks, which cause no warning.
constexpr std::array kOwn{"HOCKET_TEST_", "HOCKET_FAKE_", "HOCKET_BENCH_", "HOCKET_BIN"};

// Returns the Levenshtein distance of two words.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t before = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = before + (a[i - 1] == b[j - 1] ? 0 : 1);
      before = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row.back();
}

}  // namespace

std::span<const SettingRow> common_settings() { return kRows; }

void warn_of_unknown_settings(std::span<const SettingRow> more) {
  static std::atomic<bool> has_looked{false};
  if (has_looked.exchange(true)) return;
  std::vector<Row> rows(kRows.begin(), kRows.end());
  rows.insert(rows.end(), more.begin(), more.end());
  for (const std::string& name : environment_names("HOCKET_")) {
    const auto is_own = [&](const char* own) { return name.starts_with(own); };
    if (std::ranges::any_of(kOwn, is_own)) continue;
    const Row& nearest = *std::ranges::min_element(
        rows, {}, [&](const Row& row) { return distance(name, row.name); });
    const std::size_t off = distance(name, nearest.name);
    if (off == 0) continue;
    constexpr std::size_t kAlike = 6;
    log(LogLevel::kWarning,
        fmt::format("there is no setting {}; {}",
                    name,
                    off <= kAlike ? fmt::format("did you mean {}?", nearest.name)
                                  : "`hocket doctor --env` lists them"));
  }
}

}  // namespace hocket::base
