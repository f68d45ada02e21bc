// Stores of every form for tests, with the servers behind them.
#pragma once

#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "foundation/os/sockets/socket.h"
#include "hocket/error.h"
#include "hocket/store.h"

namespace hocket::testing {

inline constexpr Duration kPatience = std::chrono::seconds(60);
inline constexpr Duration kShort = std::chrono::milliseconds(30);

// A name that no other test of this user has.
inline std::string unique_unix_address() {
  static std::atomic<int> count = 0;
  return "unix:hocket-test-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

// An address of this host that is not loopback; absent where it has none.
inline std::optional<std::string> outside_address() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return std::nullopt;
  std::optional<std::string> found;
  for (const ifaddrs* each = all; each != nullptr && !found; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    if ((each->ifa_flags & IFF_UP) == 0 || (each->ifa_flags & IFF_LOOPBACK) != 0) continue;
    const auto& address = reinterpret_cast<const sockaddr_in&>(*each->ifa_addr);
    const auto* bytes = reinterpret_cast<const unsigned char*>(&address.sin_addr);
    found = std::to_string(bytes[0]) + "." + std::to_string(bytes[1]) + "." +
            std::to_string(bytes[2]) + "." + std::to_string(bytes[3]);
  }
  ::freeifaddrs(all);
  return found;
}

// The message of a RendezvousError.
template <typename F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const RendezvousError& error) {
    return error.what();
  }
  return "no RendezvousError";
}

// Runs `body(0)` to `body(count - 1)`, each in a thread. An exception of one fails the test.
inline void in_threads(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&body, i] {
      try {
        body(i);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "thread " << i << ": " << error.what();
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

inline StoreClientOptions client_of(const StoreServer& server,
                                    const StoreServer::Options& options,
                                    int rank) {
  return {.address = server.address(),
          .key = options.key,
          .job = options.job,
          .epoch = options.epoch,
          .rank = rank,
          .size = options.size,
          .timeout = kPatience,
          .trust_network = options.trust_network};
}

}  // namespace hocket::testing
