#include "foundation/os/process/scheduling.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <exception>
#include <vector>

#include "foundation/os/machine/processor_set.h"

namespace hocket::os {
namespace {

// The first version of the kernel's struct sched_attr.
struct SchedAttr {
  std::uint32_t size = sizeof(SchedAttr);
  std::uint32_t policy = SCHED_OTHER;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0;  // ns; for an ordinary thread, its time slice
  std::uint64_t deadline = 0;
  std::uint64_t period = 0;
};
static_assert(sizeof(SchedAttr) == 48);

constexpr std::uint64_t kTurn = 100'000;  // ns; the kernel's minimum

}  // namespace

void take_short_turns() noexcept {
  const auto self = static_cast<id_t>(::syscall(SYS_gettid));
  SchedAttr attributes;
  // If the program has chosen another policy for this thread, the thread keeps it.
  if (::sched_getscheduler(0) != SCHED_OTHER) return;
  attributes.nice = ::getpriority(PRIO_PROCESS, self);
  attributes.runtime = kTurn;
  ::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

bool leave_processors(std::span<const int> taken, std::size_t choice) noexcept {
  try {
    const ProcessorSet allowed = ProcessorSet::allowed();
    ProcessorSet others = allowed;
    ProcessorSet kept;
    for (const int processor : taken) kept.add(processor);
    others -= kept;
    const std::vector<int> numbers = others.numbers();
    if (numbers.empty()) return false;
    ProcessorSet target;
    target.add(numbers[choice % numbers.size()]);
    // When the first call returns, the thread runs on the chosen processor. The second call
    // restores the affinity mask, and the thread stays where it is.
    return target.restrict_this_thread() && allowed.restrict_this_thread();
  } catch (const std::exception&) {  // no memory
    return false;
  }
}

}  // namespace hocket::os
