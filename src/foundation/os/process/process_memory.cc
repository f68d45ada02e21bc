#include "foundation/os/process/process_memory.h"

#include <dlfcn.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "foundation/os/fd.h"

namespace hocket::os {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kSignature = 0x53053053;  // the kernel expects it before the abort handler

// The area by which a thread tells the kernel of its restartable sequence; see rseq(2).
struct alignas(32) SequenceArea {
  std::uint32_t cpu_id_start = 0;
  std::uint32_t cpu_id = ~std::uint32_t{0};
  std::uint64_t sequence = 0;  // the address of the description of a sequence; 0: none
  std::uint32_t flags = 0;
  std::uint32_t reserved[3] = {};
};
static_assert(sizeof(SequenceArea) == 32);

// Returns the area that the C library has registered for this thread; null if there is none.
SequenceArea* area_of_library() noexcept {
  struct Place {
    std::ptrdiff_t offset = 0;  // from the thread's control block, in bytes
    bool is_registered = false;
  };
  static const Place library_area = [] {
    const auto* const offset = static_cast<std::ptrdiff_t*>(::dlsym(RTLD_DEFAULT, "__rseq_offset"));
    const auto* const size = static_cast<unsigned*>(::dlsym(RTLD_DEFAULT, "__rseq_size"));
    if (offset == nullptr || size == nullptr || *size == 0) return Place{};
    return Place{*offset, true};
  }();
  if (!library_area.is_registered) return nullptr;
  std::byte* thread = nullptr;
  asm("movq %%fs:0, %0" : "=r"(thread));
  return reinterpret_cast<SequenceArea*>(thread + library_area.offset);
}

// Returns the area of this thread. If the C library has registered none, because it is old or was
// told so, this thread registers one itself. Null if the kernel refuses.
SequenceArea* area_of_thread() noexcept {
  if (SequenceArea* const area = area_of_library()) return area;
  enum class Registration : std::uint8_t { kUnknown, kDone, kRefused };
  struct Own {
    SequenceArea area;
    Registration registration = Registration::kUnknown;
  };
  static thread_local Own own_sequences;
  if (own_sequences.registration == Registration::kUnknown) {
    const bool works =
        ::syscall(SYS_rseq, &own_sequences.area, sizeof own_sequences.area, 0, kSignature) == 0;
    own_sequences.registration = works ? Registration::kDone : Registration::kRefused;
  }
  return own_sequences.registration == Registration::kDone ? &own_sequences.area : nullptr;
}
#endif

// Calls process_vm_writev if the permit is valid. Returns the result of the kernel, or -ECANCELED
// if the permit is not valid.
long write_if_permitted(pid_t pid,
                        const iovec* local,
                        const iovec* remote,
                        const WritePermit& permit) noexcept {
#if defined(__x86_64__)
  SequenceArea* const area = area_of_thread();
  if (area == nullptr) return -ENOSYS;
  long result = 0;
  register const iovec* to asm("r10") = remote;
  register long one asm("r8") = 1;
  register long no_flags asm("r9") = 0;
  // The labels of the sequence:
  //   3:        its description, for the kernel
  //   6:        start: tells the kernel the description
  //   1: to 2:  the sequence: checks the permit; its last instruction enters the kernel
  //   4:        if the kernel interrupts the sequence, the thread continues here, and goes to 6:
  //   5:        the permit is not valid
  //   7:        end
  asm volatile(
      ".pushsection __rseq_cs, \"aw\"\n"
      ".balign 32\n"
      "3: .long 0, 0\n"
      ".quad 1f, 2f - 1f, 4f\n"
      ".popsection\n"
      "6: leaq 3b(%%rip), %%rax\n"
      "movq %%rax, (%[sequence])\n"
      "1: cmpq %[valid], (%[ticket])\n"
      "jne 5f\n"
      "testl $0x40000000, (%[owner])\n"  // FUTEX_OWNER_DIED
      "jnz 5f\n"
      "movl %[number], %%eax\n"
      "syscall\n"
      "2: jmp 7f\n"
      ".pushsection __rseq_failure, \"ax\"\n"
      ".byte 0x0f, 0xb9, 0x3d\n"
      ".long %c[signature]\n"
      "4: jmp 6b\n"
      ".popsection\n"
      "5: movq %[cancelled], %%rax\n"
      "7:\n"
      : "=&a"(result)
      : [sequence] "r"(&area->sequence),
        [signature] "i"(kSignature),
        [valid] "r"(permit.valid),
        [ticket] "r"(permit.ticket),
        [owner] "r"(permit.owner),
        [number] "i"(SYS_process_vm_writev),
        [cancelled] "i"(-ECANCELED),
        "D"(static_cast<long>(pid)),
        "S"(local),
        "d"(1L),
        "r"(to),
        "r"(one),
        "r"(no_flags)
      : "rcx", "r11", "memory", "cc");
  // The description must not stay registered, because this library may be unloaded.
  *static_cast<volatile std::uint64_t*>(&area->sequence) = 0;
  return result;
#else
  static_cast<void>(pid), static_cast<void>(local), static_cast<void>(remote);
  static_cast<void>(permit);
  return -ENOSYS;
#endif
}

}  // namespace

int read_process_memory(pid_t pid, void* to, const void* from, std::size_t bytes) noexcept {
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  while (bytes > 0) {  // the kernel copies at most 2 GiB in one call
    const iovec local{out, bytes};
    const iovec remote{const_cast<std::byte*>(in), bytes};
    const ssize_t read = ::process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return errno;
    if (read == 0) return EFAULT;
    out += read;
    in += read;
    bytes -= static_cast<std::size_t>(read);
  }
  return 0;
}

int write_process_memory(
    pid_t pid, void* to, const void* from, std::size_t bytes, const WritePermit& permit) noexcept {
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  while (bytes > 0) {
    const iovec local{const_cast<std::byte*>(in), bytes};
    const iovec remote{out, bytes};
    const long written = write_if_permitted(pid, &local, &remote, permit);
    if (written == -EINTR) continue;
    if (written < 0) return static_cast<int>(-written);
    if (written == 0) return EFAULT;
    out += written;
    in += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return 0;
}

bool others_may_read(const void* memory, std::size_t bytes) noexcept {
  if (bytes == 0) return true;
  auto* first = static_cast<std::byte*>(const_cast<void*>(memory));
  std::array<std::byte, 2> ends{};
  const iovec local{ends.data(), ends.size()};
  const std::array<iovec, 2> remote{iovec{first, 1}, iovec{first + bytes - 1, 1}};
  const ssize_t read = ::process_vm_readv(::getpid(), &local, 1, remote.data(), remote.size(), 0);
  return read == static_cast<ssize_t>(ends.size());
}

bool others_may_write(void* memory, std::size_t bytes) noexcept {
  if (bytes == 0) return true;
  auto* first = static_cast<std::byte*>(memory);
  std::array<std::byte, 2> ends{first[0], first[bytes - 1]};
  const iovec local{ends.data(), ends.size()};
  const std::array<iovec, 2> remote{iovec{first, 1}, iovec{first + bytes - 1, 1}};
  const ssize_t written =
      ::process_vm_writev(::getpid(), &local, 1, remote.data(), remote.size(), 0);
  return written == static_cast<ssize_t>(ends.size());
}

bool has_process_ended(pid_t pid) noexcept {
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process) return errno == ESRCH;
  pollfd ended{process.get(), POLLIN, 0};
  return ::poll(&ended, 1, 0) == 1;
}

void let_siblings_access() noexcept {
  ::prctl(PR_SET_PTRACER, static_cast<unsigned long>(::getppid()), 0, 0, 0);
}

}  // namespace hocket::os
