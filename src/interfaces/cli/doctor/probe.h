// Trials of the network between two hosts, by a TCP connection and packets of UDP.
//
//   client                                     server
//   token, own number ───────────────────────▶
//                     ◀─────────────────────── its number, so that no other machine is taken for it
//   0, an echo        ───────────────────────▶
//                     ◀─────────────────────── the same
//   N > 0, then N bytes ─────────────────────▶
//                     ◀─────────────────────── the same N, once all have come
//
// Numbers have eight bytes, in this machine's order. The packets of UDP, which have the token and a
// number, tell whether anything arrives in a direction in which no connection can be made.
#pragma once

#include <set>
#include <string>
#include <thread>

#include "interfaces/cli/fd.h"
#include "interfaces/cli/hosts/socket_address.h"

namespace hocket::cli {

// A resource, with a thread. Answers probes at one address of this host.
class ProbeServer {
 public:
  // Takes a port of HOCKET_PORTS if that is set. Throws SystemError and InvalidArgument.
  ProbeServer(const std::string& address, std::string token, int host);
  ~ProbeServer();
  ProbeServer(const ProbeServer&) = delete;
  ProbeServer& operator=(const ProbeServer&) = delete;

  int port() const noexcept { return port_; }
  // Ends the service, and returns the numbers of the hosts whose packets have come.
  std::set<int> end();

 private:
  void listen(const SocketAddress& address);
  void serve() noexcept;
  void answer(const Fd& client) const;
  void hear();

  std::string token_;
  int host_;
  int port_ = 0;
  Fd tcp_;
  Fd udp_;
  Fd stop_;
  std::set<int> heard_;
  std::thread thread_;
};

// A value: the way from this host to another.
struct ProbeResult {
  std::string error;      // empty: it works
  bool is_other = false;  // another machine answered, or this one
  bool stalls = false;    // small messages pass, and long ones do not
  double latency = 0;     // seconds, half a round trip, the median
  double bandwidth = 0;   // bytes a second of one connection
  int mtu = 0;            // bytes, on the whole way as far as the kernel knows it
};

// Tries the way to host number `peer` at an address and port. Takes less than ten seconds.
ProbeResult probe(
    const std::string& address, int port, const std::string& token, int self, int peer);

}  // namespace hocket::cli
