// Sockets: addresses, AF_UNIX names, descriptors that travel, and deadlines.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>

#include "foundation/base/deadline.h"
#include "foundation/os/sockets/socket.h"
#include "foundation/os/sockets/unix_socket.h"
#include "foundation/os/wakeup.h"
#include "hocket/error.h"
#include "hocket/store.h"
#include "rendezvous_stores.h"

namespace hocket::os {
namespace {

using base::Deadline;
using testing::kPatience;
using testing::kShort;

Deadline patience() { return Deadline::in(kPatience); }

struct Ends {
  Fd client;
  Fd server;
};

Ends connected() {
  UnixListener listener = UnixListener::autobind();
  Fd client = connect_abstract(listener.name(), patience());
  Fd server = listener.accept(patience());
  return {std::move(client), std::move(server)};
}

bool is_close_on_exec(const Fd& fd) { return (::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC) != 0; }

TEST(AddressTest, HostAndPort) {
  EXPECT_EQ(parse_host_port("localhost:80").value().host, "localhost");
  EXPECT_EQ(parse_host_port("localhost:80").value().port, 80);
  EXPECT_EQ(parse_host_port("[::1]:65535").value().host, "::1");
  EXPECT_EQ(to_string(parse_host_port("[fe80::1]:1").value()), "[fe80::1]:1");
  EXPECT_EQ(to_string(HostPort{.host = "h", .port = 5}), "h:5");
  for (const char* bad :
       {"", "h", ":80", "h:", "h:x", "h:65536", "h:-1", "::1:80", "[]:80", "h:8 "}) {
    EXPECT_FALSE(parse_host_port(bad)) << bad;
  }
}

TEST(AddressTest, Loopback) {
  for (const char* yes : {"localhost", "127.0.0.1", "127.1.2.3", "::1"})
    EXPECT_TRUE(is_loopback(yes));
  for (const char* no : {"10.0.0.1", "0.0.0.0", "::", "128.0.0.1", "example.org", ""}) {
    EXPECT_FALSE(is_loopback(no)) << no;
  }
}

TEST(FdTest, OwnsItsDescriptor) {
  int fds[2];
  ASSERT_EQ(::pipe(fds), 0);
  Fd reading(fds[0]);
  {
    Fd writing(fds[1]);
    Fd moved = std::move(writing);
    EXPECT_EQ(moved.get(), fds[1]);
  }
  EXPECT_EQ(::fcntl(fds[1], F_GETFD), -1);
  const int released = reading.release();
  EXPECT_FALSE(reading);
  EXPECT_EQ(::close(released), 0);
}

TEST(UnixSocketTest, AutobindGivesEachAName) {
  const auto a = UnixListener::autobind();
  const auto b = UnixListener::autobind();
  EXPECT_EQ(a.name().size(), 5U);
  EXPECT_NE(a.name(), b.name());
  EXPECT_TRUE(is_close_on_exec(a.fd()));
}

TEST(UnixSocketTest, ANameHasOneOwner) {
  const std::string name = testing::unique_unix_address();
  {
    const auto first = UnixListener::bind_abstract(name);
    try {
      UnixListener::bind_abstract(name);
      FAIL() << "bound twice";
    } catch (const SystemError& error) {
      EXPECT_EQ(error.error_number(), EADDRINUSE);
    }
  }
  const auto again = UnixListener::bind_abstract(name);
  EXPECT_EQ(again.name(), name);
  EXPECT_THROW(UnixListener::bind_abstract(std::string(108, 'x')), InvalidArgument);
  EXPECT_THROW(UnixListener::bind_abstract(""), InvalidArgument);
  EXPECT_THROW(connect_abstract("hocket-nobody-is-here", patience()), SystemError);
}

TEST(UnixSocketTest, TellsWhoIsThere) {
  const Ends ends = connected();
  for (const Fd* end : {&ends.client, &ends.server}) {
    const PeerCredentials peer = peer_credentials(*end);
    EXPECT_EQ(peer.pid, ::getpid());
    EXPECT_EQ(peer.uid, ::geteuid());
    EXPECT_EQ(peer.gid, ::getegid());
    require_same_user(*end);
    EXPECT_TRUE(is_close_on_exec(*end));
  }
  EXPECT_THROW(peer_credentials(-1), SystemError);
}

TEST(UnixSocketTest, DescriptorsTravelWithBytes) {
  const Ends ends = connected();
  const Fd memory(::memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(::pwrite(memory.get(), "hello", 5, 0), 5);
  const Bytes sent = to_bytes("seventeen bytes..");
  send_fd(ends.client, memory, sent, patience());
  Bytes got(sent.size());
  const Fd received = receive_fd(ends.server, got, patience());
  EXPECT_EQ(got, sent);
  EXPECT_NE(received.get(), memory.get());
  EXPECT_TRUE(is_close_on_exec(received));
  char text[6] = {};
  ASSERT_EQ(::pread(received.get(), text, 5, 0), 5);
  EXPECT_STREQ(text, "hello");
}

TEST(UnixSocketTest, LargePayloadsArriveWhole) {
  const Ends ends = connected();
  Bytes sent(3000000);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 7 + i / 256);
  std::thread sender([&] { send_fd(ends.client, ends.client, sent, patience()); });
  Bytes got(sent.size());
  const Fd received = receive_fd(ends.server, got, patience());
  sender.join();
  EXPECT_TRUE(received);
  EXPECT_TRUE(got == sent);
}

TEST(UnixSocketTest, AMessageWithoutADescriptorIsAnError) {
  const Ends ends = connected();
  send_all(ends.client, as_bytes("plain"), patience());
  Bytes got(5);
  EXPECT_THROW(receive_fd(ends.server, got, patience()), RendezvousError);
  EXPECT_THROW(send_fd(ends.client, ends.client, {}, patience()), InvalidArgument);
}

TEST(UnixSocketTest, ADescriptorBeyondTheLimitIsAnErrorThatNamesTheLimit) {
  const Ends ends = connected();
  send_fd(ends.client, ends.client, as_bytes("x"), patience());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = dup(ends.client.get());
  close(next);
  const rlimit full{.rlim_cur = static_cast<rlim_t>(next), .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &full), 0);
  Bytes got(1);
  try {
    receive_fd(ends.server, got, patience());
    ADD_FAILURE() << "there was room for a descriptor";
  } catch (const SystemError& error) {
    EXPECT_EQ(error.error_number(), EMFILE);
    EXPECT_NE(std::string(error.what()).find("ulimit -n"), std::string::npos) << error.what();
  }
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST(SocketTest, WaitsEndAtTheirDeadline) {
  const Ends ends = connected();
  Bytes bytes(10);
  EXPECT_THROW(receive_all(ends.server, bytes, Deadline::in(kShort)), RendezvousError);
  EXPECT_THROW(receive_fd(ends.server, bytes, Deadline::in(kShort)), RendezvousError);
  EXPECT_THROW(send_all(ends.client, Bytes(100000000), Deadline::in(kShort)), RendezvousError);
  UnixListener listener = UnixListener::autobind();
  EXPECT_THROW(listener.accept(Deadline::in(kShort)), RendezvousError);
}

TEST(SocketTest, AClosedPeerIsAnErrorAndNoSignal) {
  Ends ends = connected();
  ends.server.reset();
  EXPECT_THROW(send_all(ends.client, as_bytes("x"), patience()), RendezvousError);
  EXPECT_THROW(send_fd(ends.client, ends.client, as_bytes("x"), patience()), RendezvousError);
  Bytes bytes(1);
  EXPECT_THROW(receive_all(ends.client, bytes, patience()), RendezvousError);
  EXPECT_THROW(receive_fd(ends.client, bytes, patience()), RendezvousError);
}

TEST(SocketTest, TcpListensAndConnects) {
  const Fd listener = listen_tcp({.host = "127.0.0.1", .port = 0});
  const int port = local_port(listener.get());
  EXPECT_GT(port, 0);
  EXPECT_FALSE(accept_pending(listener.get()));
  const Fd client = connect_tcp({.host = "localhost", .port = port}, patience());
  ASSERT_TRUE(wait_ready(listener.get(), Readiness::kRead, patience()));
  const Fd server = accept_pending(listener.get());
  ASSERT_TRUE(server);
  EXPECT_EQ(peer_port(client.get()), port);
  EXPECT_TRUE(is_loopback_connection(server.get()));
  EXPECT_TRUE(is_close_on_exec(server));
  send_all(server, as_bytes("hi"), patience());
  Bytes got(2);
  receive_all(client, got, patience());
  EXPECT_EQ(hocket::to_string(got), "hi");
  EXPECT_THROW(listen_tcp({.host = "127.0.0.1", .port = port}), SystemError);
  EXPECT_THROW(connect_tcp({.host = "127.0.0.1", .port = 1}, patience()), SystemError);
}

TEST(WakeupTest, WakesAWaitingThread) {
  const Ends ends = connected();
  Wakeup wakeup;
  std::thread notifier([&wakeup] { wakeup.notify(); });
  wakeup.wait({.fd = ends.server.get()}, patience());
  notifier.join();
  // The notification has been taken.
  const auto deadline = Deadline::in(kShort);
  wakeup.wait({.fd = ends.server.get()}, deadline);
  EXPECT_TRUE(deadline.has_passed());
  wakeup.wait({.fd = ends.server.get(), .write = true}, patience());
}

}  // namespace
}  // namespace hocket::os
