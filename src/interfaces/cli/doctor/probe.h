// Tests of the network between two hosts. They use a TCP connection and UDP packets.
//
//   client                                     server
//   token, own number ───────────────────────▶
//                     ◀─────────────────────── its number: the client finds out if another
//                                              machine answers. After a wrong token the server
//                                              closes the connection instead
//   0, an echo        ───────────────────────▶
//                     ◀─────────────────────── the same
//   N > 0, then N bytes ─────────────────────▶
//                     ◀─────────────────────── N again, when all bytes have arrived
//
// Numbers have eight bytes, in this machine's byte order. UDP packets carry the token and a number.
// If no connection can be made in a direction, they show whether any packet arrives.
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
  // Stops, and returns the numbers of the hosts whose packets have arrived.
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

// A value: the connection from this host to another.
struct ProbeResult {
  std::string error;  // empty: it works
  // A machine answered that is not the expected one, or this host answered itself. False if no
  // answer came, because the connection failed.
  bool is_other = false;
  bool stalls = false;   // small messages pass, and long ones do not
  double latency = 0;    // seconds, half a round trip, the median
  double bandwidth = 0;  // bytes a second of one connection
  int mtu = 0;           // bytes, on the whole route, if the kernel knows it
};

// Tests the connection to host number `peer` at an address and port. Takes less than ten seconds.
ProbeResult probe(
    const std::string& address, int port, const std::string& token, int self, int peer);

}  // namespace hocket::cli
