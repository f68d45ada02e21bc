#include "monitoring/observe/flight_record.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <string_view>

#include "foundation/os/fd.h"
#include "hocket/error.h"

namespace hocket::observe {
namespace {

// Returns 0 or errno.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(fd, text.data(), text.size());
    if (put < 0 && errno != EINTR) return errno;
    if (put > 0) text.remove_prefix(static_cast<std::size_t>(put));
  }
  return 0;
}

// The file is written under a temporary name and then renamed, so a reader never sees half of it.
// It is always a new file: another user who may write to the directory cannot redirect it.
void write_file(const std::filesystem::path& path, const std::string& text) {
  const std::string unfinished = fmt::format("{}.{}.tmp", path.string(), gettid());
  ::unlink(unfinished.c_str());  // left by an earlier process
  const os::Fd file(::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  int error = file ? write_all(file.get(), text) : errno;
  if (error == 0 && ::rename(unfinished.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return;
  if (file) ::unlink(unfinished.c_str());
  throw SystemError("cannot write " + path.string(), error);
}

}  // namespace

std::string to_text(const FlightRecord& record) {
  std::string text = fmt::format(
      "rank {} of the world (pid {}), communicator {}, {:%F %T} UTC\n{}\n\n"
      "this rank's last calls, oldest first\n",
      record.world_rank,
      getpid(),
      record.communicator,
      fmt::gmtime(std::time(nullptr)),
      record.error.empty() ? "no error so far" : record.error);
  for (const RankCall& call : record.recent) text += fmt::format("  {}\n", call.call);
  text += "\nwhat each rank was last seen in\n";
  for (const RankCall& call : record.ranks) {
    text += fmt::format("  rank {}: {}\n", call.rank, call.call);
  }
  return text;
}

std::string write(const FlightRecord& record, const std::string& directory) {
  std::string name = record.communicator;
  std::replace(name.begin(), name.end(), '/', '-');
  const auto path =
      std::filesystem::path(directory) / fmt::format("rank-{}.{}.txt", record.world_rank, name);
  try {
    std::filesystem::create_directories(directory);
    write_file(path, to_text(record));
  } catch (const std::filesystem::filesystem_error& error) {
    throw SystemError("cannot write " + path.string(), error.code().value());
  }
  return path.string();
}

}  // namespace hocket::observe
