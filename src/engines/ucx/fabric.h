// One process's use of UCX, which all groups of the process share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engines/ucx/library.h"
#include "engines/ucx/wire.h"
#include "foundation/base/config.h"
#include "foundation/base/deadline.h"
#include "foundation/cuda/context.h"
#include "hocket/types.h"

namespace hocket::engines::ucx {

// The bytes that UCX reads from a TCP connection at once. A message of UCX, with its headers, must
// not be longer.
inline constexpr std::size_t kReceivedAtOnce = std::size_t{128} << 10;

// The receiver of the messages of one group. The fabric's mutex is held during calls.
class Port {
 public:
  virtual void take(const MessageHeader& header, std::span<const std::byte> payload) = 0;

 protected:
  ~Port() = default;
};

// The transport of the bytes of long messages.
enum class Bulk : std::uint8_t {
  kAuto,    // kDirect to ranks for which UCX then copies nothing, else kPieces
  kPieces,  // in active messages, copied at both ends
  kDirect,  // from array to array by UCX, with a tag
};

// Limit for direct transport. Above the size that is sent without a request, direct is several
// times faster. Below it, the round trip costs more.
inline constexpr std::size_t kDirectFrom = std::size_t{512} << 10;

// The addresses at which UCX listens for other ranks. A value.
struct ListenOptions {
  std::string interface;       // the network interface; empty: UCX chooses
  bool is_chosen = false;      // by the user, for all transports; else it is for TCP alone
  base::PortRange ports = {};  // of TCP, one for all interfaces
};

// The options of a fabric. A value.
struct FabricOptions {
  ListenOptions listening;
  std::function<void()> wake;  // called when something arrived; any thread
  std::function<void()> help;  // called when `pending` becomes true, or a connection breaks; any
                               // thread
  // Returns whether other sources report that the rank is gone. Any thread calls it, but not the
  // destructor.
  std::function<bool(int rank)> lost;
  std::function<bool(int rank)> died;  // the same, for a rank that did not leave cleanly
  Bulk bulk = Bulk::kAuto;
  std::size_t direct_from = kDirectFrom;  // bytes; shorter messages are never direct
  // True if UCX may use its transports for GPUs. They do not help host memory.
  bool gpus = false;
  // The GPU whose context is current during the construction, if any. UCX's objects in that context
  // must be destroyed before the context.
  std::shared_ptr<const cuda::DeviceContext> device = {};
};

// Memory that UCX accesses during a direct transfer. A resource. It returns to the fabric through
// `take_back` before anything else uses or frees the memory.
struct Transfer {
  enum class State : std::uint8_t { kUnderWay, kDone, kFailed, kCancelled };
  State state = State::kUnderWay;
  bool receives = false;
  int rank = 0;  // in the world
  std::uint64_t tag = 0;
  std::size_t bytes = 0;
  void* request = nullptr;
  class Fabric* fabric = nullptr;
};

// A resource: context, worker, and the connections to other ranks, which are made at their first
// use. Any thread may use it; one at a time drives the worker. Broken connections are recorded, not
// thrown, because other layers decide which ranks are dead. Throws SystemError if UCX does not
// start.
class Fabric {
 public:
  Fabric(std::shared_ptr<const UcxLibrary> library, FabricOptions options);
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  // Returns the address that others need to connect.
  std::vector<std::byte> address() const;
  // Sets the addresses of all ranks. Called once, before the first message.
  void meet(std::vector<std::vector<std::byte>> addresses);

  // Sets the addresses of some ranks of a world, at any time. Known addresses stay unchanged.
  void introduce(std::size_t world,
                 std::span<const int> ranks,
                 std::span<const std::vector<std::byte>> addresses);

  // Returns the name and version: "UCX 1.13.1".
  std::string name() const;
  // Returns whether messages may lie in GPUs' memory.
  bool knows_gpus() const noexcept { return knows_gpus_; }
  // Returns whether UCX has a lane to that rank that moves GPUs' memory without the host's.
  bool reaches_gpus(int rank);

  // Sends a trial message to each of these ranks, which do the same. `own_rank` is this one's.
  void try_ways(int own_rank, std::span<const int> ranks);
  // Moves the trials. Returns true once all have ended, well or not.
  bool are_ways_tried();
  // Returns whether a trial message to that rank was sent, and none of its own has come.
  bool is_on_trial(int rank);
  // Returns why that rank cannot be reached. Empty: it may be reachable.
  std::string why_unreachable(int rank);
  // Returns whether the connection to that rank has broken, or could not be made.
  bool is_broken(int rank) noexcept;

  // A descriptor that becomes readable when something may have arrived since `arm` returned true.
  int event_fd() const noexcept { return event_fd_; }
  // Returns false if something has arrived already.
  bool arm() noexcept;
  // Moves operations in progress. Returns true if something moved.
  bool progress() noexcept;
  // Returns whether messages that count as sent have not left yet. Connections take time, and peers
  // may read slowly. Until then, some thread has to call `progress`.
  bool pending() const noexcept { return unsent_.load(std::memory_order_relaxed) != 0; }
  // Returns the ranks whose connections have broken or could not be made since the last call. It
  // includes ranks that have ended. `help` is called when there are any.
  std::vector<int> take_broken();
  // Waits until all messages have left this process. Returns false if the deadline came first or a
  // rank has died, as `died` reports. Then it waits only for messages to living ranks.
  bool flush(base::Deadline deadline) noexcept;
  // Stops all activity, because the process is about to end or no rank can be reached.
  void retire() noexcept;
  // Does the same if no thread uses the fabric. Otherwise returns false.
  bool try_retire() noexcept;

  // --- For ports, with `mutex` held -----------------------------------------------------------
  std::mutex& mutex() noexcept { return mutex_; }
  // `id` is the same on all ranks. Unexpected messages are delivered now.
  void open(std::uint64_t id, Port& port);
  void close(std::uint64_t id) noexcept;
  // Sends copies of both.
  void send(int rank, const MessageHeader& header, std::span<const std::byte> payload);
  // Does the same without copying `payload`. UCX may read it while `left` counts it.
  using Count = std::shared_ptr<int>;
  void send_in_place(int rank,
                     const MessageHeader& header,
                     std::span<const std::byte> payload,
                     const Count& left);
  bool poll() noexcept;

  // Returns whether a message of `bytes` bytes to that rank should be direct; see Bulk.
  bool moves_directly(int rank, std::size_t bytes);
  // Returns a new UCX tag for a message to this rank. No tag is used twice.
  std::uint64_t new_tag() noexcept { return ++last_tag_; }
  std::unique_ptr<Transfer> send_directly(int rank,
                                          std::uint64_t tag,
                                          std::span<const std::byte> bytes,
                                          MemoryKind memory = MemoryKind::kHost);
  std::unique_ptr<Transfer> receive_directly(int rank,
                                             std::uint64_t tag,
                                             std::span<std::byte> bytes,
                                             MemoryKind memory = MemoryKind::kHost);
  // Takes the memory back: when this returns, UCX does not access it any more. A transfer that has
  // begun gets a limited time to end. After that, or at once if the other rank is lost, the
  // connection is closed. If UCX keeps the memory even then, this process stops using UCX, which
  // moves nothing by itself. Then all connections count as broken, so that no thread waits for data
  // on them. `lock`, on `mutex`, is released during waits.
  void take_back(std::unique_ptr<Transfer> transfer, std::unique_lock<std::mutex>& lock) noexcept;
  void take_back(int rank, const Count& left, std::unique_lock<std::mutex>& lock) noexcept;

 private:
  struct Outgoing;
  struct Peer {
    std::vector<std::byte> address;
    Endpoint endpoint = nullptr;
    bool broken = false;
    bool to_close = false;
    std::string why_broken;      // if there never was a connection, or it broke in a trial
    bool is_on_trial = false;    // until the rank's own trial message has come
    bool was_heard = false;      // that message came before the trial began here
    std::optional<bool> direct;  // the result of moves_directly
  };
  struct Unexpected {
    MessageHeader header;
    std::vector<std::byte> payload;
  };
  static UcsStatus on_message(
      void*, const void*, std::size_t, void*, std::size_t, const AmReceiveParam*);
  static void on_error(void*, Endpoint, UcsStatus);
  static void on_sent(void*, UcsStatus, void*);
  static void on_moved(void*, UcsStatus, void*);
  static void on_came(void*, UcsStatus, const TagReceived*, void*);
  static void on_drained(void*, UcsStatus, const TagReceived*, void*);

  void start(const FabricOptions& options);
  // Likewise; TCP listens on this port. 0: on any.
  void start(const FabricOptions& options, int port);
  void start_unguarded(const FabricOptions& options, int port);
  void stop() noexcept;
  [[noreturn]] void refuse(const char* what, UcsStatus status) const;
  void take(const MessageHeader& header, std::span<const std::byte> payload);
  void take_trial(const MessageHeader& header);
  Endpoint endpoint(int rank);
  void close_broken() noexcept;
  void note_broken(std::size_t rank);
  void give_up() noexcept;
  RequestParam param_for(MemoryKind memory) const noexcept;
  bool wait_for(StatusPointer request, base::Deadline deadline) noexcept;
  bool has_died(std::size_t rank) const noexcept;
  bool flush_all(base::Deadline deadline) noexcept;
  bool flush_living(base::Deadline deadline) noexcept;
  bool has_lane(Endpoint endpoint, MemoryKind memory) const;
  void begin(Transfer& transfer, StatusPointer request) noexcept;
  void end(Transfer& transfer, UcsStatus status) noexcept;
  void drain(std::uint64_t tag) noexcept;
  template <typename Condition>
  bool wait_until(Condition ended, int rank, std::unique_lock<std::mutex>& lock) noexcept;
  template <typename Condition>
  bool see_to_its_end(Condition ended, int rank, std::unique_lock<std::mutex>& lock) noexcept;
  bool send_at_once(int rank, const MessageHeader& header, std::span<const std::byte> payload);
  std::unique_ptr<Outgoing> take_outgoing(const MessageHeader& header);
  void hand_over(int rank,
                 std::unique_ptr<Outgoing> outgoing,
                 std::span<const std::byte> payload,
                 const Count& left);

  const std::shared_ptr<const cuda::DeviceContext> device_;
  const std::shared_ptr<const UcxLibrary> library_;
  const std::function<void()> wake_;
  const std::function<void()> help_;
  const std::function<bool(int)> lost_;
  const std::function<bool(int)> died_;
  const Bulk bulk_;
  const std::size_t direct_from_;
  std::atomic<int> unsent_{0};  // written with `mutex_` held
  Context context_ = nullptr;
  Worker worker_ = nullptr;
  int event_fd_ = -1;
  bool knows_gpus_ = false;
  std::mutex mutex_;  // guards all members below, and the worker
  bool retired_ = false;
  bool came_ = false;        // something arrived since the last query
  bool knows_dead_ = false;  // set by a flush
  bool closes_ = false;      // one of `peers_` must be closed
  std::vector<Peer> peers_;  // by world rank
  std::vector<int> broken_;  // not reported yet
  std::map<std::uint64_t, Port*> ports_;
  std::set<std::uint64_t> closed_;
  std::map<std::uint64_t, std::deque<Unexpected>>
      unexpected_;  // for groups that do not exist here yet
  std::size_t early_bytes_ = 0;
  std::vector<std::unique_ptr<Outgoing>> free_;
  std::uint64_t last_tag_ = 0;
  std::set<void*> drains_;                        // requests that receive unwanted messages
  Count trials_left_ = std::make_shared<int>(0);  // trial messages that have not left
};

}  // namespace hocket::engines::ucx
