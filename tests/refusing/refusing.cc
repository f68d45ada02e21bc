#include "refusing.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>

namespace hocket::refusing {
namespace {

#ifndef SYS_futex_waitv
constexpr long SYS_futex_waitv = 449;
#endif
#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif

struct Refusable {
  const char* name;
  long number;
  std::optional<std::uint32_t> third = {};  // of this third argument alone
};

const Refusable kCalls[] = {
    {"close_range", SYS_close_range},
    {"eventfd", SYS_eventfd2},
    {"fallocate", SYS_fallocate},
    {"futex_waitv", SYS_futex_waitv},
    {"get_robust_list", SYS_get_robust_list},
    {"membarrier", SYS_membarrier},
    {"memfd_create", SYS_memfd_create},
    {"pidfd_open", SYS_pidfd_open},
    {"process_vm_readv", SYS_process_vm_readv},
    {"process_vm_writev", SYS_process_vm_writev},
    {"sched_setattr", SYS_sched_setattr},
    {"set_robust_list", SYS_set_robust_list},
    {"MADV_DONTDUMP", SYS_madvise, MADV_DONTDUMP},
    {"MADV_DONTNEED", SYS_madvise, MADV_DONTNEED},
    {"MADV_DONTFORK", SYS_madvise, MADV_DONTFORK},
    {"MADV_REMOVE", SYS_madvise, MADV_REMOVE},
    {"MADV_WIPEONFORK", SYS_madvise, MADV_WIPEONFORK},
};

}  // namespace

const std::vector<std::string>& refusable() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Refusable& each : kCalls) all.emplace_back(each.name);
    return all;
  }();
  return names;
}

void refuse(const std::string& call, int error) {
  const auto* found = std::find_if(std::begin(kCalls),
                                   std::end(kCalls),
                                   [&](const Refusable& each) { return call == each.name; });
  if (found == std::end(kCalls)) throw std::runtime_error(call + " is nothing that can be refused");
  const auto number = static_cast<std::uint32_t>(found->number);
  const bool any = !found->third;
  // Offset of the second value to compare, and the value wanted.
  const auto at = static_cast<std::uint32_t>(
      any ? offsetof(seccomp_data, nr) : offsetof(seccomp_data, args) + 2 * sizeof(std::uint64_t));
  const std::uint32_t wanted = any ? number : *found->third;
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 0, 5),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, wanted, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{.len = sizeof filter / sizeof filter[0], .filter = filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    throw std::runtime_error(std::string("the kernel takes no filter: ") + std::strerror(errno));
  }
}

}  // namespace hocket::refusing
