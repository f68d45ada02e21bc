#include "arrays/distribution/same_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "hocket/error.h"

namespace hocket::distribution {

void SamePlan::compare(std::uint64_t digest, std::optional<Duration> deadline) {
  const auto whole = world::whole_call(comm_, kind_);
  comm_.all_gather(std::span<const std::uint64_t>(&digest, 1),
                   std::span<std::uint64_t>(given_),
                   {.deadline = deadline});
  const auto other = std::ranges::find_if(given_, [&](auto d) { return d != given_.front(); });
  if (other == given_.end()) return;
  throw InvalidArgument(fmt::format(
      "rank {} executes another plan than rank 0, or the same with other arguments; all "
      "ranks execute the same plans in the same order",
      other - given_.begin()));
}

}  // namespace hocket::distribution
