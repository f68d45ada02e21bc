#include "foundation/base/log.h"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace hocket::base {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::off;
}

spdlog::logger& logger() {
  static spdlog::logger* const instance = [] {
    auto* made =
        new spdlog::logger("hocket", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_level(spdlog::level::warn);
    made->set_pattern("hocket %l: %v");
    return made;
  }();
  return *instance;
}

}  // namespace

void configure_log(LogLevel level, int rank) {
  logger().set_level(to_spdlog(level));
  logger().set_pattern(rank < 0 ? "hocket %l: %v" : fmt::format("hocket[{}] %l: %v", rank));
}

void log(LogLevel level, std::string_view message) noexcept {
  logger().log(to_spdlog(level), message);
}

}  // namespace hocket::base
