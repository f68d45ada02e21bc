// Reports on a machine, as text and as JSON.
#pragma once

#include <string>

#include "hocket/machine.h"

namespace hocket::cli {

// Escape sequences for colours; empty if the output is no terminal.
struct Colours {
  const char* good = "";
  const char* bad = "";
  const char* faint = "";
  const char* bold = "";
  const char* end = "";
  static Colours for_terminal() {
    return {"\x1b[32m", "\x1b[31m", "\x1b[2m", "\x1b[1m", "\x1b[0m"};
  }
};

// short_report has at most 12 lines.
std::string short_report(const Machine& machine, const Colours& colours);
std::string full_report(const Machine& machine, const Colours& colours);
std::string json_report(const Machine& machine);
std::string settings_report(const Colours& colours);

}  // namespace hocket::cli
