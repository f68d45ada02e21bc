#include "interfaces/cli/run/job_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "hocket/error.h"

namespace hocket::cli {
namespace {

bool same_file(int a, int b) {
  struct stat first{};
  struct stat second{};
  return ::fstat(a, &first) == 0 && ::fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

// Throws if `path` is a link of another user. In a folder that others may write to, such a link
// could make the launcher overwrite the user's files.
void refuse_link_of_another(const std::string& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) return;
  if (status.st_uid == ::geteuid() || status.st_uid == 0) return;
  throw InvalidArgument(
      fmt::format("--log-dir: '{}' is a link that user {} made; give a folder of your own",
                  path,
                  status.st_uid));
}

// Throws unless the file is regular. A FIFO would make the launcher wait for a reader.
void refuse_irregular(int fd, int why, const std::string& path) {
  struct stat status{};
  const bool is_known =
      fd >= 0 ? ::fstat(fd, &status) == 0 : why == ENXIO && ::stat(path.c_str(), &status) == 0;
  if (!is_known || S_ISREG(status.st_mode)) return;
  if (fd >= 0) ::close(fd);
  throw InvalidArgument(fmt::format(
      "--log-dir: '{}' is not a regular file; remove it, or give another folder", path));
}

Fd open_log(const std::string& folder, int rank, JobOutput::Kind kind) {
  const std::string path =
      fmt::format("{}/rank-{}.{}", folder, rank, kind == JobOutput::Kind::kOut ? "out" : "err");
  constexpr int kFlags = O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  int fd = ::open(path.c_str(), kFlags | O_NOFOLLOW, 0644);
  if (fd < 0 && errno == ELOOP) {
    refuse_link_of_another(path);
    fd = ::open(path.c_str(), kFlags, 0644);
  }
  refuse_irregular(fd, errno, path);
  Fd log = checked_fd(fd, fmt::format("--log-dir: cannot write '{}'", path));
  if (::ftruncate(log.get(), 0) != 0) {
    throw SystemError(fmt::format("--log-dir: cannot empty '{}'", path), errno);
  }
  return log;
}

}  // namespace

JobOutput::JobOutput(JobOutputOptions options)
    : options_(std::move(options)), out_(std::make_shared<Sink>(STDOUT_FILENO)) {
  if (!options_.log_dir.empty()) refuse_link_of_another(options_.log_dir);
  err_ = same_file(STDOUT_FILENO, STDERR_FILENO) ? out_ : std::make_shared<Sink>(STDERR_FILENO);
}

std::string JobOutput::prefix(int rank, const Sink& sink) const {
  if (!options_.prefix) return {};
  const bool coloured =
      options_.colour_forced || (options_.colour_allowed && ::isatty(sink.fd()) != 0);
  if (!coloured) return fmt::format("[{}] ", rank);
  // Cyan, green, yellow, magenta, blue, and their bright variants; red is for failures.
  constexpr std::array kColours{36, 32, 33, 35, 34, 96, 92, 93, 95, 94};
  const int colour = kColours[static_cast<std::size_t>(rank) % kColours.size()];
  return fmt::format("\x1b[{}m[{}]\x1b[0m ", colour, rank);
}

Fd JobOutput::add(int rank, Kind kind) {
  Pipe pipe = make_pipe();
  ::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
  const std::shared_ptr<Sink>& sink = kind == Kind::kOut ? out_ : err_;
  const bool shown = kind == Kind::kErr || rank == 0 || !options_.quiet;
  Fd log = options_.log_dir.empty() ? Fd() : open_log(options_.log_dir, rank, kind);
  entries_.push_back({rank,
                      Stream(std::move(pipe.read),
                             {.owner = static_cast<int>(entries_.size()),
                              .prefix = prefix(rank, *sink),
                              .sink = shown ? sink.get() : nullptr,
                              .log = std::move(log)}),
                      kind});
  return std::move(pipe.write);
}

void JobOutput::add_fed(int host, Kind kind) {
  entries_.push_back({host,
                      Stream(Fd(),
                             {.owner = static_cast<int>(entries_.size()),
                              .prefix = {},
                              .sink = (kind == Kind::kOut ? out_ : err_).get(),
                              .log = {}}),
                      kind});
}

void JobOutput::feed(int host, Kind kind, std::string_view bytes) {
  for (Entry& entry : entries_) {
    if (entry.rank != host || entry.kind != kind) continue;
    entry.stream.take(bytes);
    entry.stream.last_read(Stream::Clock::now());
  }
}

void JobOutput::end_fed() {
  for (Entry& entry : entries_) {
    if (!entry.stream.is_open()) entry.stream.close();
  }
}

void JobOutput::say(std::string_view line) { err_->put_line(line); }

void JobOutput::add_to(std::vector<pollfd>& wait) const {
  wait.push_back({out_->wants_to_write() ? out_->fd() : -1, POLLOUT, 0});
  wait.push_back({err_->wants_to_write() && !is_shared() ? err_->fd() : -1, POLLOUT, 0});
  for (const Entry& entry : entries_) {
    wait.push_back({entry.stream.can_read() ? entry.stream.fd() : -1, POLLIN, 0});
  }
}

void JobOutput::move(std::span<const pollfd> answer) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (answer[i + 2].revents != 0 || writers_are_gone_) read(entries_[i].stream);
  }
  if (answer[0].revents != 0) out_->write_some();
  if (answer[1].revents != 0) err_->write_some();
}

void JobOutput::read(Stream& stream) {
  if (!stream.can_read()) return;
  if (!stream.read_some() && writers_are_gone_) stream.close();
}

void JobOutput::drain(int rank) {
  for (Entry& entry : entries_) {
    if (entry.rank != rank) continue;
    while (entry.stream.read_some()) {
    }
    // If the sink is full, the stream is not read, and the end of its line may still come.
    if (entry.stream.can_read()) entry.stream.flush_partial();
  }
}

void JobOutput::flush_idle(Stream::Clock::time_point now) {
  for (Entry& entry : entries_) {
    // A stream that is not read because its sink is full does not count as silent.
    if (entry.stream.is_open() && !entry.stream.can_read()) entry.stream.last_read(now);
    if (entry.stream.holds_back() && now >= entry.stream.last_read() + kIdle) {
      entry.stream.flush_partial();
    }
  }
}

std::optional<Stream::Clock::time_point> JobOutput::next_flush() const {
  std::optional<Stream::Clock::time_point> next;
  for (const Entry& entry : entries_) {
    if (!entry.stream.holds_back()) continue;
    const auto due = entry.stream.last_read() + kIdle;
    if (!next || due < *next) next = due;
  }
  return next;
}

bool JobOutput::is_open() const {
  for (const Entry& entry : entries_) {
    if (entry.stream.is_open()) return true;
  }
  return out_->wants_to_write() || err_->wants_to_write();
}

std::string JobOutput::lost() const {
  if (out_->error() != 0) return fmt::format("standard output: {}", std::strerror(out_->error()));
  for (const Entry& entry : entries_) {
    const int error = entry.stream.log_error();
    if (error != 0) return fmt::format("a file in {}: {}", options_.log_dir, std::strerror(error));
  }
  return {};
}

void JobOutput::abandon() {
  for (Entry& entry : entries_) entry.stream.close();
  out_->abandon();
  err_->abandon();
}

}  // namespace hocket::cli
