// A process group of the program's own. Any group of processes that can broadcast bytes and reduce
// integers can form a job. Here it is a parent and its children, over socket pairs, without a
// launcher.
#include <hocket/hocket.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>
#include <vector>

#include "check.h"

using examples::expect_equal;

namespace {

constexpr int kSize = 3;

void put(int socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) throw std::runtime_error("a relative has gone");
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
}

void take(int socket, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), 0);
    if (got <= 0) throw std::runtime_error("a relative has gone");
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

// The parent is rank 0, and has a socket to each child; a child has one to the parent.
class Family final : public hocket::Bootstrap {
 public:
  Family(int rank, std::vector<int> sockets) : rank_(rank), sockets_(std::move(sockets)) {}

  int rank() const override { return rank_; }
  int size() const override { return kSize; }

  void broadcast(std::span<std::byte> bytes, int root) override {
    if (root != 0 && rank_ == root) put(sockets_[0], bytes);
    if (rank_ != 0) return take(sockets_[0], bytes);
    if (root != 0) take(socket_of(root), bytes);
    for (const int child : sockets_) put(child, bytes);
  }

  void all_reduce(std::span<std::int64_t> values, Fold fold) override {
    const auto bytes = std::as_writable_bytes(values);
    if (rank_ != 0) {
      put(sockets_[0], bytes);
      return take(sockets_[0], bytes);
    }
    std::vector<std::int64_t> theirs(values.size());
    for (const int child : sockets_) {
      take(child, std::as_writable_bytes(std::span(theirs)));
      fold_into(values, theirs, fold);
    }
    for (const int child : sockets_) put(child, bytes);
  }

 private:
  int socket_of(int child) const { return sockets_[static_cast<std::size_t>(child) - 1]; }

  int rank_;
  std::vector<int> sockets_;
};

void work(Family& family) {
  hocket::World world = hocket::init(family, {.timeout = std::chrono::seconds(60)});
  hocket::Communicator& comm = world.communicator();
  std::vector<int> ranks(kSize);
  comm.all_gather(std::vector<int>{comm.rank()}, ranks);
  for (int i = 0; i < kSize; ++i) {
    expect_equal(ranks[static_cast<std::size_t>(i)], i, "rank " + std::to_string(i));
  }
  if (comm.rank() == 0) {
    std::printf("a family of %d, which met by \"%s\"\n", kSize, world.launch().launcher.c_str());
  }
}

}  // namespace

int main() try {
  // Children first: a process that has joined should not fork.
  std::vector<int> to_children;
  for (int rank = 1; rank < kSize; ++rank) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
      throw std::runtime_error("no sockets");
    }
    const pid_t child = ::fork();
    if (child == 0) {
      // Else it would keep the lines of others open beyond their ends.
      for (const int other : to_children) ::close(other);
      ::close(pair[0]);
      try {
        Family family(rank, {pair[1]});
        work(family);
        std::exit(0);
      } catch (const std::exception& error) {
        std::exit(examples::failed(error));
      }
    }
    ::close(pair[1]);
    to_children.push_back(pair[0]);
  }
  Family family(0, to_children);
  work(family);
  for (int rank = 1; rank < kSize; ++rank) {
    int status = 0;
    ::wait(&status);
    expect_equal(status, 0, "how a child ended");
  }
  return 0;
} catch (const std::exception& error) {
  return examples::failed(error);
}
