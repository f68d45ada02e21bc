#include "interfaces/cli/bench/machine.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>
#include <fstream>

#include "interfaces/cli/run/binding.h"

namespace hocket::cli::bench {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string processor_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

std::string caches() {
  std::string text;
  for (int index = 0;; ++index) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    const std::string size = first_line(folder + "size");
    if (size.empty()) return text;
    if (first_line(folder + "type") == "Instruction") continue;
    text += fmt::format("{}L{} {}", text.empty() ? "" : ", ", first_line(folder + "level"), size);
  }
}

// Returns the value in brackets of a line such as "always [madvise] never".
std::string chosen_in(const std::string& line) {
  const std::size_t begin = line.find('[');
  const std::size_t end = line.find(']');
  if (begin == std::string::npos || end == std::string::npos) return line;
  return line.substr(begin + 1, end - begin - 1);
}

}  // namespace

Facts machine_facts() {
  Facts facts;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) facts.emplace_back(name, value);
  };
  utsname system{};
  ::uname(&system);
  const auto processors = allowed_processors();
  const double memory = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                        static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 30);
  add("host", system.nodename);
  add("cpu", processor_model());
  add("processors", fmt::format("{} on {} cores", processors.size(), count_cores(processors)));
  add("caches", caches());
  add("memory", fmt::format("{:.0f} GiB", memory));
  add("kernel", fmt::format("{} {} {}", system.sysname, system.release, system.machine));
  add("governor", first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
  add("huge_pages", chosen_in(first_line("/sys/kernel/mm/transparent_hugepage/enabled")));
  return facts;
}

std::string timestamp() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace hocket::cli::bench
