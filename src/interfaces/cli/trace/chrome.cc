#include "interfaces/cli/trace/chrome.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "interfaces/cli/quantities.h"

namespace hocket::cli {
namespace {

using Json = nlohmann::ordered_json;

// Writes one event at a time, so that a trace of millions of calls is never in memory as a whole.
class Events {
 public:
  explicit Events(std::ostream& out) : out_(out) { out_ << "{\"traceEvents\":["; }
  ~Events() { out_ << "\n],\"displayTimeUnit\":\"ns\"}\n"; }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  void add(const Json& event) {
    out_ << (first_ ? "\n" : ",\n")
         << event.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    first_ = false;
  }

 private:
  std::ostream& out_;
  bool first_ = true;
};

double microseconds(TraceTime time) { return static_cast<double>(time) * 1e-3; }

Json arguments_of(const TracedCall& call) {
  Json arguments = {{"dtype", std::string(name_of(call.dtype))}, {"bytes", call.bytes}};
  if (call.sequence != 0) arguments["number"] = call.sequence;
  if (!call.engine.empty()) arguments["engine"] = call.engine;
  if (call.peer >= 0) arguments[call.sequence != 0 ? "root" : "peer"] = call.peer;
  if (call.on_gpu) arguments["time"] = "of putting it on the stream";
  if (call.failed) arguments["error"] = true;
  return arguments;
}

void add_call(Events& events, int rank, const TracedCall& call, std::uint64_t& messages) {
  Json event = {{"name", fmt::format("{} {}", call.name, size_text(call.bytes))},
                {"cat", call.engine.empty() ? "message" : call.engine},
                {"pid", rank},
                {"tid", call.group},
                {"ts", microseconds(call.begin)}};
  if (call.sequence == 0) {  // messages may overlap
    const std::uint64_t id = ++messages;
    event["id"] = fmt::format("{}.{}", rank, id);
    event["ph"] = "b";
    event["args"] = arguments_of(call);
    events.add(event);
    if (!call.end) return;
    event["ph"] = "e";
    event["ts"] = microseconds(*call.end);
    event.erase("args");
    events.add(event);
    return;
  }
  event["ph"] = call.end ? "X" : "B";
  if (call.end) event["dur"] = microseconds(*call.end - call.begin);
  event["args"] = arguments_of(call);
  if (call.failed) event["cname"] = "terrible";
  events.add(event);
}

void add_name(Events& events, const char* kind, int rank, std::size_t line, std::string name) {
  events.add({{"name", kind},
              {"ph", "M"},
              {"pid", rank},
              {"tid", line},
              {"args", {{"name", std::move(name)}}}});
}

}  // namespace

void write_chrome_trace(const JobTrace& trace, std::ostream& out) {
  Events events(out);
  for (const RankTrace& rank : trace.ranks) {
    add_name(events,
             "process_name",
             rank.rank,
             0,
             fmt::format("rank {} ({}, pid {})", rank.rank, rank.host_name, rank.pid));
    events.add({{"name", "process_sort_index"},
                {"ph", "M"},
                {"pid", rank.rank},
                {"args", {{"sort_index", rank.rank}}}});
    for (std::size_t i = 0; i < rank.groups.size(); ++i) {
      add_name(events, "thread_name", rank.rank, i, rank.groups[i].name);
    }
    std::uint64_t messages = 0;
    for (const TracedCall& call : rank.calls) add_call(events, rank.rank, call, messages);
  }
}

}  // namespace hocket::cli
