#include "fault_proxy.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <deque>

#include "foundation/base/deadline.h"
#include "foundation/os/sockets/socket.h"
#include "hocket/error.h"

namespace hocket::testing {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kDelay = std::chrono::milliseconds(15);
constexpr std::size_t kMostQueued = 1 << 20;

}  // namespace

// One connection: both of its ends, and what is on its way from each.
struct FaultProxy::Pipe {
  struct Piece {
    Clock::time_point due;
    std::vector<std::byte> bytes;
  };
  struct Way {
    std::deque<Piece> pieces;
    std::size_t queued = 0;
    bool ended = false;
  };
  std::array<os::Fd, 2> ends;  // the client's, the server's
  std::array<Way, 2> ways;     // from each
  int cuts = 0;
  bool closed = false;
};

FaultProxy::FaultProxy(const std::string& listen_at, int port, Fault fault)
    : port_(port),
      address_(listen_at + ":" + std::to_string(port)),
      listener_(os::listen_tcp({.host = listen_at, .port = port})),
      fault_(fault),
      thread_([this] { run(); }) {}

FaultProxy::~FaultProxy() {
  stop_ = true;
  wakeup_.notify();
  thread_.join();
}

void FaultProxy::set(Fault fault) {
  fault_ = fault;
  if (fault == Fault::kRefuse) ++cuts_;
  wakeup_.notify();
}

void FaultProxy::cut() {
  ++cuts_;
  wakeup_.notify();
}

void FaultProxy::take_connection() {
  os::Fd client = os::accept_pending(listener_.get());
  if (!client) return;
  ++taken_;
  if (fault_ == Fault::kRefuse) return;
  auto pipe = std::make_unique<Pipe>();
  pipe->cuts = cuts_;
  try {
    pipe->ends = {std::move(client),
                  os::connect_tcp({.host = "127.0.0.1", .port = port_},
                                  base::Deadline::in(std::chrono::seconds(10)))};
  } catch (const Error&) {
    return;  // no server: the client is disconnected
  }
  for (const os::Fd& end : pipe->ends) os::set_no_delay(end.get());
  pipes_.push_back(std::move(pipe));
}

// Receives data from both ends, and passes on the data whose time has come.
void FaultProxy::move(Pipe& pipe) {
  const Fault fault = fault_;
  pipe.closed = pipe.cuts != cuts_;
  for (std::size_t from = 0; from < 2 && !pipe.closed && fault != Fault::kHalfOpen; ++from) {
    Pipe::Way& way = pipe.ways[from];
    std::array<std::byte, 4096> chunk;
    const ssize_t got =
        way.ended || way.queued > kMostQueued
            ? -1
            : ::recv(pipe.ends[from].get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got == 0) way.ended = true;
    const bool dropped = fault == (from == 0 ? Fault::kDropToServer : Fault::kDropFromServer);
    if (got > 0 && !dropped) {
      const auto due = Clock::now() + (fault == Fault::kDelay ? kDelay : Clock::duration{});
      way.pieces.push_back({due, {chunk.begin(), chunk.begin() + got}});
      way.queued += static_cast<std::size_t>(got);
    }
    while (!way.pieces.empty() && way.pieces.front().due <= Clock::now()) {
      auto& bytes = way.pieces.front().bytes;
      const std::size_t most = fault == Fault::kDribble ? 1 : bytes.size();
      const ssize_t sent =
          ::send(pipe.ends[1 - from].get(), bytes.data(), most, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0 && errno == EAGAIN) break;
      if (sent < 0) pipe.closed = true;
      if (sent < 0) break;
      bytes.erase(bytes.begin(), bytes.begin() + sent);
      way.queued -= static_cast<std::size_t>(sent);
      if (bytes.empty()) way.pieces.pop_front();
      if (fault == Fault::kDribble) break;
    }
    if (way.ended && way.pieces.empty()) pipe.closed = true;
  }
}

void FaultProxy::run() {
  while (!stop_) {
    std::vector<pollfd> polls{{wakeup_.fd(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    bool queued = false;
    for (const auto& pipe : pipes_) {
      for (std::size_t i = 0; i < 2; ++i) {
        queued |= !pipe->ways[i].pieces.empty();
        const bool listens = fault_ != Fault::kHalfOpen && !pipe->ways[i].ended;
        polls.push_back({listens ? pipe->ends[i].get() : -1, POLLIN, 0});
      }
    }
    ::poll(polls.data(), polls.size(), queued ? 1 : 1000);
    if (polls[0].revents != 0) wakeup_.take();
    if (polls[1].revents != 0) take_connection();
    for (const auto& pipe : pipes_) move(*pipe);
    std::erase_if(pipes_, [](const auto& pipe) { return pipe->closed; });
  }
}

}  // namespace hocket::testing
