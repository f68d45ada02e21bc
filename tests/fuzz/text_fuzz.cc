// Texts that others write: files of costs (HOCKET_COSTS), choices of algorithms, and the answers of
// a launcher's process manager (PMI).
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/cost_table.h"
#include "engines/algorithm/catalogue.h"
#include "foundation/os/fd.h"
#include "hocket/error.h"
#include "membership/rendezvous/launchers/launcher_space.h"

namespace {

using namespace hocket;

void require(bool holds) {
  if (!holds) std::abort();
}

void read_costs(std::string_view text) {
  const auto table = engine::CostTable::parse(text);
  engine::Signature signature{.kind = engine::Kind::kAllReduce, .dtype = DType::kFloat32};
  for (const std::uint64_t count : {0ULL, 1ULL, 1000ULL, 1ULL << 40}) {
    signature.count = count;
    for (const char* name : {"peer", "nccl", "peer.symmetric"}) {
      const auto time = table.microseconds(name, signature, 4);
      require(!time || *time >= 0);  // no number is no time either
    }
  }
}

// A launcher that has answered all questions beforehand.
void ask_launcher(std::string_view text) {
  std::array<int, 2> ends{};
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  const os::Fd ours(ends[0]);
  {
    const os::Fd theirs(ends[1]);
    require(::send(theirs.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(text.size()));
    ::shutdown(theirs.get(), SHUT_WR);
    ::setenv("PMI_FD", std::to_string(ours.get()).c_str(), 1);
    const auto bootstrap = rendezvous::make_space_bootstrap(
        rendezvous::open_pmi_space(), {.rank_variable = "", .size_variable = "", .size = 2});
    std::array<std::byte, 32> key{};
    bootstrap->broadcast(key, 1);
    std::array<std::int64_t, 2> values{1, 2};
    bootstrap->all_reduce(values, Bootstrap::Fold::kMax);
    require(values[0] >= 1 && values[1] >= 2);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    switch (data[0] % 3) {
      case 0:
        read_costs(text);
        break;
      case 1:
        algorithm::Choices::parse(text);
        break;
      default:
        ask_launcher(text);
    }
  } catch (const InvalidArgument&) {
  } catch (const RendezvousError&) {
  }
  return 0;
}
