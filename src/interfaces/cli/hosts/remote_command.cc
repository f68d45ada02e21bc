#include "interfaces/cli/hosts/remote_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>

#include "hocket/error.h"

namespace hocket::cli {
namespace {

// BatchMode: ssh asks no questions. A host that does not answer is noticed within half a minute.
constexpr const char* kSsh =
    "ssh -T -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5 "
    "-o ServerAliveCountMax=6 -- {host}";
constexpr std::string_view kPlace = "{host}";

std::string quoted(const std::string& word) {
  const bool is_plain = !word.empty() && std::ranges::all_of(word, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::strchr("_-./+@:,", c) != nullptr;
  });
  if (is_plain) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

bool replace_host(std::string& word, const std::string& host) {
  bool found = false;
  for (std::size_t at = 0; (at = word.find(kPlace, at)) != std::string::npos; at += host.size()) {
    word.replace(at, kPlace.size(), host);
    found = true;
  }
  return found;
}

}  // namespace

std::vector<std::string> split_words(const std::string& text, const char* option) {
  std::vector<std::string> words;
  char quote = '\0';
  bool inside = false;  // in a word, which quotes may leave empty
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == '\0' && std::isspace(static_cast<unsigned char>(c)) != 0) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    if (c == quote) {
      quote = '\0';
    } else if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      words.back() += text[++i];
    } else {
      words.back() += c;
    }
  }
  if (quote == '\0') return words;
  throw InvalidArgument(fmt::format("{} {}: a quote {} has no end", option, text, quote));
}

std::vector<std::string> words_for(const RemoteCommand& command, const std::string& host) {
  std::vector<std::string> words =
      split_words(command.launcher.empty() ? kSsh : command.launcher, "--launcher");
  if (words.empty()) throw InvalidArgument("--launcher: expected a command, such as 'ssh -p 2222'");
  bool has_place = false;
  for (std::string& word : words) has_place |= replace_host(word, host);
  if (!has_place) words.push_back(host);
  const std::string hocket = command.hocket.empty() ? own_path() : command.hocket;
  if (std::filesystem::path(words.front()).filename() == "ssh") {
    words.push_back(quoted(hocket) + " as-host");
  } else {
    words.insert(words.end(), {hocket, "as-host"});
  }
  return words;
}

std::string own_path() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "hocket" : path.string();
}

}  // namespace hocket::cli
