#include "interfaces/cli/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "interfaces/cli/quantities.h"

namespace hocket::cli {
namespace {

std::string plural(int count, const char* word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

std::string processors_text(const Processors& processors) {
  std::string text =
      processors.allowed == processors.online
          ? plural(processors.allowed, "processor")
          : fmt::format("{} of {} processors", processors.allowed, processors.online);
  text += fmt::format(
      " on {}, {}", plural(processors.cores, "core"), plural(processors.numa_nodes, "memory node"));
  if (processors.quota) text += fmt::format(", time of {:.3g} granted", *processors.quota);
  return text + (processors.model.empty() ? "" : ", " + processors.model);
}

std::string waits_text(const Processors& processors) {
  return processors.spinning_ranks == 0 ? "ranks yield"
                                        : fmt::format("up to {} spin, more than that yield",
                                                      plural(processors.spinning_ranks, "rank"));
}

std::string caches_text(const Processors& processors) {
  std::vector<std::string> parts;
  for (const auto& cache : processors.caches) {
    parts.push_back(fmt::format("{} {} x {}", cache.name, cache.instances, size_text(cache.bytes)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string memory_text(const Memory& memory) {
  std::string text =
      fmt::format("{}, {} available", size_text(memory.total), size_text(memory.available));
  if (memory.limit) text += fmt::format(", at most {} by the cgroup", size_text(*memory.limit));
  return text;
}

std::string limit_text(const Limit& limit, const std::optional<std::uint64_t>& value) {
  if (!value) return "unlimited";
  return limit.name.ends_with("bytes") ? size_text(*value) : fmt::format("{}", *value);
}

std::string software_text(const std::vector<Software>& all) {
  std::vector<std::string> parts;
  for (const Software& software : all) {
    if (software.found()) parts.push_back(software.name + " " + software.version);
  }
  return parts.empty() ? "none found" : fmt::format("{}", fmt::join(parts, "; "));
}

std::string engines_text(const Machine& machine) {
  std::vector<std::string> parts;
  for (const Engine& engine : find_engines(machine)) {
    if (engine.available) parts.push_back(engine.name);
  }
  return parts.empty() ? "none" : fmt::format("{}", fmt::join(parts, ", "));
}

// Lines of a report, "label   text".
class Report {
 public:
  explicit Report(const Colours& colours) : colours_(colours) {}

  void head(std::string_view title) {
    text_ +=
        fmt::format("{}{}{}{}\n", text_.empty() ? "" : "\n", colours_.bold, title, colours_.end);
  }
  void line(std::string_view label, std::string_view text) {
    text_ += fmt::format("  {:<18} {}\n", label, text);
  }
  void faint(std::string_view text) {
    text_ += fmt::format("  {}{}{}\n", colours_.faint, text, colours_.end);
  }
  void check(bool good, std::string_view label, std::string_view text) {
    text_ += fmt::format("  {}{:<3}{} {:<18} {}\n",
                         good ? colours_.good : colours_.bad,
                         good ? "yes" : "no",
                         colours_.end,
                         label,
                         text);
  }
  void problem(const Problem& problem) {
    text_ += fmt::format("  {}{}{} {}\n      mend: {}\n",
                         problem.stops_hocket ? colours_.bad : colours_.bold,
                         problem.stops_hocket ? "stops hocket:" : "note:",
                         colours_.end,
                         problem.what,
                         problem.mend);
  }
  std::string take() { return std::move(text_); }

 private:
  Colours colours_;
  std::string text_;
};

void add_host(Report& report, const Machine& machine) {
  report.head(machine.host.empty() ? "This machine" : machine.host);
  report.line("kernel", machine.kernel);
  report.line("processors", processors_text(machine.processors));
  report.line("waits", waits_text(machine.processors));
  if (!machine.processors.caches.empty()) report.line("caches", caches_text(machine.processors));
  report.line("memory", memory_text(machine.memory));
  if (!machine.memory.shmem_huge_pages.empty()) {
    report.line("huge pages", "for shared memory: " + machine.memory.shmem_huge_pages);
  }
  report.line("/dev/shm", "not used: shared memory has no name, its size does not matter");
}

void add_limits(Report& report, const Machine& machine) {
  report.head("Limits (ulimit)");
  for (const Limit& limit : machine.limits) {
    std::string text = limit_text(limit, limit.soft);
    if (limit.hard != limit.soft) text += ", may be raised to " + limit_text(limit, limit.hard);
    report.line(limit.option + " " + limit.name.substr(0, limit.name.find(',')), text);
  }
  report.line("core dumps go to", machine.core_pattern);
}

void add_network(Report& report, const Machine& machine) {
  report.head("Network");
  for (const NetworkInterface& interface : machine.interfaces) {
    std::string text = interface.up ? "up" : "down";
    if (interface.megabits) text += fmt::format(", {} Mbit/s", *interface.megabits);
    if (!interface.addresses.empty()) {
      text += fmt::format(", {}", fmt::join(interface.addresses, " "));
    }
    report.line(interface.name, text);
  }
}

void add_software(Report& report, const Machine& machine) {
  report.head("Libraries and packages");
  for (const Software& software : machine.libraries) {
    std::string text = software.found() ? software.version + "  " + software.where : "not found";
    if (!software.note.empty()) text += (software.found() ? "  " : ": ") + software.note;
    report.line(software.name, text);
  }
  if (machine.python.empty()) report.line("Python", "not found");
  for (const Software& software : machine.python) {
    report.line(software.name, software.version + "  " + software.where);
  }
  report.faint("Found is not used: what is used stands under Engines.");
}

void add_problems(Report& report, const std::vector<Problem>& problems) {
  report.head(problems.empty() ? "No problems" : "Problems");
  for (const Problem& problem : problems) report.problem(problem);
}

}  // namespace

std::string short_report(const Machine& machine, const Colours& colours) {
  constexpr std::size_t kProblemsShown = 3;
  const std::vector<Problem> problems = find_problems(machine);
  Report report(colours);
  report.head("hocket on " + machine.host);
  report.line("processors", processors_text(machine.processors));
  report.line("memory", memory_text(machine.memory));
  report.line("engines", engines_text(machine));
  report.line("libraries", software_text(machine.libraries));
  report.line("packages", software_text(machine.python));
  const auto stopping = std::ranges::count_if(problems, &Problem::stops_hocket);
  report.line("verdict",
              stopping > 0 ? fmt::format("{}hocket cannot work here{}", colours.bad, colours.end)
                           : fmt::format("{}ready{}", colours.good, colours.end));
  for (std::size_t i = 0; i < std::min(problems.size(), kProblemsShown); ++i) {
    report.line(problems[i].stops_hocket ? "stops hocket" : "note",
                problems[i].what + "; mend: " + problems[i].mend);
  }
  if (problems.size() > kProblemsShown) {
    report.line("note", fmt::format("{} more: hocket doctor", problems.size() - kProblemsShown));
  }
  return report.take();
}

std::string full_report(const Machine& machine, const Colours& colours) {
  Report report(colours);
  add_host(report, machine);
  add_limits(report, machine);
  report.head("Kernel, tried");
  for (const Feature& feature : machine.features) {
    report.check(feature.works,
                 feature.name,
                 feature.works ? feature.purpose : feature.error + "; for " + feature.purpose);
  }
  add_network(report, machine);
  add_software(report, machine);
  report.head("Engines, best first");
  for (const Engine& engine : find_engines(machine)) {
    report.check(engine.available, engine.name, engine.note);
  }
  add_problems(report, find_problems(machine));
  return report.take();
}

std::string settings_report(const Colours& colours) {
  std::string text;
  for (const Setting& setting : settings()) {
    text += fmt::format("{}{:<22}{} {}\n{:<22} {}{}{}\n",
                        colours.bold,
                        setting.name,
                        colours.end,
                        setting.value ? "= " + *setting.value : "(not set)",
                        "",
                        colours.faint,
                        setting.meaning,
                        colours.end);
  }
  return text;
}

}  // namespace hocket::cli
