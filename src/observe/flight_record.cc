#include "observe/flight_record.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <fstream>

namespace hocket::observe {
namespace {

// A reader never finds half a file: it is written beside its place and then put there.
void write_file(const std::filesystem::path& path, const std::string& text) {
  auto unfinished = path;
  unfinished += fmt::format(".{}.tmp", getpid());
  errno = 0;
  std::ofstream file(unfinished, std::ios::trunc);
  file << text;
  file.close();
  if (!file) {
    const int error = errno == 0 ? EIO : errno;
    std::error_code ignored;
    std::filesystem::remove(unfinished, ignored);
    throw SystemError("cannot write " + path.string(), error);
  }
  std::filesystem::rename(unfinished, path);
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
