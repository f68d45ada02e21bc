// Jobs as JSON, for programs.
#pragma once

#include <string>
#include <vector>

#include "hocket/live.h"

namespace hocket::cli {

// A job, and its kind as found. A value.
struct ShownJob {
  FoundJob found;
  LiveJob seen;  // empty where found.refusal says why
};

std::string jobs_json(const std::vector<ShownJob>& jobs);

}  // namespace hocket::cli
