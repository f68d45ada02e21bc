#include <nlohmann/json.hpp>

#include "interfaces/cli/report.h"

namespace hocket::cli {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json to_json(const Processors& processors) {
  Json caches = Json::array();
  for (const auto& cache : processors.caches) {
    caches.push_back(
        {{"name", cache.name}, {"bytes", cache.bytes}, {"instances", cache.instances}});
  }
  return {{"model", processors.model},
          {"online", processors.online},
          {"allowed", processors.allowed},
          {"cores", processors.cores},
          {"packages", processors.packages},
          {"numa_nodes", processors.numa_nodes},
          {"quota", or_null(processors.quota)},
          {"spinning_ranks", processors.spinning_ranks},
          {"caches", caches}};
}

Json to_json(const Memory& memory) {
  return {{"total", memory.total},
          {"available", memory.available},
          {"limit", or_null(memory.limit)},
          {"shmem_huge_pages", text_or_null(memory.shmem_huge_pages)}};
}

Json to_json(const Limit& limit) {
  return {{"option", limit.option},
          {"name", limit.name},
          {"soft", or_null(limit.soft)},
          {"hard", or_null(limit.hard)}};
}

Json to_json(const Feature& feature) {
  return {{"name", feature.name},
          {"works", feature.works},
          {"required", feature.required},
          {"purpose", feature.purpose},
          {"error", text_or_null(feature.error)}};
}

Json to_json(const NetworkInterface& interface) {
  return {{"name", interface.name},
          {"addresses", interface.addresses},
          {"up", interface.up},
          {"loopback", interface.loopback},
          {"megabits", or_null(interface.megabits)}};
}

Json to_json(const Software& software) {
  return {{"name", software.name},
          {"found", software.found()},
          {"version", text_or_null(software.version)},
          {"where", text_or_null(software.where)},
          {"note", text_or_null(software.note)}};
}

Json to_json(const Engine& engine) {
  return {{"name", engine.name}, {"available", engine.available}, {"note", engine.note}};
}

Json to_json(const Problem& problem) {
  return {{"stops_hocket", problem.stops_hocket}, {"what", problem.what}, {"mend", problem.mend}};
}

Json to_json(const Setting& setting) {
  return {{"name", setting.name}, {"value", or_null(setting.value)}, {"meaning", setting.meaning}};
}

template <typename T>
Json list(const std::vector<T>& values) {
  Json result = Json::array();
  for (const T& value : values) result.push_back(to_json(value));
  return result;
}

}  // namespace

std::string json_report(const Machine& machine) {
  const Json report = {{"version", HOCKET_VERSION},
                       {"host", machine.host},
                       {"kernel", machine.kernel},
                       {"core_pattern", machine.core_pattern},
                       {"processors", to_json(machine.processors)},
                       {"memory", to_json(machine.memory)},
                       {"limits", list(machine.limits)},
                       {"features", list(machine.features)},
                       {"interfaces", list(machine.interfaces)},
                       {"libraries", list(machine.libraries)},
                       {"python", list(machine.python)},
                       {"engines", list(find_engines(machine))},
                       {"problems", list(find_problems(machine))},
                       {"settings", list(settings())}};
  // Names of the system may be in any encoding; JSON is UTF-8.
  return report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hocket::cli
