// The environment against any values of any of the variables that hocket reads: it ends in settings
// that keep their bounds, or in InvalidArgument. An input is lines of NUMBER OF A VARIABLE, VALUE.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "engines/algorithm/catalogue.h"
#include "foundation/base/config.h"
#include "hocket/error.h"
#include "membership/rendezvous/address.h"
#include "membership/rendezvous/launchers/launchers.h"

namespace {

using namespace hocket;

constexpr std::array kVariables{"HOCKET_LOG",
                                "HOCKET_DEADLINE",
                                "HOCKET_ENGINES",
                                "HOCKET_ALGORITHM",
                                "HOCKET_SEGMENT_GIB",
                                "HOCKET_SILENCE",
                                "HOCKET_INTERFACE",
                                "HOCKET_UCX_BULK",
                                "HOCKET_NVLINK_MULTICAST",
                                "HOCKET_RANK",
                                "HOCKET_SIZE",
                                "HOCKET_LOCAL_RANK",
                                "HOCKET_LOCAL_SIZE",
                                "HOCKET_STORE",
                                "HOCKET_JOB",
                                "RANK",
                                "WORLD_SIZE",
                                "LOCAL_RANK",
                                "LOCAL_WORLD_SIZE",
                                "MASTER_ADDR",
                                "MASTER_PORT",
                                "TORCHELASTIC_RESTART_COUNT",
                                "OMPI_COMM_WORLD_RANK",
                                "OMPI_COMM_WORLD_SIZE",
                                "OMPI_COMM_WORLD_LOCAL_SIZE",
                                "PMIX_NAMESPACE",
                                "PMI_RANK",
                                "PMI_SIZE",
                                "PMI_FD",
                                "MPI_LOCALRANKID",
                                "MPI_LOCALNRANKS",
                                "SLURM_JOB_ID",
                                "SLURM_STEP_ID",
                                "SLURM_PROCID",
                                "SLURM_NTASKS",
                                "SLURM_STEP_NUM_TASKS",
                                "SLURM_LOCALID",
                                "SLURM_NODEID",
                                "SLURM_TASKS_PER_NODE",
                                "SLURM_STEP_TASKS_PER_NODE",
                                "SLURM_RESTART_COUNT",
                                "HOCKET_UCX_GPUS",
                                "HOCKET_MPI_GPUS",
                                "HOCKET_WARN",
                                "HOCKET_PORTS"};

void require(bool holds) {
  if (!holds) std::abort();
}

// Runs `read`; bad input is InvalidArgument with a message, and nothing else.
template <typename Read>
void refused_or_read(const Read& read) {
  try {
    read();
  } catch (const InvalidArgument& error) {
    require(*error.what() != '\0');
  }
}

void set_variables(std::string_view text) {
  for (const char* name : kVariables) ::unsetenv(name);
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty()) continue;
    const auto which = static_cast<unsigned char>(line[0]) % kVariables.size();
    ::setenv(kVariables[which], std::string(line.substr(1)).c_str(), 1);
  }
}

void read_config() {
  const auto config = base::Config::from_environment();
  require(config.deadline > Duration::zero());
  require(config.waits.warn_after >= std::chrono::microseconds(999));
  require(config.waits.deadlock_after >= std::chrono::microseconds(999));
  require(config.silence >= std::chrono::milliseconds(99) &&
          config.silence <= std::chrono::seconds(3600));
  require(config.segment_bytes % (std::size_t{1} << 30) == 0);
  algorithm::Choices::parse(config.algorithm);
}

// As engines read theirs.
void read_engines_settings() {
  refused_or_read(
      [] { require(base::environment_word("HOCKET_UCX_BULK", {"auto", "pieces", "direct"}) < 3); });
  for (const char* variable : {"HOCKET_UCX_GPUS", "HOCKET_MPI_GPUS"}) {
    refused_or_read(
        [&] { require(base::environment_word(variable, {"never", "auto", "always"}) < 3); });
  }
  refused_or_read([] { base::environment_switch("HOCKET_NVLINK_MULTICAST"); });
}

void read_place() {
  for (auto* find : {rendezvous::place_from_hocket,
                     rendezvous::place_from_torchrun,
                     rendezvous::place_from_open_mpi,
                     rendezvous::place_from_mpich,
                     rendezvous::place_from_slurm}) {
    refused_or_read([&] {
      const auto place = find();
      if (!place) return;
      require(place->rank >= 0 && place->rank < place->size);
      require(place->local_rank >= -1 && place->local_size >= -1 && place->epoch >= 0);
    });
  }
}

void read_store() {
  const auto text = base::environment("HOCKET_STORE");
  if (!text) return;
  const auto address = rendezvous::parse_address(*text, "HOCKET_STORE");
  // An accepted address means the same after it is written and parsed again.
  const std::string again = rendezvous::to_string(address);
  require(rendezvous::to_string(rendezvous::parse_address(again, "it")) == again);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  set_variables({reinterpret_cast<const char*>(data), size});
  refused_or_read(read_config);
  read_engines_settings();
  read_place();
  refused_or_read(read_store);
  return 0;
}
