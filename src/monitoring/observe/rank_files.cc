#include "monitoring/observe/rank_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <fstream>

#include "hocket/error.h"

namespace hocket::observe {
namespace {

std::vector<std::byte> contents_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) throw SystemError("cannot read " + path.string(), errno);
  std::vector<std::byte> contents(static_cast<std::size_t>(in.tellg()));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(contents.data()), static_cast<std::streamsize>(contents.size()));
  if (!in) throw SystemError("cannot read " + path.string(), errno);
  return contents;
}

}  // namespace

std::vector<std::filesystem::path> rank_files(const std::string& folder,
                                              std::string_view ending,
                                              std::error_code& error) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ending) files.push_back(entry.path());
  }
  return files;
}

void drop_rank_files_from(int size, const std::string& folder, std::string_view ending) noexcept {
  try {
    std::error_code error;
    for (const auto& file : rank_files(folder, ending, error)) {
      const std::string name = file.stem();
      constexpr std::string_view kBefore = "rank-";
      int rank = 0;
      const char* const end = name.data() + name.size();
      if (!name.starts_with(kBefore)) continue;
      const auto read = std::from_chars(name.data() + kBefore.size(), end, rank);
      const bool is_rank = read.ec == std::errc() && read.ptr == end;
      if (is_rank && rank >= size) std::filesystem::remove(file, error);
    }
  } catch (const std::exception&) {  // out of memory: the files stay, and readers report them
  }
}

void read_rank_files(const std::string& folder,
                     std::string_view kind,
                     const std::function<void(std::span<const std::byte>)>& read) {
  std::error_code error;
  const auto files = rank_files(folder, fmt::format(".{}", kind), error);
  if (error) throw SystemError("cannot read " + folder, error.value());
  if (files.empty()) {
    std::string setting(kind);
    std::ranges::transform(
        setting, setting.begin(), [](unsigned char c) { return std::toupper(c); });
    throw InvalidArgument(fmt::format(
        "{} has no rank-N.{}; a job writes them with `hocket run --{} DIR`, or HOCKET_{}=DIR",
        folder,
        kind,
        kind,
        setting));
  }
  for (const auto& file : files) {
    try {
      read(contents_of(file));
    } catch (const InvalidArgument& wrong) {
      throw InvalidArgument(file.string() + " " + wrong.what());
    }
  }
}

}  // namespace hocket::observe
