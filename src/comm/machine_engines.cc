// The engines that a machine lets run.
#include <fmt/format.h>

#include <algorithm>

#include "comm/composition.h"
#include "hocket/machine.h"

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

std::string scope(const std::vector<std::string>& of_processes, const std::string& name) {
  return std::ranges::find(of_processes, name) == of_processes.end()
             ? "ranks that are threads of one process"
             : "ranks on one host, host memory";
}

}  // namespace

std::vector<Engine> find_engines(const Machine& machine) {
  const std::string why_not = obstacle(machine);
  const auto of_processes = comm::choose_engines({}, false);
  std::vector<Engine> result;
  for (const std::string& name : comm::choose_engines({}, true)) {
    result.push_back({.name = name,
                      .available = why_not.empty(),
                      .note = why_not.empty() ? scope(of_processes, name) : why_not});
  }
  return result;
}

}  // namespace hocket
