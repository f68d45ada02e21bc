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
  kDelay,           // what comes is passed on some milliseconds later
  kDribble,         // byte by byte
  kHalfOpen,        // connections are taken, and nothing is passed on
  kDropToServer,    // what clients send is thrown away
  kDropFromServer,  // what the server sends is thrown away
  kRefuse,          // connections are closed as soon as they are taken, those that stand too
};

// A resource: takes connections at `listen_at`, a loopback address of its own with the server's
// port (the proofs of stores and lanes hold for one port), and passes on what comes to the server
// at 127.0.0.1. `set` and `cut` are for any thread.
class FaultProxy {
 public:
  FaultProxy(const std::string& listen_at, int port, Fault fault = Fault::kNone);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  // From now on, for all connections.
  void set(Fault fault);
  // Closes the connections that stand; new ones are taken.
  void cut();
  // How many connections were taken so far.
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
