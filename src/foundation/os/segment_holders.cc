#include "foundation/os/segment_holders.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <string_view>

#include "foundation/os/process/process_exit.h"
#include "hocket/error.h"

namespace hocket::os {
namespace {

// The links of /proc/PID/fd for the memfds of Segment::create and Segment::create_for_threads.
constexpr std::string_view kSegment = "/memfd:hocket (deleted)";
constexpr std::string_view kOfThreads = "/memfd:hocket-threads (deleted)";

struct CloseFolder {
  void operator()(DIR* folder) const noexcept { ::closedir(folder); }
};
using Folder = std::unique_ptr<DIR, CloseFolder>;

pid_t pid_of(std::string_view text) {
  pid_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : 0;
}

// Returns the pid of a process in its own pid namespace, which is the last of its pids in nested
// namespaces.
pid_t own_pid_of(pid_t pid) {
  const std::string status = read_proc_file(fmt::format("/proc/{}/status", pid));
  constexpr std::string_view kField = "\nNSpid:";
  const auto at = status.find(kField);
  if (at == std::string::npos) return pid;
  std::string_view line = std::string_view(status).substr(at + kField.size());
  line = line.substr(0, line.find('\n'));
  const auto last = line.find_last_of(" \t");
  const pid_t own = pid_of(last == std::string_view::npos ? line : line.substr(last + 1));
  return own == 0 ? pid : own;
}

}  // namespace

std::vector<SegmentHolder> segment_holders(pid_t pid) {
  std::vector<SegmentHolder> found;
  const std::string folder = fmt::format("/proc/{}/fd", pid);
  const Folder descriptors(::opendir(folder.c_str()));
  if (!descriptors) return found;
  while (const dirent* each = ::readdir(descriptors.get())) {
    const std::string path = fmt::format("{}/{}", folder, each->d_name);
    std::array<char, kOfThreads.size() + 1> target;
    const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
    if (length <= 0) continue;
    const std::string_view name(target.data(), static_cast<std::size_t>(length));
    if (name != kSegment && name != kOfThreads) continue;
    struct stat status;
    if (::stat(path.c_str(), &status) != 0) continue;
    found.push_back({.pid = pid,
                     .own_pid = own_pid_of(pid),
                     .own_space = process_space(pid),
                     .memory = status.st_ino,
                     .path = path,
                     .is_of_threads = name == kOfThreads});
  }
  std::ranges::stable_sort(found, {}, &SegmentHolder::is_of_threads);
  return found;
}

std::vector<SegmentHolder> segment_holders() {
  std::vector<SegmentHolder> found;
  const Folder processes(::opendir("/proc"));
  if (!processes) return found;
  while (const dirent* each = ::readdir(processes.get())) {
    const pid_t pid = pid_of(each->d_name);
    struct stat status;
    if (pid == 0 || ::stat(fmt::format("/proc/{}", pid).c_str(), &status) != 0) continue;
    if (status.st_uid != ::geteuid()) continue;
    auto held = segment_holders(pid);
    std::ranges::move(held, std::back_inserter(found));
  }
  return found;
}

std::uint64_t number_of(const Segment& segment) noexcept {
  struct stat status;
  if (!segment.fd() || ::fstat(segment.fd().get(), &status) != 0) return 0;
  return status.st_ino;
}

SegmentView::SegmentView(const std::string& path)
    : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct stat status;
  if (!fd_ || ::fstat(fd_.get(), &status) != 0) {
    throw SystemError("cannot open the job's shared memory for reading", errno);
  }
  // The memory must be sealed. Otherwise it could shrink while it is read, which would kill this
  // process.
  const int seals = ::fcntl(fd_.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    throw SystemError("what the process holds is no job's shared memory", EINVAL);
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd_.get(), 0);
  if (at == MAP_FAILED) throw SystemError("cannot map the job's shared memory for reading", errno);
  data_ = static_cast<const std::byte*>(at);
  size_ = size;
}

SegmentView::~SegmentView() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

std::size_t SegmentView::touched_bytes() const noexcept {
  constexpr std::size_t kBlock = 512;  // the unit of st_blocks
  struct stat status;
  if (::fstat(fd_.get(), &status) != 0) return 0;
  return static_cast<std::size_t>(status.st_blocks) * kBlock;
}

std::string variable_of(pid_t pid, std::string_view name) {
  const std::string all = read_proc_file(fmt::format("/proc/{}/environ", pid));
  const std::string wanted = fmt::format("{}=", name);
  for (std::string_view rest = all; !rest.empty();) {
    const std::string_view each = rest.substr(0, rest.find('\0'));
    if (each.starts_with(wanted)) return std::string(each.substr(wanted.size()));
    rest.remove_prefix(std::min(rest.size(), each.size() + 1));
  }
  return {};
}

std::string command_of(pid_t pid) {
  constexpr std::size_t kMost = 200;
  std::string text = read_proc_file(fmt::format("/proc/{}/cmdline", pid));
  if (text.size() > kMost) text.resize(kMost);
  while (!text.empty() && text.back() == '\0') text.pop_back();
  for (char& each : text) {
    if (static_cast<unsigned char>(each) < ' ' || each == '\x7f') each = ' ';
  }
  return text;
}

}  // namespace hocket::os
