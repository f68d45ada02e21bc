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
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace hocket::os {
namespace {

// The first version of the kernel's struct pidfd_info, which is newer than our headers.
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

// The contents of /proc/PID/stat. A value.
struct Stat {
  char state = '?';
  std::uint64_t start = 0;
  int exit_code = 0;
};

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

template <typename Number>
Number parse(std::string_view text) noexcept {
  Number number{};
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// The fields after the program's name are numbers, except the first. The name may contain any
// character. See proc(5).
std::optional<Stat> parse_stat(std::string_view line) noexcept {
  constexpr int kState = 3;
  constexpr int kStart = 22;
  constexpr int kExitCode = 52;
  const auto name_end = line.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  Stat stat;
  line.remove_prefix(name_end + 1);
  for (int field = kState; field <= kExitCode; ++field) {
    const auto begin = line.find_first_not_of(" \n");
    if (begin == std::string_view::npos) return std::nullopt;
    line.remove_prefix(begin);
    const auto word = line.substr(0, line.find_first_of(" \n"));
    line.remove_prefix(word.size());
    if (field == kState) stat.state = word[0];
    if (field == kStart) stat.start = parse<std::uint64_t>(word);
    if (field == kExitCode) stat.exit_code = parse<int>(word);
  }
  return stat;
}

// Reads the `stat` of a process's folder, or of a thread's.
std::optional<Stat> read_stat(int folder, const char* name) noexcept {
  const Fd file(::openat(folder, name, O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::array<char, 1024> text;
  const ssize_t length = ::read(file.get(), text.data(), text.size());
  if (length <= 0) return std::nullopt;
  return parse_stat({text.data(), static_cast<std::size_t>(length)});
}
std::optional<Stat> read_stat(pid_t pid) noexcept {
  return read_stat(AT_FDCWD, path_of(pid, "stat").data());
}

// Returns whether the kernel is writing a core dump of the process. This is fast for any size of
// memory.
bool dumps_core(pid_t pid) noexcept {
  const Fd file(::open(path_of(pid, "status").data(), O_RDONLY | O_CLOEXEC));
  if (!file) return false;
  std::array<char, 4096> text;
  const ssize_t length = ::read(file.get(), text.data(), text.size());
  const std::string_view status(text.data(), length <= 0 ? 0 : static_cast<std::size_t>(length));
  return status.find("\nCoreDumping:\t1") != std::string_view::npos;
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
      const auto thread = read_stat(folder.get(), name.data());
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

std::uint64_t process_space() noexcept {
  struct stat space{};
  return ::stat("/proc/self/ns/pid", &space) == 0 ? space.st_ino : 0;
}

ProcessExit::ProcessExit(pid_t pid, std::uint64_t start) noexcept
    : pid_(pid), start_(start), descriptor_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {
  // Checked after the descriptor was opened, so that both refer to the same process.
  if (start_ == 0 || process_start(pid) != start_) descriptor_.reset();
}

ProcessExit::Answer ProcessExit::ask() const noexcept {
  if (start_ == 0) return {.state = State::kNeverKnown};
  if (const auto status = ask_descriptor()) return {.state = State::kKnown, .status = *status};
  const Answer answer = ask_proc();
  if (answer.state != State::kNeverKnown) return answer;
  // The parent may have waited for it between the two queries.
  if (const auto status = ask_descriptor()) return {.state = State::kKnown, .status = *status};
  return answer;
}

bool ProcessExit::was_replaced() const noexcept {
  if (start_ == 0) return false;
  const Fd maps(::open(path_of(pid_, "maps").data(), O_RDONLY | O_CLOEXEC));
  if (!maps) return false;
  constexpr std::string_view kSegment = "/memfd:hocket (";  // see Segment::create
  std::array<char, 8192> text;
  std::size_t kept = 0;  // of the previous block, because the name may span two blocks
  bool any = false;
  for (;;) {
    const ssize_t length = ::read(maps.get(), text.data() + kept, text.size() - kept);
    if (length < 0) return false;
    if (length == 0) break;
    any = true;
    const std::string_view part(text.data(), kept + static_cast<std::size_t>(length));
    if (part.find(kSegment) != std::string_view::npos) return false;
    kept = std::min(part.size(), kSegment.size() - 1);
    std::memmove(text.data(), part.data() + part.size() - kept, kept);
  }
  return any && process_start(pid_) == start_;
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
  // A reader of `stat` holds the process's memory for a moment, and the last holder has to free it,
  // which can take long. The first thread has no memory any more if it has no program.
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
