#include "interfaces/cli/run/over_hosts/outcome.h"

#include <algorithm>
#include <utility>

#include "interfaces/cli/run/launcher.h"

namespace hocket::cli {

void HostsOutcome::rank_failed(const ReportedFailure& failure) {
  if (was_reported_) return;
  if (!failure_ || failure.likelihood > failure_->likelihood) failure_ = failure;
}

void HostsOutcome::host_failed(int code) {
  if (failure_) return;
  failure_ = ReportedFailure{.exit_code = code};
  was_reported_ = true;
}

std::optional<std::string> HostsOutcome::take_report() {
  if (!failure_ || std::exchange(was_reported_, true)) return std::nullopt;
  return failure_->text;
}

int HostsOutcome::exit_code(std::span<const std::optional<int>> codes, bool keep_going) const {
  if (has_wish()) return 128 + wish_;
  if (timed_out_) return kExitTimeout;
  if (keep_going && std::ranges::count(codes, std::optional(0)) > 0) return 0;
  if (failure_) return failure_->exit_code;
  const auto failed = [](const std::optional<int>& code) { return code.value_or(0) != 0; };
  const auto first = std::ranges::find_if(codes, failed);
  return first == codes.end() ? 0 : **first;
}

}  // namespace hocket::cli
