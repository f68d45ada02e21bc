// The store: how processes that know nothing of each other but one address find each other.
//
// A store maps keys to bytes and lets ranks wait for each other. It serves to set a job up; a group
// that stands no longer needs it. Every wait has a timeout (kForever has to be spelled out), and
// what ran out of time says what, or who, was missing.
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

Bytes to_bytes(std::string_view text);
std::string to_string(std::span<const std::byte> bytes);
inline std::span<const std::byte> as_bytes(std::string_view text) noexcept {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// A job's secret. A value; any thread. Never printed, never on a command line. Copies share one
// page of memory, which core dumps leave out, and which is overwritten when the last of them goes.
class Key {
 public:
  static constexpr std::size_t kBytes = 32;
  using View = std::span<const std::byte, kBytes>;

  // Zeros, which are no secret.
  Key() noexcept = default;
  explicit Key(View bytes);
  View bytes() const noexcept;

  static Key generate();
  // 64 hexadecimal digits in a file that its owner alone can read. Throws RendezvousError, saying
  // how to mend it, where the file is another user's or open to others.
  static Key from_file(const std::string& path);
  // Makes the file, mode 0600; refuses one that is there already.
  void write_file(const std::string& path) const;

  // The same through an inherited descriptor: a sealed memfd, read without moving its offset, so
  // that any number of children can. The caller of `to_fd` owns the descriptor, which is
  // close-on-exec until the child that should inherit it clears that.
  static Key from_fd(int fd);
  int to_fd() const;

  friend bool operator==(const Key& a, const Key& b) noexcept;  // in constant time

 private:
  class Secret;
  explicit Key(std::shared_ptr<const Secret> secret) noexcept : secret_(std::move(secret)) {}

  std::shared_ptr<const Secret> secret_;
};

// What a key and a value may weigh.
inline constexpr std::size_t kMaxKeyBytes = 1024;
inline constexpr std::size_t kMaxValueBytes = std::size_t{16} << 20;

// A resource; abstract. All operations may be called from any thread, and one that waits hinders no
// other. Failures are RendezvousError (InvalidArgument for keys and values that are too large).
class Store {
 public:
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  virtual void set(std::string_view key, std::span<const std::byte> value) = 0;
  // The value, once it is there.
  virtual Bytes get(std::string_view key, Duration timeout) = 0;
  // The value, if it is there.
  virtual std::optional<Bytes> try_get(std::string_view key) = 0;
  // Returns when all keys are there.
  virtual void wait(std::span<const std::string> keys, Duration timeout) = 0;
  // Adds to a counter, 0 where absent, and returns the new value. A counter's bytes are its decimal
  // digits.
  virtual std::int64_t add(std::string_view key, std::int64_t amount) = 0;
  // Sets `desired` if the key holds `expected` (absent: if the key is absent). Returns what the key
  // held before: equal to `expected` exactly when it was set.
  virtual std::optional<Bytes> compare_and_set(
      std::string_view key,
      const std::optional<std::span<const std::byte>>& expected,
      std::span<const std::byte> desired) = 0;
  // True when there was something to erase.
  virtual bool erase(std::string_view key) = 0;

  // Every rank brings its bytes and gets all ranks' bytes, in rank order, in one round trip. The
  // same name can be used again: a rank's n-th call meets the others' n-th. A call that ran out of
  // time counts as not made.
  virtual std::vector<Bytes> exchange(std::string_view name,
                                      int rank,
                                      int size,
                                      std::span<const std::byte> mine,
                                      Duration timeout) = 0;
  // The same without bytes.
  virtual void barrier(std::string_view name, int size, int rank, Duration timeout) = 0;

  // Leaves cleanly: this client's claim of its rank ends. The destructor merely drops the
  // connection, after which the rank stays claimed. Never throws.
  virtual void close() noexcept {}

 protected:
  Store() = default;
};

// In this process: for threads, tests and jobs of one.
[[nodiscard("it goes with its last owner")]] std::shared_ptr<Store> make_memory_store();

// Puts `prefix` before every key and name.
std::shared_ptr<Store> make_prefix_store(std::shared_ptr<Store> store, std::string prefix);

// What a client is to the store.
enum class StoreRole : std::uint8_t {
  kMember,    // claims its rank: nobody else can have it
  kObserver,  // claims nothing (launchers, tools)
};

struct StoreClientOptions {
  std::string address;     // "host:port", "[v6]:port" or "unix:NAME"
  std::optional<Key> key;  // not needed for unix:, whose two ends check each other's user
  std::string job;
  int epoch = 0;
  int rank = 0;
  int size = 0;  // 0: not told
  StoreRole role = StoreRole::kMember;
  Duration timeout = std::chrono::seconds(300);  // for connecting, trying again while nobody serves
  bool trust_network = false;                    // no key and no encryption between hosts
};

// A client of a StoreServer. Throws RendezvousError when nobody serves, when either side does not
// know the key, and when job, epoch, rank or size are refused, and says which.
[[nodiscard("dropped, it disconnects at once")]] std::shared_ptr<Store> connect_store(
    const StoreClientOptions& options);

// A resource: the server and its one thread. On loopback and AF_UNIX its clients prove the key by a
// mutual HMAC-SHA256 challenge (AF_UNIX without a key: by their user); on other addresses they
// speak TLS 1.3 with the key. Frames, keys, values and clients are bounded; who has not proved
// anything gets few bytes, little time and nobody's place. Made and closed by one thread.
class [[nodiscard("dropped, it serves no longer: keep it")]] StoreServer {
 public:
  struct Options {
    // An address of this host, or "unix:NAME" (an abstract AF_UNIX name, without a port).
    std::string address = "127.0.0.1";
    int port = 0;            // 0: the system chooses
    std::optional<Key> key;  // required but for unix: and trust_network
    std::string job;
    int epoch = 0;
    int size = 0;   // ranks; 0: any rank is taken
    int rank = -1;  // of the process that serves, which errors then name; -1: it is no rank
    bool trust_network = false;
    std::size_t max_clients = 0;    // 0: 4 a rank, at least 1024
    std::size_t max_strangers = 0;  // before their proof; 0: 2 a rank, at least 256
    std::size_t max_bytes = std::size_t{256} << 20;       // keys, values, what waits
    Duration stranger_timeout = std::chrono::seconds(5);  // for the proof
  };

  explicit StoreServer(Options options);
  StoreServer(StoreServer&&) noexcept;
  StoreServer& operator=(StoreServer&&) noexcept;
  ~StoreServer();

  int port() const;  // 0 for unix:
  // For StoreClientOptions::address and HOCKET_STORE: "127.0.0.1:40123" or "unix:NAME".
  const std::string& address() const;
  // Clients that have proved themselves and are connected.
  std::size_t clients() const;
  // The ranks that have left cleanly, in the order of their goodbyes. Any thread.
  std::vector<int> departures() const;
  // For who sees the ranks' processes end: `rank` of `size` comes no more, as `how` says ("exited
  // with code 0"). Who waits for it where so many meet, or comes there later, gets a RendezvousError
  // with these words at once. Any thread.
  void rank_ended(int rank, int size, std::string how);
  // Sends what is under way (for a second at most) and stops. Never throws.
  void close() noexcept;

 private:
  class Impl;
  Held<"StoreServer", std::unique_ptr<Impl>> impl_;
};

}  // namespace hocket
