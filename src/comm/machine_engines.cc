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

}  // namespace

std::vector<Engine> find_engines(const Machine& machine) {
  const std::string why_not = obstacle(machine);
  std::vector<Engine> result;
  const auto add = [&](const std::vector<std::string>& names, const char* scope) {
    for (const std::string& name : names) {
      if (std::ranges::find(result, name, &Engine::name) != result.end()) continue;
      result.push_back(
          {.name = name, .available = why_not.empty(), .note = why_not.empty() ? scope : why_not});
    }
  };
  add(comm::choose_engines({}, false), "ranks on one host, host memory");
  add(comm::choose_engines({}, true), "ranks that are threads of one process");
  return result;
}

}  // namespace hocket
