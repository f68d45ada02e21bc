// Listening on ports of a range: free ones are found, others are left alone.
#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <string>
#include <vector>

#include "foundation/base/config.h"
#include "foundation/os/sockets/ports.h"
#include "foundation/os/sockets/socket.h"
#include "foundation/os/sockets/unix_socket.h"
#include "hocket/error.h"

namespace hocket::os {
namespace {

constexpr const char* kHere = "127.0.0.1";

// A few neighbouring ports that were free a moment ago.
base::PortRange free_range(int count) {
  for (int low = 20011; low < 32000; low += 17) {
    int free = 0;
    while (free < count && is_port_free(low + free)) ++free;
    if (free == count) return {.low = low, .high = low + count - 1};
  }
  throw std::runtime_error("no neighbouring ports are free here");
}

TEST(PortsTest, WithoutARangeAnyPortDoes) {
  const Fd listener = listen_tcp(kHere, base::PortRange{});
  EXPECT_NE(local_port(listener.get()), 0);
}

TEST(PortsTest, ListenersTakeAllPortsOfTheRangeAndThenNone) {
  const auto range = free_range(4);
  std::vector<Fd> listeners;
  std::set<int> ports;
  for (int i = 0; i < 4; ++i) {
    listeners.push_back(listen_tcp(kHere, range));
    ports.insert(local_port(listeners.back().get()));
  }
  EXPECT_EQ(ports.size(), 4U);
  EXPECT_EQ(*ports.begin(), range.low);
  EXPECT_EQ(*ports.rbegin(), range.high);
  try {
    listen_tcp(kHere, range);
    FAIL() << "a fifth listener on four ports";
  } catch (const SystemError& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.error_number(), EADDRINUSE);
    for (const char* word : {"HOCKET_PORTS", kHere}) EXPECT_NE(text.find(word), text.npos) << text;
    EXPECT_NE(text.find(std::to_string(range.low)), text.npos) << text;
  }
}

TEST(PortsTest, ALibraryIsGivenFreePortsUntilItTakesOne) {
  const auto range = free_range(3);
  const Fd taken = listen_tcp(HostPort{.host = kHere, .port = range.low + 1});
  std::set<int> given;
  const auto refuses = [&](int port) { return !given.insert(port).second; };
  EXPECT_THROW(use_free_port(range, refuses), SystemError);
  EXPECT_EQ(given, (std::set<int>{range.low, range.high}));
}

TEST(PortsTest, APortThatAnotherProcessIsAboutToTakeIsLeftToIt) {
  const auto range = free_range(2);
  use_free_port(range, [&](int port) {
    const int other = port == range.low ? range.high : range.low;
    const Fd listener = listen_tcp(kHere, range);
    EXPECT_EQ(local_port(listener.get()), other);
    return true;
  });
}

struct Setting {
  const char* text;
  int low, high;  // zeros: it is refused
};

TEST(PortsTest, TheSettingIsARangeOrRefused) {
  for (const auto& [text, low, high] : {Setting{"29500-29600", 29500, 29600},
                                        Setting{"1-65535", 1, 65535},
                                        Setting{"7-7", 7, 7},
                                        Setting{"29500", 0, 0},
                                        Setting{"29600-29500", 0, 0},
                                        Setting{"0-5", 0, 0},
                                        Setting{"5-65536", 0, 0},
                                        Setting{"-5", 0, 0},
                                        Setting{"5-", 0, 0},
                                        Setting{"5-6 ", 0, 0},
                                        Setting{"5--6", 0, 0},
                                        Setting{"any", 0, 0},
                                        Setting{"99999999999-99999999999", 0, 0}}) {
    ASSERT_EQ(::setenv("HOCKET_PORTS", text, 1), 0);
    try {
      const auto range = base::port_range();
      EXPECT_EQ(range.low, low) << text;
      EXPECT_EQ(range.high, high) << text;
      EXPECT_TRUE(range.is_set()) << text;
    } catch (const InvalidArgument& error) {
      EXPECT_EQ(low, 0) << text;
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  }
  ASSERT_EQ(::unsetenv("HOCKET_PORTS"), 0);
  EXPECT_FALSE(base::port_range().is_set());
}

}  // namespace
}  // namespace hocket::os
