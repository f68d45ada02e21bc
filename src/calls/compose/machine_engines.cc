// The engines that a machine supports, and the settings of all engines.
#include <fmt/format.h>

#include <algorithm>

#include "calls/compose/providers.h"
#include "foundation/base/config.h"
#include "hocket/machine.h"

namespace hocket {
namespace {

// Returns why no engine can run: the first required feature that does not work. Empty: none.
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
  for (const auto& provider : compose::make_providers({})) {
    auto engine = provider->probe(machine);
    if (!engine) continue;
    if (!why_not.empty()) {
      engine->available = false;
      engine->note = why_not;
    }
    result.push_back(*std::move(engine));
  }
  return result;
}

std::vector<Setting> settings() {
  std::vector<Setting> result;
  const auto add = [&](std::span<const base::SettingRow> rows) {
    for (const base::SettingRow& row : rows) {
      result.push_back({row.name, row.meaning, base::environment(row.name)});
    }
  };
  add(base::common_settings());
  for (const auto& provider : compose::make_providers({})) add(provider->settings());
  return result;
}

}  // namespace hocket
