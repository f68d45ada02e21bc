// The members of a store whose connections broke, until the ends of their processes are known.
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

// A member as the server knows it. A value.
struct StoreMember {
  int rank = 0;
  int size = 0;             // 0: the member did not say
  pid_t pid = 0;            // 0: the member is not known to be a process of this host
  std::uint64_t start = 0;  // see os::process_start
};

// A resource; one thread. Every member leaves the list once, with the way its process ended, or
// with less if that stays unknown.
class LostMembers {
 public:
  struct Loss {
    int rank, size;
    std::string how;  // "was killed by SIGKILL (Killed)"
  };

  void add(const StoreMember& member);
  // A launcher has reported the end of this rank.
  void forget(int rank, int size);
  // The losses that need to wait no longer.
  std::vector<Loss> take();
  // The time of the next call of `take`.
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
