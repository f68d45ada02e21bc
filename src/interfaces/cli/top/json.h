// Jobs as JSON, for programs.
#pragma once

#include <string>
#include <vector>

#include "hocket/live.h"

namespace hocket::cli {

// A job as it was found, and its state. A value.
struct ShownJob {
  FoundJob found;
  LiveJob seen;  // empty if found.refusal is set
};

std::string jobs_json(const std::vector<ShownJob>& jobs);

}  // namespace hocket::cli
