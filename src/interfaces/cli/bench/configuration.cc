#include "interfaces/cli/bench/configuration.h"

#include <fmt/format.h>

#include "interfaces/cli/bench/plot.h"

namespace hocket::cli::bench {

std::string configuration_of(const Findings& findings) {
  std::string rows;
  const auto add = [&](const std::string& name, const std::string& value) {
    rows += fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", escaped(name), escaped(value));
  };
  add("command", findings.command);
  add("date", findings.date);
  for (const auto& [name, value] : findings.machine) add(name, value);
  for (const Participant& one : findings.participants) {
    if (one.version.empty()) {
      add(one.name, "did not take part");
      continue;
    }
    add(one.name, one.version);
    for (const Start& start : one.starts) {
      add(fmt::format("{}, {} ranks", one.name, start.ranks),
          fmt::format("on processors {}, by {}", fmt::join(start.processors, " | "), start.launch));
    }
  }
  add("method",
      fmt::format("calls {}, in {} batches of {} ms or more, the libraries in "
                  "turns; a batch takes as long as its slowest rank; median, least and greatest "
                  "of the batches; bands and the spread of ratios: the middle half of the batches; "
                  "results checked before and after",
                  findings.plan.dirty
                      ? "by themselves, their inputs written again and the ranks met "
                        "before each, untimed"
                      : "one after the other",
                  findings.plan.repeats,
                  findings.plan.batch.count()));
  add("bandwidth", "bytes / time (alg), times the collective's factor as nccl-tests has it (bus)");
  for (const Gap& gap : findings.gaps) {
    add("not finished",
        fmt::format("{}: {} of {}, {} ranks: {}",
                    gap.library,
                    name_of(gap.subject.collective),
                    size_text(gap.bytes),
                    gap.ranks,
                    gap.why));
  }
  for (const std::string& problem : findings.problems) add("problem", problem);
  return fmt::format(
      "<section><h2>Configuration</h2><div class=\"wide\"><table class=\"config\"><tbody>\n{}"
      "</tbody></table></div></section>\n",
      rows);
}

}  // namespace hocket::cli::bench
