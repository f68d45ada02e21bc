#include "engines/ucx/devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace hocket::engines::ucx {
namespace {

std::vector<std::string_view> words_of(std::string_view list) {
  std::vector<std::string_view> words;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (comma > 0) words.push_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return words;
}

bool contains(std::span<const std::string_view> words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// Transports that have no network device.
constexpr std::array<std::string_view, 12> kWithoutDevice{"self",
                                                          "sm",
                                                          "shm",
                                                          "mm",
                                                          "posix",
                                                          "sysv",
                                                          "xpmem",
                                                          "cma",
                                                          "knem",
                                                          "cuda",
                                                          "cuda_copy",
                                                          "cuda_ipc"};

bool needs_others(std::span<const std::string_view> words) {
  return std::ranges::any_of(words, [](std::string_view word) {
    return word != "tcp" && !contains(kWithoutDevice, word);
  });
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

std::string net_devices(const std::string& interface,
                        std::string_view transports,
                        std::span<const std::string> others) {
  const bool excludes = transports.starts_with('^');
  const auto words = words_of(transports.substr(excludes ? 1 : 0));
  const bool takes_all = words.empty() || excludes || contains(words, "all");
  const bool takes_tcp = excludes ? !contains(words, "tcp") : takes_all || contains(words, "tcp");
  if (!takes_tcp) return {};
  if (others.empty() || !(takes_all || needs_others(words))) return interface;
  return fmt::format("{},{}", interface, fmt::join(others, ","));
}

std::vector<std::string> infiniband_devices(const std::string& folder) {
  const std::filesystem::path root(folder);
  std::vector<std::string> devices;
  for (const std::string& name : names_in(root)) {
    for (const std::string& port : names_in(root / name / "ports")) {
      std::ifstream file(root / name / "ports" / port / "state");
      std::string state;  // "4: ACTIVE"
      std::getline(file, state);
      if (state.starts_with("4")) devices.push_back(name + ":" + port);
    }
  }
  return devices;
}

}  // namespace hocket::engines::ucx
