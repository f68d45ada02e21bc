#include "interfaces/cli/top/json.h"

#include <nlohmann/json.hpp>

namespace hocket::cli {
namespace {

using Json = nlohmann::ordered_json;

const char* name_of(LiveState state) {
  switch (state) {
    case LiveState::kAbsent:
      return "not come";
    case LiveState::kAlive:
      return "alive";
    case LiveState::kLeft:
      return "left";
    case LiveState::kDied:
      return "died";
    case LiveState::kSilent:
      return "not heard";
  }
  return "";
}

Json json_of(const LiveGroup& group) {
  Json made{{"name", group.name},
            {"rank", group.rank},
            {"size", group.size},
            {"calls", group.calls},
            {"call", group.call},
            {"inside", group.inside},
            {"failed", group.failed},
            {"message", group.message},
            {"missing", group.missing},
            {"failure", group.failure}};
  if (!group.recent.empty()) made["recent"] = group.recent;
  return made;
}

Json json_of(const LiveRank& rank) {
  Json groups = Json::array();
  for (const LiveGroup& group : rank.groups) groups.push_back(json_of(group));
  return {{"rank", rank.rank},
          {"pid", rank.pid},
          {"host", rank.host},
          {"here", rank.is_here},
          {"shows", rank.shows},
          {"state", name_of(rank.state)},
          {"process", rank.process},
          {"place", rank.place},
          {"stands_still", rank.stands_still},
          {"processor", rank.processor},
          {"doing", rank.doing},
          {"since_s", rank.since_s},
          {"waiting", rank.waiting},
          {"inside", rank.inside},
          {"calls_per_s", rank.calls_per_s},
          {"bytes_per_s", rank.bytes_per_s},
          {"blocked_by", rank.blocked_by},
          {"groups", groups}};
}

}  // namespace

std::string jobs_json(const std::vector<ShownJob>& jobs) {
  Json all = Json::array();
  for (const ShownJob& job : jobs) {
    Json ranks = Json::array();
    for (const LiveRank& rank : job.seen.ranks) ranks.push_back(json_of(rank));
    all.push_back({{"pid", job.found.pid},
                   {"size", job.found.size},
                   {"pids", job.found.pids},
                   {"threads", job.found.threads},
                   {"command", job.found.command},
                   {"name", job.found.name},
                   {"refusal", job.found.refusal},
                   {"looked_s", job.seen.looked_s},
                   {"memory_bytes", job.seen.memory_bytes},
                   {"blamed", job.seen.blamed},
                   {"ranks", ranks}});
  }
  // A command line may be invalid UTF-8.
  return Json{{"jobs", all}}.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hocket::cli
