// hocket's own messages, on standard error: "hocket[2] warning: ...".
//
// Quiet by default (warnings and errors); HOCKET_LOG=debug|info|warning|error|off changes that.
#pragma once

#include <string_view>

namespace hocket::base {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

// Called once, by init(). From then on messages contain the rank, unless it is negative.
void configure_log(LogLevel level, int rank);
void log(LogLevel level, std::string_view message) noexcept;

}  // namespace hocket::base
