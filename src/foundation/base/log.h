// Writes hocket's messages on standard error: "hocket[2] warning: ...".
//
// By default only warnings and errors appear. HOCKET_LOG=debug|info|warning|error|off changes this.
#pragma once

#include <string_view>

namespace hocket::base {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

// Sets the least level of messages that appear. From then on each message contains the rank, unless
// `rank` is negative. Called once, by init().
void configure_log(LogLevel level, int rank);
void log(LogLevel level, std::string_view message) noexcept;

}  // namespace hocket::base
