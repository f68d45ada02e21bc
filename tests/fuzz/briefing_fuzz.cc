// The briefing that `hocket as-host` reads, by standard input, from the head that started it.
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "foundation/os/fd.h"
#include "hocket/error.h"
#include "interfaces/cli/hosts/briefing.h"

namespace {

using namespace hocket;

void require(bool holds) {
  if (!holds) std::abort();
}

// Sends `text` through a pipe, which has room for it, and receives it as a briefing.
cli::Briefing received(std::string_view text, int answers) {
  std::array<int, 2> ends{};
  require(::pipe(ends.data()) == 0);
  const os::Fd in(ends[0]);
  {
    const os::Fd writer(ends[1]);
    require(::write(writer.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  return cli::receive_briefing(in.get(), answers);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMost = 4096;
  if (size == 0 || size > kMost) return 0;
  std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  // Half of the inputs are fields behind a first line that is right.
  if (data[0] % 2 == 1) {
    text = "hocket-host " HOCKET_VERSION " token " + std::to_string(text.size()) + "\n" + text;
  }
  std::array<int, 2> ends{};
  require(::pipe(ends.data()) == 0);
  const os::Fd reader(ends[0]);
  const os::Fd answers(ends[1]);
  try {
    // The head sends what `encode` makes, so a briefing that is taken must come back from that.
    const cli::Briefing first = received(text, answers.get());
    const cli::Briefing second = received(cli::encode(first), answers.get());
    require(second.token == first.token && second.job == first.job && second.host == first.host);
    require(second.folder == first.folder && second.colour == first.colour);
    require(second.hosts.size() == first.hosts.size());
    require(second.environment == first.environment && second.arguments == first.arguments);
    require(first.self().slots == second.self().slots && first.self().name == second.self().name);
  } catch (const InvalidArgument&) {
    // refused, with a reason
  }
  return 0;
}
