// The store: a rendezvous for processes that know only one address.
//
// A store maps keys to bytes and lets ranks wait for each other. Ranks use it to set up a job; a
// group that is set up no longer needs it. Every wait has a timeout, and an infinite one must be
// given as kForever. The error of a timeout says which key or rank was missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hocket/abi.h"
#include "hocket/held.h"
#include "hocket/types.h"

namespace hocket {

using Bytes = std::vector<std::byte>;

// Convert between text and bytes.
Bytes to_bytes(std::string_view text);
std::string to_string(std::span<const std::byte> bytes);
inline std::span<const std::byte> as_bytes(std::string_view text) noexcept {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// A job's secret. A value; any thread may use it. It is never printed and never on a command line.
// Copies share one page of memory. Core dumps leave the page out, and the last copy overwrites it.
class Key {
 public:
  static constexpr std::size_t kBytes = 32;
  using View = std::span<const std::byte, kBytes>;

  // Makes a key of zeros, which is no secret.
  Key() noexcept = default;
  explicit Key(View bytes);
  View bytes() const noexcept;

  // Makes a random key.
  static Key generate();
  // Reads a key of 64 hexadecimal digits from a file that only its owner can read.
  // @throws RendezvousError if the file belongs to another user or is open to others. The message
  //   has the remedy.
  static Key from_file(const std::string& path);
  // Creates the file with mode 0600. Refuses an existing file.
  void write_file(const std::string& path) const;

  // Pass a key through an inherited descriptor: a sealed memfd. Reading does not move its offset,
  // so any number of children can read it. The caller of `to_fd` owns the descriptor. It is
  // close-on-exec until the child that inherits it clears the flag.
  static Key from_fd(int fd);
  int to_fd() const;

  friend bool operator==(const Key& a, const Key& b) noexcept;  // in constant time

 private:
  class Secret;
  explicit Key(std::shared_ptr<const Secret> secret) noexcept : secret_(std::move(secret)) {}

  std::shared_ptr<const Secret> secret_;
};

// Limits of a key and a value, in bytes.
inline constexpr std::size_t kMaxKeyBytes = 1024;
inline constexpr std::size_t kMaxValueBytes = std::size_t{16} << 20;

// A resource; abstract. Any thread may call any operation, and a waiting operation does not block
// others. Operations throw RendezvousError if they fail or reach their timeout, and InvalidArgument
// for keys and values that are too large.
class Store {
 public:
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Sets the value of a key.
  virtual void set(std::string_view key, std::span<const std::byte> value) = 0;
  // Waits until the key exists, and returns its value.
  virtual Bytes get(std::string_view key, Duration timeout) = 0;
  // Returns the value if the key exists.
  virtual std::optional<Bytes> try_get(std::string_view key) = 0;
  // Waits until all keys exist.
  virtual void wait(std::span<const std::string> keys, Duration timeout) = 0;
  // Adds to a counter and returns the new value. A missing counter counts as 0. A counter's bytes
  // are its decimal digits.
  virtual std::int64_t add(std::string_view key, std::int64_t amount) = 0;
  // Sets the key to `desired` if it holds `expected`. Without `expected`, sets the key if it does
  // not exist. Returns the value that the key held before. The call has set the key if and only if
  // this value equals `expected`.
  virtual std::optional<Bytes> compare_and_set(
      std::string_view key,
      const std::optional<std::span<const std::byte>>& expected,
      std::span<const std::byte> desired) = 0;
  // Removes a key. Returns true if it existed.
  virtual bool erase(std::string_view key) = 0;

  // Gives every rank the bytes of all ranks, in rank order, in one round trip. A name can be
  // reused: the n-th call of a rank under a name meets the n-th calls of the others. A call that
  // timed out is not counted.
  // @param name Name of the exchange.
  // @param rank,size Number of this rank, and number of ranks.
  // @param mine This rank's bytes.
  // @param timeout Limit for the wait.
  virtual std::vector<Bytes> exchange(std::string_view name,
                                      int rank,
                                      int size,
                                      std::span<const std::byte> mine,
                                      Duration timeout) = 0;
  // Does the same without bytes.
  virtual void barrier(std::string_view name, int size, int rank, Duration timeout) = 0;

  // Leaves cleanly: this client releases its rank. The destructor only drops the connection, and
  // the rank stays taken. Never throws.
  virtual void close() noexcept {}

 protected:
  Store() = default;
};

// Makes a store within this process, for threads, tests and jobs of one rank.
[[nodiscard("it goes with its last owner")]] std::shared_ptr<Store> make_memory_store();

// Makes a view of a store that adds `prefix` to every key and name.
std::shared_ptr<Store> make_prefix_store(std::shared_ptr<Store> store, std::string prefix);

// The role of a client.
enum class StoreRole : std::uint8_t {
  kMember,    // takes its rank: no other client can have it
  kObserver,  // takes no rank (tools)
  kLauncher,  // takes no rank; `rank` is its host's number. See StoreServer::launcher_starts
};

struct StoreClientOptions {
  std::string address;     // "host:port", "[v6]:port" or "unix:NAME"
  std::optional<Key> key;  // not needed for unix:, where both ends check the other's user
  std::string job;
  int epoch = 0;
  int rank = 0;
  int size = 0;  // 0: unknown
  StoreRole role = StoreRole::kMember;
  // for connecting, with retries while no server answers
  Duration timeout = std::chrono::seconds(300);
  bool trust_network = false;  // no key and no encryption between hosts
};

// Connects to a StoreServer.
// @throws RendezvousError if no server answers, one side does not know the key, or the server
//   refuses the job, epoch, rank or size. The message says which.
[[nodiscard("dropped, it disconnects at once")]] std::shared_ptr<Store> connect_store(
    const StoreClientOptions& options);

// A resource: the server and its thread. Clients prove that they know the key. On loopback and
// AF_UNIX they use a mutual HMAC-SHA256 challenge; AF_UNIX without a key checks the user. On other
// addresses they use TLS 1.3 with the key. Frames, keys, values and clients are limited. A client
// that has not proved the key may send few bytes and gets little time. It does not count against
// `max_clients`. One thread makes and closes the server.
class [[nodiscard("dropped, it serves no longer: keep it")]] StoreServer {
 public:
  struct Options {
    // An address of this host, or "unix:NAME": an abstract AF_UNIX name, without a port.
    std::string address = "127.0.0.1";
    int port = 0;            // 0: a free one, of HOCKET_PORTS if that is set
    std::optional<Key> key;  // required except for unix: and trust_network
    std::string job;
    int epoch = 0;
    int size = 0;   // number of ranks; 0: any rank is accepted
    int rank = -1;  // rank of this process, for errors; -1: it is no rank
    bool trust_network = false;
    std::size_t max_clients = 0;    // 0: 4 for each rank, at least 1024
    std::size_t max_strangers = 0;  // clients without proof; 0: 2 for each rank, at least 256
    std::size_t max_bytes = std::size_t{256} << 20;       // keys, values, and pending output
    Duration stranger_timeout = std::chrono::seconds(5);  // for the proof
  };

  // Starts the server.
  // @throws RendezvousError or SystemError if the address is not available.
  explicit StoreServer(Options options);
  StoreServer(StoreServer&&) noexcept;
  StoreServer& operator=(StoreServer&&) noexcept;
  ~StoreServer();

  int port() const;  // 0 for unix:
  // Returns the address for StoreClientOptions::address and HOCKET_STORE: "127.0.0.1:40123" or
  // "unix:NAME".
  const std::string& address() const;
  // Returns the number of connected clients that have proved the key.
  std::size_t clients() const;
  // Returns the ranks that have left cleanly, in that order. Any thread may call it.
  std::vector<int> departures() const;
  // Reports that the process of `rank` has ended, for a program that observes the processes.
  // Clients that wait for the rank in an exchange of `size` ranks get a RendezvousError, now and
  // later. Any thread may call it.
  // @param rank,size The rank, and the number of ranks.
  // @param how The reason, for the message: "exited with code 0".
  void rank_ended(int rank, int size, std::string how);
  // Reports that the launcher of a host, a client, starts the `count` ranks of `size` that begin at
  // rank `first`. If the launcher's connection ends, those of its ranks that have not connected by
  // then count as ended. Any thread may call it.
  void launcher_starts(int host, int first, int count, int size);
  // Returns the hosts whose launchers have lost their connection, in that order. Any thread may
  // call it.
  std::vector<int> lost_launchers() const;
  // Sends pending output for at most one second, and stops. Never throws.
  void close() noexcept;

 private:
  class Impl;
  Held<"StoreServer", std::unique_ptr<Impl>> impl_;
};

}  // namespace hocket
