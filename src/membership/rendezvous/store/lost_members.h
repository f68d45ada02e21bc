// The members of a store whose connections have broken. They stay here until it is known how their
// processes have ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "foundation/base/deadline.h"
#include "foundation/os/process/process_exit.h"

namespace hocket::rendezvous {

// A member, as the server knows it. A value.
struct StoreMember {
  int rank = 0;
  int size = 0;             // 0: the member has not told it
  pid_t pid = 0;            // 0: the member is not known to be a process of this host
  std::uint64_t start = 0;  // see os::process_start
};

// A resource. One thread uses it. `take` returns each member once: when it is known how its process
// has ended, or after a delay.
class LostMembers {
 public:
  struct Loss {
    int rank, size;
    std::string how;  // "was killed by SIGKILL (Killed)"
  };

  void add(const StoreMember& member);
  // Removes a rank whose end its launcher has already reported.
  void forget(int rank, int size);
  // Removes and returns the losses that are complete or overdue.
  std::vector<Loss> take();
  // Returns the time at which `take` should be called again.
  base::Deadline next() const;

 private:
  struct Lost {
    StoreMember member;
    std::optional<os::ProcessExit> process;
    base::Deadline until;
  };
  std::vector<Lost> lost_;
};

}  // namespace hocket::rendezvous
