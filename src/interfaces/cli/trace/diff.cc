#include "interfaces/cli/trace/diff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <vector>

#include "hocket/audit.h"
#include "hocket/error.h"
#include "interfaces/cli/commands.h"
#include "interfaces/cli/quantities.h"

namespace hocket::cli {
namespace {

using What = AuditDifference::What;

// Returns "all_reduce #7 on world", or "send to rank 1, tag 4, on world".
std::string call_text(const AuditedCall& call, const std::string& group) {
  if (call.sequence != 0) return fmt::format("{} #{} on {}", call.name, call.sequence, group);
  return fmt::format("{} {} rank {}, tag {}, on {}",
                     call.name,
                     call.name == "send" ? "to" : "from",
                     call.peer,
                     call.tag,
                     group);
}

// Returns "all_reduce of float32, 4 KiB in, 4 KiB out".
std::string shape_text(const AuditedCall& call) {
  return fmt::format("{} of {}, {} in, {} out{}",
                     call.name,
                     name_of(call.dtype),
                     size_text(call.in.bytes),
                     size_text(call.out.bytes),
                     call.peer >= 0 ? fmt::format(", rank {}", call.peer) : "");
}

std::string elements_text(const AuditDifference& difference) {
  const AuditBlock& block = difference.block;
  const AuditedArray& array =
      difference.what == What::kGiven ? difference.call.in : difference.call.out;
  return fmt::format("{}elements {} to {}{} ({} of {} blocks)",
                     block.part < 0 ? "" : fmt::format("part {}, ", block.part),
                     block.begin,
                     block.end == 0 ? 0 : block.end - 1,
                     difference.blocks > 1 ? " first" : "",
                     difference.blocks,
                     array.blocks.size());
}

void print(const AuditDifference& difference) {
  fmt::print("The runs part in {}, {}:\n",
             call_text(difference.call, difference.group),
             shape_text(difference.call));
  switch (difference.what) {
    case What::kGiven:
      fmt::print("  what rank {} gave differs: {}\n", difference.rank, elements_text(difference));
      break;
    case What::kTaken:
      fmt::print("  all gave the same, and what rank {} got differs: {}\n",
                 difference.rank,
                 elements_text(difference));
      break;
    case What::kCall:
      fmt::print("  in the second run rank {} called {}\n",
                 difference.rank,
                 shape_text(*difference.other));
      break;
    case What::kMissing:
      fmt::print("  rank {} made it in the {} run alone\n",
                 difference.rank,
                 difference.first_has_it ? "first" : "second");
      break;
  }
  if (difference.given_by.size() > 1) {
    fmt::print("  what others gave differs too: {}\n", ranks_text(difference.given_by));
  }
  if (difference.what == What::kGiven && !difference.taken_by.empty()) {
    fmt::print("  what came out of it differs on {}\n", ranks_text(difference.taken_by));
  }
}

std::size_t dropped(const JobAudit& job) {
  std::size_t count = 0;
  for (const RankAudit& rank : job.ranks) count += rank.dropped;
  return count;
}

}  // namespace

int show_difference(const std::string& first, const std::string& second) {
  AuditComparison comparison;
  std::size_t lost = 0;
  try {
    const JobAudit a = read_audit(first);
    const JobAudit b = read_audit(second);
    comparison = compare_audits(a, b);
    lost = dropped(a) + dropped(b);
  } catch (const InvalidArgument& error) {
    fmt::print(stderr, "hocket: {}\n", error.what());
    return kExitUsage;
  }
  if (comparison.first) {
    print(*comparison.first);
  } else if (comparison.calls == 0) {
    fmt::print(stderr,
               "hocket: no call of {} could be compared with one of {}{}\n",
               first,
               second,
               lost == 0 ? "" : fmt::format(": {} had no room in the files", lost));
    return kExitUsage;
  } else {
    fmt::print("The runs do not differ{}.\n", lost == 0 ? "" : " as far as their files go");
  }
  fmt::print(
      "{} calls of ranks are equal{}{}.\n",
      comparison.calls,
      comparison.not_digested == 0
          ? ""
          : fmt::format(", {} of them with arrays that were not digested", comparison.not_digested),
      lost == 0 ? "" : fmt::format("; {} had no room in the files", lost));
  return comparison.first ? kExitFailure : 0;
}

void print_non_finite(const std::string& folder) {
  if (!has_audit(folder)) return;
  const auto found = first_non_finite(read_audit(folder));
  if (!found) return;
  fmt::print("\nInfinite, or no number, for the first time: element {} of what rank {} {} {}\n",
             found->element,
             found->rank,
             found->given ? "gave to" : "got from",
             call_text(found->call, found->group));
}

}  // namespace hocket::cli
