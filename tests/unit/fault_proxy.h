// A bad network between two ends of a TCP connection, for tests.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "foundation/os/fd.h"
#include "foundation/os/wakeup.h"

namespace hocket::testing {

enum class Fault {
  kNone,
  kDelay,           // data is passed on some milliseconds later
  kDribble,         // byte by byte
  kHalfOpen,        // connections are accepted, and no data is passed on
  kDropToServer,    // data from clients is dropped
  kDropFromServer,  // data from the server is dropped
  kRefuse,          // connections are closed at once, existing ones too
};

// A resource. Accepts connections at `listen_at`, its own loopback address with the server's port,
// as proofs of stores and lanes hold for one port. Passes data on to the server at 127.0.0.1. `set`
// and `cut` may be called in any thread.
class FaultProxy {
 public:
  FaultProxy(const std::string& listen_at, int port, Fault fault = Fault::kNone);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  // Sets the fault from now on, for all connections.
  void set(Fault fault);
  // Closes the existing connections; new ones are accepted.
  void cut();
  // Number of connections accepted so far.
  int taken() const { return taken_; }
  // "host:port" of the proxy.
  const std::string& address() const { return address_; }

 private:
  struct Pipe;
  void run();
  void take_connection();
  void move(Pipe& pipe);

  int port_;
  std::string address_;
  os::Fd listener_;
  os::Wakeup wakeup_;
  std::atomic<Fault> fault_;
  std::atomic<int> cuts_{0};
  std::atomic<int> taken_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::unique_ptr<Pipe>> pipes_;
  std::thread thread_;
};

}  // namespace hocket::testing
