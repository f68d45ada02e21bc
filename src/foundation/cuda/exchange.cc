#include "foundation/cuda/exchange.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>

#include "foundation/os/sockets/unix_socket.h"
#include "hocket/error.h"

namespace hocket::cuda {
namespace {

using Token = std::array<std::byte, 16>;

// The address at which a rank waits for the others' descriptors, and the token that they must
// present.
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

std::vector<DescriptorMeeting> meet(const DescriptorMeeting& own,
                                    int size,
                                    const GatherAll& gather) {
  const std::vector<std::byte> all = gather(std::as_bytes(std::span(&own, 1)));
  std::vector<DescriptorMeeting> meetings(static_cast<std::size_t>(size));
  if (all.size() != meetings.size() * sizeof(DescriptorMeeting)) {
    throw RendezvousError("the ranks' meeting places came back in the wrong size");
  }
  std::memcpy(meetings.data(), all.data(), all.size());
  for (DescriptorMeeting& meeting : meetings) meeting.name.back() = '\0';
  return meetings;
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

}  // namespace

std::vector<Handed> exchange_descriptors(int rank,
                                         int size,
                                         const os::Fd& own,
                                         std::size_t own_bytes,
                                         const GatherAll& gather,
                                         base::Deadline deadline) {
  os::UnixListener listener = os::UnixListener::autobind();
  DescriptorMeeting here{.token = random_token()};
  listener.name().copy(here.name.data(), here.name.size() - 1);
  const std::vector<DescriptorMeeting> meetings = meet(here, size, gather);
  // A note and its descriptor fit into a socket's buffer, so the receiver need not be waiting.
  for (int step = 1; step < size; ++step) {
    give(meetings[static_cast<std::size_t>((rank + step) % size)], rank, own, own_bytes, deadline);
  }
  std::vector<Handed> handed(static_cast<std::size_t>(size));
  for (int missing = size - 1; missing > 0;) {
    const os::Fd socket = listener.accept(deadline);
    if (os::peer_credentials(socket).uid != geteuid()) continue;
    Note note;
    os::Fd fd;
    try {
      fd = os::receive_fd(socket,
                          std::as_writable_bytes(std::span(&note, 1)),
                          std::min(deadline, base::Deadline::in(std::chrono::seconds(5))));
    } catch (const Error&) {
      continue;  // the sender does not belong to this job
    }
    const bool is_ours = note.token == here.token && note.rank >= 0 && note.rank < size &&
                         note.rank != rank && !handed[static_cast<std::size_t>(note.rank)].fd;
    if (!is_ours) continue;
    handed[static_cast<std::size_t>(note.rank)] = {std::move(fd), note.bytes};
    --missing;
  }
  return handed;
}

}  // namespace hocket::cuda
