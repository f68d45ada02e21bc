// The launchers of a job of several hosts exchange their numbers of ranks, by the job's store and
// before any rank is started. Host 0's launcher serves the store, collects the numbers and decides:
//
//   launcher/I          "NNODES RANKS", from host I's launcher; this also claims the number I
//   launcher/layout     from host 0's: "yes" and the number of ranks of each host, or "no" and why
//   launcher/informed   counts the launchers that have read a "no", so that host 0 stays until then
//
// Ranks are numbered by host, and then within it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hocket/run_clock.h"
#include "hocket/store.h"
#include "interfaces/cli/run/launcher.h"

namespace hocket::cli {

// A value: this host's ranks among all.
struct Layout {
  int first_rank = 0;
  int size = 0;
};

// For a launcher other than host 0's: waits for the others, five minutes or --timeout at most.
// Throws InvalidArgument for options that contradict other hosts' options. Throws RendezvousError
// if another launcher does not come.
Layout ask_for_layout(const RunOptions& options, const Key& key, const std::string& job);

// Host 0's part. A resource; one thread.
class Meeting {
 public:
  // `address` is the store's, which this process serves. Throws RendezvousError.
  Meeting(const RunOptions& options,
          const Key& key,
          const std::string& job,
          const std::string& address);

  // Checks which launchers have come. Waits only before it throws, until the others have read the
  // reason. Absent: a launcher is missing. Throws as ask_for_layout does, on all hosts alike.
  std::optional<Layout> look();
  // Once, after ten seconds, names the missing hosts; else empty.
  std::string long_wait();

 private:
  [[noreturn]] void refuse(const std::string& why);
  std::string absent(std::chrono::milliseconds waited) const;

  std::shared_ptr<Store> store_;
  std::vector<int> ranks_;  // by host; 0: not known
  RunClock::time_point silent_until_;
  RunClock::time_point limit_;
};

}  // namespace hocket::cli
