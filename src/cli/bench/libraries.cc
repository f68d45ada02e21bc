#include "cli/bench/libraries.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "cli/environment_block.h"
#include "cli/program.h"

namespace hocket::cli::bench {
namespace {

namespace fs = std::filesystem;

fs::path this_executable() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

// The measuring programs stand in ../libexec/hocket, installed and in the build folder alike.
fs::path measuring_program(const std::string& name) {
  return this_executable().parent_path().parent_path() / "libexec" / "hocket" / name;
}

// The first of `names` that can be run, or an empty path.
std::string first_program(const std::vector<std::string>& names) {
  const std::string search_path(EnvironmentBlock::inherited().get("PATH"));
  for (const std::string& name : names) {
    const Program found = find_program(name, search_path);
    if (!found.path.empty()) return found.path;
  }
  return "";
}

Offer missing(std::string_view library, const std::string& what, const std::string& mend) {
  Offer offer;
  offer.launch.library = library;
  offer.missing = fmt::format("{} ({})", what, mend);
  return offer;
}

// Ranks that `hocket run` starts, by `rank_command`.
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

Offer gloo(const Placement& placement) {
  const fs::path peer = measuring_program("bench_gloo");
  if (!fs::exists(peer)) {
    return missing("gloo", "not found", "apt install libgloo-dev, then build again");
  }
  return by_hocket_run("gloo", placement, {peer});
}

Offer open_mpi(const Placement& placement) {
  const std::string mend = "apt install openmpi-bin libopenmpi-dev, then build again";
  const fs::path peer = measuring_program("bench_openmpi");
  const std::string launcher = first_program({"mpirun.openmpi", "mpirun"});
  if (launcher.empty()) return missing("openmpi", "not found", mend);
  if (!fs::exists(peer)) return missing("openmpi", fmt::format("no {}", peer.string()), mend);
  Offer offer;
  offer.launch.library = "openmpi";
  offer.launch.arguments = {launcher,
                            "--allow-run-as-root",
                            "--oversubscribe",
                            // One host: nothing to start ranks on others with.
                            "--mca",
                            "plm",
                            "isolated",
                            "--bind-to",
                            placement.binds() ? "core" : "none"};
  if (!placement.binds()) {
    offer.launch.arguments.insert(offer.launch.arguments.end(),
                                  {"--mca", "mpi_yield_when_idle", "1"});
  }
  offer.launch.arguments.insert(offer.launch.arguments.end(),
                                {"-n", std::to_string(placement.ranks), peer.string()});
  return offer;
}

Offer mpich(const Placement& placement) {
  const std::string mend = "apt install mpich libmpich-dev, then build again";
  const fs::path peer = measuring_program("bench_mpich");
  const std::string launcher = first_program({"mpiexec.mpich", "mpiexec.hydra"});
  if (launcher.empty()) return missing("mpich", "not found", mend);
  if (!fs::exists(peer)) return missing("mpich", fmt::format("no {}", peer.string()), mend);
  Offer offer;
  offer.launch.library = "mpich";
  offer.launch.arguments = {launcher,
                            "-launcher",
                            "fork",
                            "-bind-to",
                            placement.binds() ? "core" : "none",
                            "-n",
                            std::to_string(placement.ranks),
                            peer.string()};
  return offer;
}

}  // namespace

std::vector<std::string> comparable_libraries(bool on_gpu) {
  if (on_gpu) return {"nccl", "peer"};
  return {"openmpi", "mpich", "gloo"};
}

Offer find_library(std::string_view library, const Placement& placement) {
  if (library == "openmpi") return open_mpi(placement);
  if (library == "mpich") return mpich(placement);
  if (library == "gloo") return gloo(placement);
  std::vector<std::string> command{
      this_executable(), kWorkerSubcommand, kWorkerName, std::string(library)};
  if (placement.on_gpu) command.push_back(kWorkerOnGpu);
  if (!placement.by_graph) command.push_back(kWorkerEager);
  Offer offer = by_hocket_run(library, placement, command);
  if (library != kHocket) offer.launch.environment.emplace_back("HOCKET_ENGINES", library);
  return offer;
}

}  // namespace hocket::cli::bench
