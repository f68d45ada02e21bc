#include "membership/rendezvous/wire/origin.h"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>

#include "foundation/base/hash.h"
#include "foundation/os/machine/host_identity.h"
#include "foundation/os/process/process_exit.h"
#include "foundation/os/process/process_facts.h"

namespace hocket::rendezvous {

Origin origin_of_this_process() {
  const std::uint64_t host = base::hash_of(os::machine_identity(), os::process_space());
  Origin origin;
  for (pid_t pid = ::getpid(); pid > 0 && origin.size() < kMaxOrigin;
       pid = os::process_parent(pid)) {
    const std::uint64_t start = os::process_start(pid);
    if (start == 0) break;  // it has ended, or is in another pid namespace
    origin.push_back(base::mix(base::mix(host, static_cast<std::uint64_t>(pid)), start));
  }
  return origin;
}

std::size_t steps_to(std::span<const std::uint64_t> who, std::span<const std::uint64_t> other) {
  const auto common = std::ranges::find_first_of(who, other);
  return common == who.end() ? kNoCommonOrigin : static_cast<std::size_t>(common - who.begin());
}

}  // namespace hocket::rendezvous
