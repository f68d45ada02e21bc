#include "interfaces/cli/run/environment_block.h"

#include <unistd.h>

#include <algorithm>

namespace hocket::cli {
namespace {

bool names(std::string_view entry, std::string_view name) {
  return entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=';
}

}  // namespace

EnvironmentBlock EnvironmentBlock::inherited() {
  EnvironmentBlock block;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    block.entries_.emplace_back(*entry);
  }
  return block;
}

std::vector<std::string>::iterator EnvironmentBlock::find(std::string_view name) {
  return std::ranges::find_if(entries_, [&](const auto& entry) { return names(entry, name); });
}

bool EnvironmentBlock::has(std::string_view name) const {
  return std::ranges::any_of(entries_, [&](const auto& entry) { return names(entry, name); });
}

std::string_view EnvironmentBlock::get(std::string_view name) const {
  for (const std::string& entry : entries_) {
    if (names(entry, name)) return std::string_view(entry).substr(name.size() + 1);
  }
  return {};
}

void EnvironmentBlock::set(std::string_view name, std::string_view value) {
  std::string entry = std::string(name) + "=" + std::string(value);
  if (const auto place = find(name); place != entries_.end()) {
    *place = std::move(entry);
  } else {
    entries_.push_back(std::move(entry));
  }
}

void EnvironmentBlock::erase(std::string_view name) {
  std::erase_if(entries_, [&](const auto& entry) { return names(entry, name); });
}

std::vector<char*> EnvironmentBlock::pointers() {
  std::vector<char*> result;
  result.reserve(entries_.size() + 1);
  for (std::string& entry : entries_) result.push_back(entry.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace hocket::cli
