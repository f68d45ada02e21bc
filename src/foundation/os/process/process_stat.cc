#include "foundation/os/process/process_stat.h"

#include <unistd.h>

#include <array>
#include <string_view>

#include "foundation/base/words.h"
#include "foundation/os/fd.h"

namespace hocket::os {
namespace {

template <typename Number>
void read_field(std::string_view word, Number& into) noexcept {
  into = base::number_in<Number>(word).value_or(into);
}

// It looks for the last ')', because the program's name in parentheses may contain any character.
// The next field is a letter, and all later ones are numbers.
std::optional<ProcessStat> parse(std::string_view line) noexcept {
  constexpr int kState = 3;
  constexpr int kParent = 4;
  constexpr int kStart = 22;
  constexpr int kProcessor = 39;
  constexpr int kExitCode = 52;
  const auto name_end = line.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  ProcessStat stat;
  line.remove_prefix(name_end + 1);
  for (int field = kState; field <= kExitCode; ++field) {
    const std::string_view word = base::next_word(line);
    if (word.empty()) return std::nullopt;
    if (field == kState) stat.state = word[0];
    if (field == kParent) read_field(word, stat.parent);
    if (field == kStart) read_field(word, stat.start);
    if (field == kProcessor) read_field(word, stat.processor);
    if (field == kExitCode) read_field(word, stat.exit_code);
  }
  return stat;
}

}  // namespace

std::optional<ProcessStat> read_process_stat(const char* path, int folder) noexcept {
  const Fd file(::openat(folder, path, O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::array<char, 1024> text;
  const ssize_t length = ::read(file.get(), text.data(), text.size());
  if (length <= 0) return std::nullopt;
  return parse({text.data(), static_cast<std::size_t>(length)});
}

}  // namespace hocket::os
