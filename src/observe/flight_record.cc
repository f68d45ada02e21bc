#include "observe/flight_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/log.h"

namespace hocket::observe {

void write(const FlightRecord& record, const std::string& directory) noexcept {
  try {
    std::filesystem::create_directories(directory);
    std::string name = record.communicator;
    std::replace(name.begin(), name.end(), '/', '-');
    const auto path =
        std::filesystem::path(directory) / fmt::format("rank-{}.{}.txt", record.world_rank, name);
    std::ofstream file(path, std::ios::trunc);
    file << fmt::format("rank {} of the world, communicator {}\n{}\n\nthis rank's last calls\n",
                        record.world_rank,
                        record.communicator,
                        record.error);
    for (const RankCall& call : record.recent) file << "  " << call.call << "\n";
    file << "\nwhat each rank was last seen in\n";
    for (const RankCall& call : record.ranks) {
      file << fmt::format("  rank {}: {}\n", call.rank, call.call);
    }
    if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
  } catch (const std::exception& error) {
    base::log(base::LogLevel::kWarning, fmt::format("no flight record: {}", error.what()));
  }
}

}  // namespace hocket::observe
