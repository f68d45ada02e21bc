// The launchers of a job of several hosts exchange their numbers of ranks, by the job's store and
// before any rank is started. Host 0's launcher serves the store, collects the numbers and decides:
//
//   launcher/I          "NNODES RANKS", from host I's launcher; this also claims the number I
//   launcher/absent     from host 0's: the numbers of the missing hosts
//   launcher/layout     from host 0's: "yes" and the number of ranks of each host, "no" and the
//                       reason, or "late" and the missing hosts
//   launcher/informed   counts the launchers that have read such a refusal, so that host 0 stays
//                       until then
//
// Ranks are numbered by host, and then within it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hocket/error.h"
#include "hocket/run_clock.h"
#include "hocket/store.h"
#include "interfaces/cli/run/launcher.h"

namespace hocket::cli {

// A value: this host's ranks among all.
struct Layout {
  int first_rank = 0;
  int size = 0;
};

// Thrown if launchers of other hosts do not come in time. `hocket run` then ends as if its time
// limit had passed.
class HostsMissing : public RendezvousError {
  using RendezvousError::RendezvousError;
};

// Called by a launcher other than host 0's. Waits for the others, at most for the join timeout.
// Throws InvalidArgument for options that contradict those of other hosts. Throws HostsMissing, and
// RendezvousError if host 0's launcher cannot be reached or has ended.
Layout ask_for_layout(const RunOptions& options, const Key& key, const std::string& job);

// Host 0's part. A resource; one thread.
class Meeting {
 public:
  // `server` is the job's store, which outlives this object. Throws RendezvousError.
  Meeting(const RunOptions& options, const Key& key, const std::string& job, StoreServer& server);

  // Checks which launchers have come. Returns nothing if a launcher is missing. Throws the errors
  // of ask_for_layout, the same on all hosts. Before it throws, it waits until the other launchers
  // have read the reason.
  std::optional<Layout> look();
  // Returns a warning that names the missing hosts, once, after ten seconds. Empty otherwise.
  std::string long_wait();

 private:
  void require_launchers();
  void note_absent();
  std::vector<std::size_t> absent() const;
  std::string text_of_absent(std::chrono::milliseconds waited) const;
  // Tells the other launchers the refusal, and waits for a moment until they have read it.
  void tell_refusal(const char* verdict, const std::string& why);

  StoreServer& server_;
  std::shared_ptr<Store> store_;
  std::vector<int> ranks_;  // by host; 0: not known
  std::chrono::milliseconds patience_;
  std::string told_absent_;  // the last text of launcher/absent
  RunClock::time_point silent_until_;
  RunClock::time_point limit_;
};

}  // namespace hocket::cli
