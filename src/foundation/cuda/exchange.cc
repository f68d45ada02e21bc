#include "foundation/cuda/exchange.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <random>

#include "foundation/base/short_text.h"
#include "foundation/os/sockets/unix_socket.h"
#include "hocket/error.h"

namespace hocket::cuda {
namespace {

using Token = std::array<std::byte, 16>;

// The abstract socket at which a rank takes the others' descriptors, and the token that senders
// must present.
struct DescriptorMeeting {
  std::array<char, 24> name{};
  Token token{};
};
// The message that accompanies a descriptor.
struct Note {
  Token token{};
  std::int32_t rank = 0;
  std::uint64_t bytes = 0;
};

Token random_token() {
  Token token;
  std::random_device source;
  for (auto& byte : token) byte = static_cast<std::byte>(source() & 0xff);
  return token;
}

// Gathers a value of every rank.
template <typename T>
std::vector<T> gather_each(const T& own, int size, const GatherAll& gather) {
  const std::vector<std::byte> all = gather(std::as_bytes(std::span(&own, 1)));
  std::vector<T> each(static_cast<std::size_t>(size));
  if (all.size() != each.size() * sizeof(T)) {
    throw RendezvousError("what the ranks exchange came back in the wrong size");
  }
  std::memcpy(each.data(), all.data(), all.size());
  return each;
}

// Takes a step on every rank. If it fails on one rank, all ranks throw.
template <typename Step>
void together(int size, const GatherAll& gather, const Step& step) {
  base::ShortSentence<160> why_not;
  try {
    step();
  } catch (const std::exception& error) {
    why_not = error.what();
  }
  const auto all = gather_each(why_not, size, gather);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (!all[rank].empty()) throw DeviceError(fmt::format("rank {}: {}", rank, all[rank].view()));
  }
}

void give(const DescriptorMeeting& to,
          int rank,
          const os::Fd& fd,
          std::size_t bytes,
          base::Deadline until) {
  const os::Fd socket = os::connect_abstract(to.name.data(), until);
  os::require_same_user(socket);
  Note note{.token = to.token, .rank = rank, .bytes = bytes};
  os::send_fd(socket, fd, std::as_bytes(std::span(&note, 1)), until);
}

// Receives every other rank's descriptor.
void receive(std::vector<Handed>& handed,
             os::UnixListener& listener,
             const Token& token,
             int rank,
             base::Deadline deadline) {
  const int size = static_cast<int>(handed.size());
  for (int missing = size - 1; missing > 0;) {
    const os::Fd socket = listener.accept(deadline);
    if (os::peer_credentials(socket).uid != geteuid()) continue;
    Note note;
    os::Fd fd;
    try {
      fd = os::receive_fd(socket,
                          std::as_writable_bytes(std::span(&note, 1)),
                          std::min(deadline, base::Deadline::in(std::chrono::seconds(5))));
    } catch (const RendezvousError&) {
      continue;  // the sender is no rank of this job
    }
    const bool is_ours = note.token == token && note.rank >= 0 && note.rank < size &&
                         note.rank != rank && !handed[static_cast<std::size_t>(note.rank)].fd;
    if (!is_ours) continue;
    handed[static_cast<std::size_t>(note.rank)] = {std::move(fd), note.bytes};
    --missing;
  }
}

}  // namespace

std::vector<Handed> exchange_descriptors(int rank,
                                         int size,
                                         const os::Fd& own,
                                         std::size_t own_bytes,
                                         const GatherAll& gather,
                                         base::Deadline deadline) {
  std::optional<os::UnixListener> listener;
  DescriptorMeeting here;
  together(size, gather, [&] {
    listener.emplace(os::UnixListener::autobind());
    listener->name().copy(here.name.data(), here.name.size() - 1);
    here.token = random_token();
  });
  std::vector<DescriptorMeeting> meetings = gather_each(here, size, gather);
  for (DescriptorMeeting& meeting : meetings) meeting.name.back() = '\0';
  // All ranks send before any receives. Nothing blocks, because a note and its descriptor fit into
  // the socket's buffer.
  together(size, gather, [&] {
    for (int step = 1; step < size; ++step) {
      give(
          meetings[static_cast<std::size_t>((rank + step) % size)], rank, own, own_bytes, deadline);
    }
  });
  std::vector<Handed> handed(static_cast<std::size_t>(size));
  together(size, gather, [&] { receive(handed, *listener, here.token, rank, deadline); });
  return handed;
}

}  // namespace hocket::cuda
