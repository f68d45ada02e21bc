#include "interfaces/cli/hosts/host_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

#include "hocket/error.h"
#include "interfaces/cli/run/launcher.h"

namespace hocket::cli {
namespace {

// A value: a word of a list of hosts, and its position for errors.
struct HostWord {
  std::string text;
  std::string source;  // "--hosts", or "--hostfile F, line 3"
  std::size_t column;  // of its first character, from 1
};

[[noreturn]] void refuse_word(const HostWord& word, const std::string& why, std::size_t at = 0) {
  throw InvalidArgument(fmt::format("{}, column {}: {}", word.source, word.column + at, why));
}

int read_slots(const HostWord& word, std::size_t at) {
  const std::string digits = word.text.substr(at);
  const bool is_number = !digits.empty() && digits.size() <= 4 &&
                         digits.find_first_not_of("0123456789") == std::string::npos;
  const int slots = is_number ? std::stoi(digits) : 0;
  if (slots >= 1 && slots <= kMaxRanks) return slots;
  refuse_word(
      word,
      fmt::format("'{}' is no number of ranks; expected one from 1 to {}", digits, kMaxRanks),
      at);
}

void check_name(const HostWord& word, const std::string& name) {
  if (name.empty()) refuse_word(word, "a host's name is missing; expected HOST or HOST:RANKS");
  if (name.front() == '-') {
    refuse_word(word, fmt::format("'{}' is no host's name: it begins with '-'", name));
  }
  const auto is_odd = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) == 0 && std::strchr("._-@%:", c) == nullptr;
  };
  const auto odd = std::ranges::find_if(name, is_odd);
  if (odd == name.end()) return;
  refuse_word(word, fmt::format("a host's name has no '{}'; expected HOST or HOST:RANKS", *odd));
}

// Finds the end of the name, which is a colon or the word's end.
std::size_t end_of_name(const HostWord& word) {
  const std::string& text = word.text;
  const std::size_t bracket = text.find('[');
  const std::size_t closing = text.find(']');
  if (bracket != std::string::npos && closing == std::string::npos) {
    refuse_word(word, "'[' has no ']'; expected [ADDRESS]:RANKS", bracket);
  }
  const std::size_t colon = text.find(':', closing == std::string::npos ? 0 : closing);
  if (closing != std::string::npos && closing + 1 != std::min(colon, text.size())) {
    refuse_word(word, "expected ':RANKS' behind ']'", closing + 1);
  }
  if (colon != std::string::npos && text.find(':', colon + 1) != std::string::npos) {
    refuse_word(word, "an IPv6 address is written in brackets: [::1]:4", colon);
  }
  return std::min(colon, text.size());
}

// Reads "host" or "host:4"; `has_slots` tells which.
HostSlots read_host(const HostWord& word, bool& has_slots) {
  const std::size_t end = end_of_name(word);
  HostSlots host{.name = word.text.substr(0, end)};
  std::erase_if(host.name, [](char c) { return c == '[' || c == ']'; });
  check_name(word, host.name);
  has_slots = end < word.text.size();
  if (has_slots) host.slots = read_slots(word, end + 1);
  return host;
}

void add_host(std::vector<HostSlots>& hosts, const HostSlots& more, const HostWord& word) {
  const auto known = std::ranges::find(hosts, more.name, &HostSlots::name);
  if (known == hosts.end()) {
    hosts.push_back(more);
  } else if (known->slots + more.slots > kMaxRanks) {
    refuse_word(word, fmt::format("'{}' has more than {} ranks", more.name, kMaxRanks));
  } else {
    known->slots += more.slots;
  }
}

std::vector<HostWord> split_line(const std::string& line, const std::string& source) {
  const std::string text = line.substr(0, line.find('#'));
  constexpr const char* kBlanks = " \t\r";
  std::vector<HostWord> words;
  for (std::size_t at = 0; (at = text.find_first_not_of(kBlanks, at)) != std::string::npos;) {
    const std::size_t end = std::min(text.find_first_of(kBlanks, at), text.size());
    words.push_back({text.substr(at, end - at), source, at + 1});
    at = end;
  }
  return words;
}

void read_line(std::vector<HostSlots>& hosts, const std::vector<HostWord>& words) {
  bool has_slots = false;
  HostSlots host = read_host(words.front(), has_slots);
  for (std::size_t i = 1; i < words.size(); ++i) {
    constexpr std::string_view kSlots = "slots=";
    const bool is_named = words[i].text.starts_with(kSlots);
    if (has_slots || (!is_named && words[i].text.find('=') != std::string::npos)) {
      refuse_word(
          words[i],
          fmt::format("unexpected '{}'; expected one of: HOST, HOST:4, HOST 4, HOST slots=4",
                      words[i].text));
    }
    host.slots = read_slots(words[i], is_named ? kSlots.size() : 0);
    has_slots = true;
  }
  add_host(hosts, host, words.front());
}

}  // namespace

std::string HostSlots::address() const { return name.substr(name.rfind('@') + 1); }

std::vector<HostSlots> parse_hosts(const std::string& text) {
  std::vector<HostSlots> hosts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const HostWord word{text.substr(at, end - at), "--hosts", at + 1};
    bool has_slots = false;
    add_host(hosts, read_host(word, has_slots), word);
    at = end + 1;
  }
  return hosts;
}

std::vector<HostSlots> read_hostfile(const std::string& path) {
  std::ifstream file(path);
  std::vector<HostSlots> hosts;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    const auto words = split_line(line, fmt::format("--hostfile {}, line {}", path, ++number));
    if (!words.empty()) read_line(hosts, words);
  }
  if (!file.eof()) {
    throw InvalidArgument(
        fmt::format("--hostfile {}: cannot be read: {}", path, std::strerror(errno)));
  }
  if (!hosts.empty()) return hosts;
  throw InvalidArgument(
      fmt::format("--hostfile {}: no host is in it; expected lines such as: a slots=4", path));
}

std::vector<HostSlots> take_places(std::vector<HostSlots> hosts, int ranks) {
  if (ranks < 1) {
    throw InvalidArgument(fmt::format("-n {}: the number of ranks must be at least 1", ranks));
  }
  const int places = total_slots(hosts);
  if (ranks > places) {
    throw InvalidArgument(
        fmt::format("-n {}: the hosts have {} places; give them more, such as {}:{}",
                    ranks,
                    places,
                    hosts.back().name,
                    hosts.back().slots + ranks - places));
  }
  for (HostSlots& host : hosts) {
    host.slots = std::min(host.slots, ranks);
    ranks -= host.slots;
  }
  std::erase_if(hosts, [](const HostSlots& host) { return host.slots == 0; });
  return hosts;
}

int total_slots(const std::vector<HostSlots>& hosts) {
  int total = 0;
  for (const HostSlots& host : hosts) total += host.slots;
  return total;
}

}  // namespace hocket::cli
