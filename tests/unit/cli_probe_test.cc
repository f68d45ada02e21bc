// The conclusion of `hocket doctor` from a connection to another host: whether it works, another
// machine answers, or long messages are lost.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "interfaces/cli/doctor/probe.h"

namespace hocket::cli {
namespace {

constexpr int kSelf = 3;
constexpr int kPeer = 7;
constexpr const char* kToken = "token-1";

// A server that does something else than a ProbeServer with its only client. A resource.
class StrangeServer {
 public:
  using Answer = std::function<void(Fd&)>;
  explicit StrangeServer(Answer answer)
      : listener_(checked_fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket")) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const at = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_.get(), at, length), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener_.get(), at, &length), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, answer = std::move(answer)] {
      Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      answer(client);
      // The client ends first, so that it decides how long silence is.
      std::array<char, 4096> rest;
      while (client.valid() && ::recv(client.get(), rest.data(), rest.size(), 0) > 0) {
      }
    });
  }
  ~StrangeServer() { thread_.join(); }
  int port() const { return port_; }

 private:
  Fd listener_;
  int port_ = 0;
  std::thread thread_;
};

void take(const Fd& client, std::size_t bytes) {
  std::array<char, 64> buffer;
  ASSERT_EQ(::recv(client.get(), buffer.data(), bytes, MSG_WAITALL), static_cast<ssize_t>(bytes));
}
void take_greeting(const Fd& client) {
  take(client, std::char_traits<char>::length(kToken) + sizeof(std::uint64_t));
}
void give(const Fd& client, std::uint64_t number) {
  ASSERT_EQ(::send(client.get(), &number, sizeof number, MSG_NOSIGNAL), 8);
}
// Closes the connection by a reset.
void reset(Fd& client) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  client.reset();
}
// Answers short messages, and takes the number of bytes of the first long one.
void echo(const Fd& client) {
  for (std::uint64_t number = 0; number == 0;) {
    ASSERT_EQ(::recv(client.get(), &number, sizeof number, MSG_WAITALL), 8);
    if (number == 0) give(client, 0);
  }
}

struct Case {
  const char* name;
  StrangeServer::Answer answer;
  bool is_other;
  bool stalls;
  const char* error;
};

class StrangeAnswers : public testing::TestWithParam<Case> {};

TEST_P(StrangeAnswers, AreToldApart) {
  const StrangeServer server(GetParam().answer);
  const ProbeResult result = probe("127.0.0.1", server.port(), kToken, kSelf, kPeer);
  EXPECT_EQ(result.is_other, GetParam().is_other) << result.error;
  EXPECT_EQ(result.stalls, GetParam().stalls) << result.error;
  EXPECT_EQ(result.error, GetParam().error);
}

const Case kCases[] = {
    {"WrongNumber",
     [](Fd& client) {
       take_greeting(client);
       give(client, kSelf);
     },
     true,
     false,
     "another host answered"},
    {"Greeting",  // of a server that speaks first, and takes the token for a wrong answer
     [](Fd& client) {
       EXPECT_EQ(::send(client.get(), "220 ok\r\n", 8, MSG_NOSIGNAL), 8);
       take_greeting(client);
     },
     true,
     false,
     "another host answered"},
    {"ClosedAfterTheToken",
     [](Fd& client) {
       take_greeting(client);
       client.reset();
     },
     true,
     false,
     "another host answered"},
    {"Silent", [](Fd& client) { take_greeting(client); }, false, false, "no answer came"},
    {"ResetAfterTheToken",
     [](Fd& client) {
       take_greeting(client);
       reset(client);
     },
     false,
     false,
     "Connection reset by peer"},
    {"ClosedAfterTheNumber",
     [](Fd& client) {
       take_greeting(client);
       give(client, kPeer);
       take(client, 8);
       client.reset();
     },
     false,
     false,
     "the connection was closed at the other end"},
    {"SilentAfterTheNumber",
     [](Fd& client) {
       take_greeting(client);
       give(client, kPeer);
     },
     false,
     false,
     "no answer came"},
    {"SilentAfterALongMessage",
     [](Fd& client) {
       take_greeting(client);
       give(client, kPeer);
       echo(client);
     },
     false,
     true,
     "no answer came"},
    {"ClosedWithinALongMessage",  // at once, so that it was not given up for lost
     [](Fd& client) {
       take_greeting(client);
       give(client, kPeer);
       echo(client);
       std::vector<char> bytes(1 << 20);
       EXPECT_EQ(::recv(client.get(), bytes.data(), bytes.size(), MSG_WAITALL), 1 << 20);
       client.reset();
     },
     false,
     false,
     "the connection was closed at the other end"},
    {"ResetAfterALongMessage",
     [](Fd& client) {
       take_greeting(client);
       give(client, kPeer);
       echo(client);
       reset(client);
     },
     false,
     false,
     "Connection reset by peer"},
};

INSTANTIATE_TEST_SUITE_P(Each, StrangeAnswers, testing::ValuesIn(kCases), [](const auto& each) {
  return each.param.name;
});

TEST(ProbeServer, AnswersItsOwnTokenAlone) {
  ProbeServer server("127.0.0.1", kToken, kPeer);
  const ProbeResult good = probe("127.0.0.1", server.port(), kToken, kSelf, kPeer);
  EXPECT_EQ(good.error, "");
  EXPECT_FALSE(good.is_other || good.stalls);
  EXPECT_GT(good.bandwidth, 0);
  for (int turn = 0; turn < 20; ++turn) {  // the same, whichever data the server has left unread
    EXPECT_TRUE(probe("127.0.0.1", server.port(), "token-2", kSelf, kPeer).is_other);
  }
  EXPECT_TRUE(probe("127.0.0.1", server.port(), kToken, kSelf, kPeer + 1).is_other);
}

TEST(ProbeServer, IsNoOtherWhereNobodyListens) {
  int port = 0;
  {
    const ProbeServer server("127.0.0.1", kToken, kPeer);
    port = server.port();
  }
  const ProbeResult result = probe("127.0.0.1", port, kToken, kSelf, kPeer);
  EXPECT_EQ(result.error, "Connection refused");
  EXPECT_FALSE(result.is_other || result.stalls);
}

}  // namespace
}  // namespace hocket::cli
