// The engines that a machine lets run.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/config.h"
#include "comm/composition.h"
#include "comm/composition_mpi.h"
#include "hocket/machine.h"
#include "os/addresses.h"
#include "os/probe.h"

namespace hocket {
namespace {

// The first thing that processes which share memory cannot do without and that does not work.
std::string obstacle(const Machine& machine) {
  const auto broken = std::ranges::find_if(
      machine.features, [](const Feature& feature) { return feature.required && !feature.works; });
  return broken == machine.features.end()
             ? ""
             : fmt::format("{} does not work: {}", broken->name, broken->error);
}

// What an engine of GPUs lacks here; empty: nothing.
std::string missing_for_gpus(const Machine& machine, const std::string& name) {
  const auto lacks = [&](const char* library) {
    const auto found = std::ranges::find(machine.libraries, library, &Software::name);
    return found == machine.libraries.end() || !found->found() ||
           found->version.find("no usable GPU") != std::string::npos;
  };
  if (lacks("CUDA driver")) return "there is no GPU, or no driver for it";
  return name == "nccl" && lacks("NCCL") ? "there is no NCCL" : "";
}

// "version\n" and whether it knows GPUs' memory, or "\nwhy not".
std::string about_ucx() {
  const comm::UcxFacts facts = comm::look_at_ucx(base::Config::from_environment());
  return facts.why_not.empty() ? facts.version + "\n" + (facts.knows_gpus ? "1" : "0")
                               : "\n" + facts.why_not;
}

// Messages between hosts, and by which way other hosts would reach this one.
Engine ucx_engine(const Machine& machine, const std::string& why_not) {
  Engine ucx{.name = "ucx", .available = false, .note = why_not};
  if (!why_not.empty()) return ucx;
  const auto found = os::run_in_child([] { return about_ucx(); }, 15000);
  const std::size_t line = found ? found->find('\n') : 0;
  if (!found || line == 0) {
    ucx.note = found ? found->substr(1) : "UCX crashed or hung when it was started";
    return ucx;
  }
  const auto chosen = base::environment("HOCKET_INTERFACE");
  const auto interface = chosen ? os::find_interface(*chosen) : std::nullopt;
  if (chosen && !interface) {
    ucx.note = fmt::format("HOCKET_INTERFACE={} is no interface that is up", *chosen);
    return ucx;
  }
  ucx.available = true;
  const bool knows_gpus = found->back() == '1';
  const bool has_gpus = missing_for_gpus(machine, "peer").empty();
  ucx.note = fmt::format(
      "ranks on several hosts, {}, UCX {}, by {}",
      knows_gpus ? "host and GPU memory"
      : has_gpus ? "host memory (not GPUs': built without CUDA; see HOCKET_UCX_LIBRARY)"
                 : "host memory",
      found->substr(0, line),
      interface ? fmt::format("{} ({})", interface->name, interface->address)
                : std::string("the interface on the way to the store (HOCKET_INTERFACE)"));
  return ucx;
}

// MPI's collectives, and, where there are GPUs, what each MPI says of their memory.
Engine mpi_engine(const Machine& machine) {
  const std::vector<std::string> mpis = comm::known_mpis();
  Engine mpi{.name = "mpi", .available = !mpis.empty(), .note = {}};
  if (mpis.empty()) {
    mpi.note = "this build has none of MPI's headers";
    return mpi;
  }
  mpi.note = fmt::format("host memory, under the mpirun of {}, when asked for (HOCKET_ENGINES=mpi)",
                         fmt::join(mpis, " or "));
  if (!missing_for_gpus(machine, "peer").empty()) return mpi;
  std::vector<std::string> said;
  for (const std::string& name : mpis) {
    const auto found = os::run_in_child([&] { return comm::look_at_mpi(name); }, 15000);
    said.push_back(found.value_or(name + " crashed or hung when it was started"));
  }
  mpi.note += fmt::format("; GPU memory too, by those that know it, with HOCKET_MPI_GPUS=auto: {}",
                          fmt::join(said, ", "));
  return mpi;
}

}  // namespace

std::vector<Engine> find_engines(const Machine& machine) {
  const std::string why_not = obstacle(machine);
  std::vector<Engine> result;
  const auto add = [&](const std::vector<std::string>& names, const char* scope) {
    for (const std::string& name : names) {
      if (std::ranges::find(result, name, &Engine::name) != result.end()) continue;
      const std::string lacks =
          why_not.empty() && comm::is_of_gpus(name) ? missing_for_gpus(machine, name) : why_not;
      const char* what = name == "peer"   ? "GPUs of one host, GPU memory, by kernels of our own"
                         : name == "nccl" ? "a GPU a rank, GPU memory"
                                          : scope;
      result.push_back(
          {.name = name, .available = lacks.empty(), .note = lacks.empty() ? what : lacks});
    }
  };
  add(comm::choose_engines({}, false), "ranks on one host, host memory");
  add(comm::choose_engines({}, true), "ranks that are threads of one process");
  result.push_back(ucx_engine(machine, why_not));
  result.push_back(mpi_engine(machine));
  return result;
}

}  // namespace hocket
