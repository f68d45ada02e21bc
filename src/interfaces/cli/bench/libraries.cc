#include "interfaces/cli/bench/libraries.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace hocket::cli::bench {
namespace {

namespace fs = std::filesystem;

fs::path this_executable() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

// The folder of the measuring programs, ../libexec/hocket of a build. A wheel has none.
fs::path measuring_programs() {
  return this_executable().parent_path().parent_path() / "libexec" / "hocket";
}

Offer missing(std::string_view library, const std::string& what, const std::string& mend) {
  Offer offer;
  offer.launch.library = library;
  offer.missing = fmt::format("{} ({})", what, mend);
  return offer;
}

// Reports a library whose measuring program is missing. In a package, installing the library does
// not help. So the text differs there.
Offer not_built(std::string_view library, const std::string& mend) {
  if (fs::exists(measuring_programs())) return missing(library, "not found", mend);
  return missing(library,
                 "this package has no program that measures it",
                 "in a clone of hocket, ./demo.sh builds it");
}

// Offers ranks that `hocket run` starts with `rank_command`.
Offer by_hocket_run(std::string_view library,
                    const Placement& placement,
                    const std::vector<std::string>& rank_command) {
  Offer offer;
  offer.launch.library = library;
  offer.launch.arguments = {this_executable(),
                            "run",
                            "-n",
                            std::to_string(placement.ranks),
                            "--no-prefix",
                            "--bind",
                            placement.binds() ? "core" : "none",
                            "--"};
  for (const std::string& word : rank_command) offer.launch.arguments.push_back(word);
  return offer;
}

// Offers a measuring program whose ranks `hocket run` starts.
Offer by_itself(std::string_view library, const Placement& placement, const std::string& mend) {
  const fs::path peer = measuring_programs() / fmt::format("bench_{}", library);
  if (!fs::exists(peer)) return not_built(library, mend);
  return by_hocket_run(library, placement, {peer});
}

// An MPI library that `hocket bench` knows, and how it is installed. A value.
enum class Family { kOpenMpi, kMpich, kIntel };
struct Mpi {
  const char* name;
  Family family;
  int release;
  const char* mend;
};

constexpr std::array kMpis{
    Mpi{"openmpi", Family::kOpenMpi, 4, "apt install openmpi-bin libopenmpi-dev, then build again"},
    Mpi{"mpich", Family::kMpich, 4, "apt install mpich libmpich-dev, then build again"},
    Mpi{"openmpi5",
        Family::kOpenMpi,
        5,
        "pip install --prefix .peers/openmpi5 openmpi, or -DHOCKET_OPENMPI5=PREFIX, then build "
        "again"},
    Mpi{"mpich5",
        Family::kMpich,
        5,
        "pip install --prefix .peers/mpich5 mpich, or -DHOCKET_MPICH5=PREFIX, then build again"},
    Mpi{"impi",
        Family::kIntel,
        2021,
        "pip install --no-deps --prefix .peers/impi impi-rt impi-devel, or -DHOCKET_IMPI=PREFIX, "
        "then build again"},
};

// Libraries of transforms and products over Debian's Open MPI.
constexpr std::array kNumericPeers{
    Mpi{"fftw",
        Family::kOpenMpi,
        4,
        "apt install openmpi-bin libopenmpi-dev libfftw3-dev libfftw3-mpi-dev, then build again"},
    Mpi{"scalapack",
        Family::kOpenMpi,
        4,
        "apt install openmpi-bin libopenmpi-dev libscalapack-openmpi-dev, then build again"},
};

using Words = std::vector<std::string>;

Words open_mpi_options(const Mpi& mpi, const Placement& placement) {
  Words words{"--allow-run-as-root", "--oversubscribe"};
  // There is one host, so Open MPI need not look for a way to start ranks on others.
  if (mpi.release < 5) words.insert(words.end(), {"--mca", "plm", "isolated"});
  switch (placement.unit()) {
    case Unit::kNone:
      words.insert(words.end(), {"--bind-to", "none"});
      break;
    case Unit::kCore:
      words.insert(words.end(), {"--map-by", "core", "--bind-to", "core"});
      break;
    case Unit::kThread:
      words.insert(words.end(),
                   {"--use-hwthread-cpus", "--map-by", "hwthread", "--bind-to", "hwthread"});
      break;
  }
  if (placement.is_crowded()) words.insert(words.end(), {"--mca", "mpi_yield_when_idle", "1"});
  return words;
}

Words mpich_options(const Placement& placement) {
  const char* const units[] = {"none", "core", "hwthread"};
  return {"-launcher", "fork", "-bind-to", units[int(placement.unit())]};
}

// Sets Intel MPI's options, which are environment variables. With shared memory alone, it does not
// need libfabric.
void be_intel_mpi(Launch& launch, const fs::path& launcher, const Placement& placement) {
  launch.environment = {{"I_MPI_ROOT", launcher.parent_path().parent_path()},
                        {"I_MPI_FABRICS", "shm"},
                        {"I_MPI_PIN", placement.binds() ? "1" : "0"}};
  if (!placement.binds()) return;
  launch.environment.emplace_back("I_MPI_PIN_CELL",
                                  placement.unit() == Unit::kCore ? "core" : "unit");
  launch.environment.emplace_back("I_MPI_PIN_DOMAIN",
                                  placement.unit() == Unit::kCore ? "core" : "1");
}

Offer by_mpi(const Mpi& mpi, const Placement& placement) {
  const fs::path peer = measuring_programs() / fmt::format("bench_{}", mpi.name);
  if (!fs::exists(peer)) return not_built(mpi.name, mpi.mend);
  // The build writes an absolute path, and tools/speed/many_cores.sh --pack a path relative to this
  // folder.
  std::string line;
  std::getline(std::ifstream(peer.string() + ".launcher"), line);
  const std::string launcher = (peer.parent_path() / line).lexically_normal();
  if (::access(launcher.c_str(), X_OK) != 0) {
    const std::string what = fmt::format("its launcher is gone: {}", launcher);
    return missing(mpi.name, what, mpi.mend);
  }
  Offer offer;
  offer.launch.library = mpi.name;
  offer.launch.arguments = {launcher};
  Words options;
  switch (mpi.family) {
    case Family::kOpenMpi:
      options = open_mpi_options(mpi, placement);
      break;
    case Family::kMpich:
      options = mpich_options(placement);
      break;
    case Family::kIntel:
      options = {"-launcher", "fork"};
      be_intel_mpi(offer.launch, launcher, placement);
      break;
  }
  for (const std::string& word : options) offer.launch.arguments.push_back(word);
  for (const std::string& word :
       {std::string("-n"), std::to_string(placement.ranks), peer.string()}) {
    offer.launch.arguments.push_back(word);
  }
  return offer;
}

}  // namespace

std::vector<std::string> comparable_libraries(bool on_gpu) {
  if (on_gpu) return {"nccl", "peer"};
  std::vector<std::string> names;
  for (const Mpi& mpi : kMpis) names.push_back(mpi.name);
  names.push_back("gloo");
  names.emplace_back(kBare);
  return names;
}

std::vector<std::string> numeric_libraries() {
  return {kNumericPeers[0].name, kNumericPeers[1].name};
}

Offer find_library(std::string_view library, const Placement& placement) {
  for (const Mpi& mpi : kMpis) {
    if (library == mpi.name) return by_mpi(mpi, placement);
  }
  for (const Mpi& mpi : kNumericPeers) {
    if (library == mpi.name) return by_mpi(mpi, placement);
  }
  if (library == "gloo") {
    return by_itself(library, placement, "apt install libgloo-dev, then build again");
  }
  if (library == kBare) {
    return by_itself(library, placement, "build again");
  }
  std::vector<std::string> command{
      this_executable(), kWorkerSubcommand, kWorkerName, std::string(library)};
  if (placement.on_gpu) command.push_back(kWorkerOnGpu);
  if (!placement.by_graph) command.push_back(kWorkerEager);
  Offer offer = by_hocket_run(library, placement, command);
  if (library != kHocket) offer.launch.environment.emplace_back("HOCKET_ENGINES", library);
  return offer;
}

}  // namespace hocket::cli::bench
