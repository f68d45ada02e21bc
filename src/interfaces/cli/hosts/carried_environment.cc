#include "interfaces/cli/hosts/carried_environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "interfaces/cli/run/job_plan.h"

namespace hocket::cli {

std::vector<std::string> carried_environment() {
  constexpr std::array<std::string_view, 6> kOfThisHost{"HOCKET_KEY_FILE",
                                                        "HOCKET_CHILD_OF",
                                                        "HOCKET_HOST",
                                                        "HOCKET_BIN",
                                                        "HOCKET_JOIN",
                                                        "HOCKET_WITHIN"};
  std::vector<std::string> result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view setting = *entry;
    const std::string_view name = setting.substr(0, setting.find('='));
    if (!name.starts_with("HOCKET_") || is_own_variable(name)) continue;
    if (std::ranges::find(kOfThisHost, name) == kOfThisHost.end()) result.emplace_back(setting);
  }
  return result;
}

}  // namespace hocket::cli
