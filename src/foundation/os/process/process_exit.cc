#include "foundation/os/process/process_exit.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "foundation/os/process/process_stat.h"

namespace hocket::os {
namespace {

// The first version of the kernel's struct pidfd_info, which is newer than the headers of some
// build systems.
struct PidfdInfo {
  std::uint64_t mask;
  std::uint64_t cgroup;
  std::uint32_t pid, tgid, ppid;
  std::array<std::uint32_t, 8> users;
  std::int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);
constexpr std::uint64_t kExitIsKnown = 1 << 3;

using Path = std::array<char, 40>;
Path path_of(pid_t pid, const char* name) noexcept {
  Path path{};
  if (pid == 0) {
    std::snprintf(path.data(), path.size(), "/proc/self/%s", name);
  } else {
    std::snprintf(path.data(), path.size(), "/proc/%d/%s", pid, name);
  }
  return path;
}

std::optional<ProcessStat> read_stat(pid_t pid) noexcept {
  return read_process_stat(path_of(pid, "stat").data());
}

// Returns whether a file of the process has the text, which is much shorter than a block of the
// reads. Absent if the file cannot be read, or is empty.
std::optional<bool> has_text(pid_t pid, const char* name, std::string_view wanted) noexcept {
  const Fd file(::open(path_of(pid, name).data(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::array<char, 8192> text;
  std::size_t kept = 0;  // bytes of the previous block, because the text may span two blocks
  bool any = false;
  for (;;) {
    const ssize_t length = ::read(file.get(), text.data() + kept, text.size() - kept);
    if (length < 0 || (length == 0 && !any)) return std::nullopt;
    if (length == 0) return false;
    any = true;
    const std::string_view part(text.data(), kept + static_cast<std::size_t>(length));
    if (part.find(wanted) != std::string_view::npos) return true;
    kept = std::min(part.size(), wanted.size() - 1);
    std::memmove(text.data(), part.data() + part.size() - kept, kept);
  }
}

// Returns whether the kernel is writing a core dump of the process. The time does not depend on the
// size of the process's memory.
bool dumps_core(pid_t pid) noexcept {
  return has_text(pid, "status", "\nCoreDumping:\t1").value_or(false);
}

}  // namespace

std::uint64_t process_start(pid_t pid) noexcept {
  const auto stat = read_stat(pid);
  return stat ? stat->start : 0;
}

bool is_halted(pid_t pid, std::uint64_t start) noexcept {
  const auto stat = read_stat(pid);
  if (!stat || start == 0 || stat->start != start) return false;
  return stat->state == 'T' || stat->state == 't' || dumps_core(pid);
}

bool are_threads_stopped(pid_t pid, std::uint64_t start) noexcept {
  const auto process = read_stat(pid);
  if (!process || start == 0 || process->start != start || process->state != 'T') return false;
  const Fd folder(::open(path_of(pid, "task").data(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return false;
  alignas(dirent64) std::array<char, 4096> entries;
  for (;;) {
    const long length = ::syscall(SYS_getdents64, folder.get(), entries.data(), entries.size());
    if (length <= 0) return length == 0;
    for (long at = 0; at < length;) {
      const auto& entry = *reinterpret_cast<const dirent64*>(entries.data() + at);
      at += entry.d_reclen;
      if (entry.d_name[0] == '.') continue;
      Path name{};
      std::snprintf(name.data(), name.size(), "%.16s/stat", entry.d_name);
      const auto thread = read_process_stat(name.data(), folder.get());
      if (thread && std::strchr("TZX", thread->state) == nullptr) return false;
    }
  }
}

std::optional<int> dumps_core_by(pid_t pid, std::uint64_t start) noexcept {
  if (start == 0 || !dumps_core(pid)) return std::nullopt;
  const auto stat = read_stat(pid);
  if (!stat || stat->start != start) return std::nullopt;
  return stat->exit_code;
}

std::uint64_t process_space(pid_t pid) noexcept {
  struct stat space{};
  return ::stat(path_of(pid, "ns/pid").data(), &space) == 0 ? space.st_ino : 0;
}

ProcessExit::ProcessExit(pid_t pid, std::uint64_t start) noexcept
    : pid_(pid), start_(start), descriptor_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {
  // The start is checked after the descriptor was opened. If it is still the same, the descriptor
  // refers to the right process.
  if (start_ == 0 || process_start(pid) != start_) descriptor_.reset();
}

ProcessExit::Answer ProcessExit::ask() const noexcept {
  if (start_ == 0) return {.state = State::kNeverKnown};
  if (const auto status = ask_descriptor()) return {.state = State::kKnown, .status = *status};
  const Answer answer = ask_proc();
  if (answer.state != State::kNeverKnown) return answer;
  // Neither source had the answer. The parent may have reaped the process between the two queries,
  // so ask the descriptor again.
  if (const auto status = ask_descriptor()) return {.state = State::kKnown, .status = *status};
  return answer;
}

bool ProcessExit::was_replaced() const noexcept {
  if (start_ == 0) return false;
  constexpr std::string_view kSegment = "/memfd:hocket (";  // see Segment::create
  return has_text(pid_, "maps", kSegment) == false && process_start(pid_) == start_;
}

std::optional<int> ProcessExit::ask_descriptor() const noexcept {
  if (!descriptor_) return std::nullopt;
  PidfdInfo info{};
  info.mask = kExitIsKnown;
  if (::ioctl(descriptor_.get(), kGetInfo, &info) != 0) return std::nullopt;
  if ((info.mask & kExitIsKnown) == 0) return std::nullopt;
  return info.exit_code;
}

ProcessExit::Answer ProcessExit::ask_proc() const noexcept {
  // First check that the process has given up its memory: its `exe` is then unreadable. Reading
  // `stat` earlier would hold the memory for a moment. If the process ends in this moment, the
  // reader has to free all its memory, which can take long.
  std::array<char, 1> unused;
  const bool has_memory =
      ::readlink(path_of(pid_, "exe").data(), unused.data(), unused.size()) >= 0;
  if (has_memory || errno == EACCES) return {};
  const auto stat = read_stat(pid_);
  if (!stat || stat->start != start_) return {.state = State::kNeverKnown};
  return {.state = State::kKnown, .status = stat->exit_code};
}

std::string read_proc_file(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> part;
  while (file) {
    const ssize_t got = ::read(file.get(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace hocket::os
