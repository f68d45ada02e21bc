#include "foundation/base/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <initializer_list>

#include "foundation/base/words.h"
#include "hocket/error.h"

namespace hocket::base {

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::optional<long long> environment_integer(const char* name, long long low, long long high) {
  const auto text = environment(name);
  if (!text) return std::nullopt;
  long long value = 0;
  const auto* end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc() || rest != end || value < low || value > high) {
    throw InvalidArgument(fmt::format(
        "{}={} is not a whole number from {} to {}; correct or unset it", name, *text, low, high));
  }
  return value;
}

std::vector<std::string> environment_names(std::string_view prefix) {
  std::vector<std::string> names;
  for (char** each = environ; each != nullptr && *each != nullptr; ++each) {
    const std::string_view variable = *each;
    if (variable.starts_with(prefix)) names.emplace_back(variable.substr(0, variable.find('=')));
  }
  return names;
}

void default_environment(const char* name, const char* value) { ::setenv(name, value, 0); }

bool environment_switch(const char* name, bool otherwise) {
  return environment(name) ? environment_word(name, {"0", "1"}) == 1 : otherwise;
}

std::size_t environment_word(const char* name, std::initializer_list<const char*> words) {
  const auto text = environment(name);
  if (!text) return 0;
  const auto* found = std::ranges::find(words, *text);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  throw InvalidArgument(fmt::format(
      "{}={} is not one of {}; correct or unset it", name, *text, fmt::join(words, ", ")));
}

namespace {

LibraryChoice library_choice(const char* variable, std::initializer_list<const char*> words) {
  const auto text = environment(variable);
  if (!text) return {};
  if (text->find('/') != text->npos || text->find(".so") != text->npos) return {.file = *text};
  if (std::ranges::find(words, *text) != words.end()) return {.word = *text};
  throw InvalidArgument(
      fmt::format("{}={} is neither one of {} nor a library's file; correct or unset it",
                  variable,
                  *text,
                  fmt::join(words, ", ")));
}

}  // namespace

LibraryChoice fft_library() {
  return library_choice("HOCKET_FFT_LIBRARY", {"fftw", "mkl", "eigen"});
}
LibraryChoice blas_library() {
  return library_choice("HOCKET_BLAS_LIBRARY", {"openblas", "mkl", "blis", "none"});
}

PortRange port_range() {
  const auto text = environment("HOCKET_PORTS");
  if (!text) return {};
  PortRange range;
  const char* const end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, range.low);
  if (error == std::errc() && rest != end && *rest == '-') {
    const auto [last, wrong] = std::from_chars(rest + 1, end, range.high);
    const bool is_read = wrong == std::errc() && last == end;
    if (is_read && range.low >= 1 && range.low <= range.high && range.high <= 65535) return range;
  }
  throw InvalidArgument(fmt::format(
      "HOCKET_PORTS={} is not a range of ports as 29500-29600; correct or unset it", *text));
}

namespace {

LogLevel log_level() {
  const auto text = environment("HOCKET_LOG");
  if (!text || *text == "warning") return LogLevel::kWarning;
  if (*text == "debug") return LogLevel::kDebug;
  if (*text == "info") return LogLevel::kInfo;
  if (*text == "error") return LogLevel::kError;
  if (*text == "off") return LogLevel::kOff;
  throw InvalidArgument(fmt::format(
      "HOCKET_LOG={} is not one of debug, info, warning, error, off; correct or unset it", *text));
}

// Converts a number of seconds. Absent if the text is not a number in [low, high].
std::optional<Duration> seconds_from(const std::string& text, double low, double high) {
  const auto seconds = number_in<double>(text);
  if (!seconds || !(*seconds >= low) || *seconds > high) return std::nullopt;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*seconds));
}

Duration default_deadline() {
  const auto text = environment("HOCKET_DEADLINE");
  if (!text) return std::chrono::seconds(300);
  if (*text == "forever") return kForever;
  if (const auto duration = seconds_from(*text, 1e-9, 1e9)) return *duration;
  throw InvalidArgument(fmt::format(
      "HOCKET_DEADLINE={} is neither a positive number of seconds nor \"forever\"", *text));
}

// Returns the time that the variable `setting` gives in seconds: `otherwise` if it is unset,
// kForever if it is 0. `none` names the thing that 0 turns off, for the error's text.
Duration wait_time(const char* setting, Duration otherwise, const char* none) {
  const auto text = environment(setting);
  if (!text) return otherwise;
  const auto duration = seconds_from(*text, 0, 1e9);
  if (!duration || (*duration != Duration::zero() && *duration < std::chrono::milliseconds(1))) {
    throw InvalidArgument(
        fmt::format("{}={} is not a number of seconds from 0.001 on, nor 0 for no {}; correct or "
                    "unset it",
                    setting,
                    *text,
                    none));
  }
  return *duration == Duration::zero() ? kForever : *duration;
}

WaitTimes wait_times() {
  const WaitTimes usual;
  return {.warn_after = wait_time("HOCKET_WARN", usual.warn_after, "warnings"),
          .deadlock_after =
              wait_time("HOCKET_DEADLOCK_AFTER", usual.deadlock_after, "search for deadlocks")};
}

Duration longest_silence() {
  const auto text = environment("HOCKET_SILENCE");
  if (!text) return std::chrono::seconds(3);
  if (const auto duration = seconds_from(*text, 0.1, 3600)) return *duration;
  throw InvalidArgument(fmt::format(
      "HOCKET_SILENCE={} is not a number of seconds from 0.1 to 3600; correct or unset it", *text));
}

SingleCopy wanted_copies() {
  constexpr std::array kWays{SingleCopy::kWhereQuicker, SingleCopy::kNever, SingleCopy::kAlways};
  return kWays[environment_word("HOCKET_SINGLE_COPY", {"auto", "never", "always"})];
}

// Returns the folder of HOCKET_AUDIT. 1 means the folder of HOCKET_TRACE, or `hocket-audit` if
// there is no trace.
std::string audit_directory(const std::string& trace_dir) {
  const std::string text = environment("HOCKET_AUDIT").value_or("");
  if (text == "0") return {};
  if (text != "1") return text;
  return trace_dir.empty() ? "hocket-audit" : trace_dir;
}

}  // namespace

Config Config::from_environment() {
  Config config;
  config.log = log_level();
  config.deadline = default_deadline();
  config.waits = wait_times();
  if (const auto gib = environment_integer("HOCKET_SEGMENT_GIB", 1, 1 << 20)) {
    config.segment_bytes = static_cast<std::size_t>(*gib) << 30;
  }
  config.engines = environment("HOCKET_ENGINES").value_or("");
  config.algorithm = environment("HOCKET_ALGORITHM").value_or("");
  config.flight_recorder_dir = environment("HOCKET_DUMP_DIR").value_or("");
  config.trace_dir = environment("HOCKET_TRACE").value_or("");
  config.audit_dir = audit_directory(config.trace_dir);
  config.interface = environment("HOCKET_INTERFACE").value_or("");
  config.ports = port_range();
  config.silence = longest_silence();
  config.single_copy = wanted_copies();
  config.costs = environment("HOCKET_COSTS").value_or("");
  config.is_shown = environment_switch("HOCKET_TOP", true);
  static_cast<void>(fft_library());
  static_cast<void>(blas_library());
  return config;
}

}  // namespace hocket::base
