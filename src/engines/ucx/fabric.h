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

#include "engine/carrier.h"
#include "engines/ucx/library.h"
#include "engines/ucx/wire.h"
#include "foundation/base/config.h"
#include "foundation/base/deadline.h"
#include "foundation/cuda/context.h"
#include "hocket/types.h"

namespace hocket::engines::ucx {

// The bytes that UCX reads from a TCP connection in one call. A message of UCX, with its headers,
// must not be longer.
inline constexpr std::size_t kReceivedAtOnce = std::size_t{128} << 10;

// The receiver of the messages of one group. The fabric calls it with its mutex held.
class Port {
 public:
  virtual void take(const MessageHeader& header, std::span<const std::byte> payload) = 0;

 protected:
  ~Port() = default;
};

// The transport of the bytes of long messages.
enum class Bulk : std::uint8_t {
  kAuto,    // kDirect to ranks to which UCX moves arrays without a copy, otherwise kPieces
  kPieces,  // in active messages, copied at both ends
  kDirect,  // from array to array by UCX, with a tag
};

// The least bytes of a message for direct transport. It equals the limit above which a message
// sends a request anyway. Above this limit direct transport is several times faster. Below it, the
// round trip of the request would cost more.
inline constexpr std::size_t kDirectFrom = std::size_t{512} << 10;

// The addresses at which UCX listens for other ranks. A value.
struct ListenOptions {
  std::string interface;       // the network interface; empty: UCX chooses
  bool is_chosen = false;      // true: the user chose `interface`, for all transports; false: it is
                               // only for TCP
  base::PortRange ports = {};  // the ports for TCP; one of them serves all interfaces
};

// The options of a fabric. A value.
struct FabricOptions {
  ListenOptions listening;
  std::function<void()> wake;  // called by any thread when something has arrived
  // Called by any thread when `pending` becomes true or a connection breaks.
  std::function<void()> help;
  // Returns what the job knows of a rank from other sources. Called by any thread, but not by the
  // destructor.
  std::function<engine::Fate(int rank)> fate;
  Bulk bulk = Bulk::kAuto;
  std::size_t direct_from = kDirectFrom;  // bytes; shorter messages are never direct
  // Whether UCX may use its transports for GPUs. They do not help host memory.
  bool gpus = false;
  // The GPU whose context is current during the construction, or null. UCX makes objects in this
  // context, which must be destroyed before the context.
  std::shared_ptr<const cuda::DeviceContext> device = {};
};

// A direct transfer in progress. UCX accesses its memory. The owner must pass the transfer to
// Fabric::take_back before it frees the memory or uses it otherwise. A resource.
struct Transfer {
  enum class State : std::uint8_t { kUnderWay, kDone, kFailed, kCancelled };
  State state = State::kUnderWay;
  bool receives = false;
  int rank = 0;  // world rank of the peer
  std::uint64_t tag = 0;
  std::size_t bytes = 0;
  void* request = nullptr;
  class Fabric* fabric = nullptr;
};

// UCX's context and worker, and the connections to other ranks. A connection is made at its first
// use. Any thread may use the fabric; only one thread at a time drives the worker. The fabric
// records broken connections and throws nothing, because other layers decide which ranks are dead.
// The constructor throws SystemError if UCX does not start. A resource.
class Fabric {
 public:
  Fabric(std::shared_ptr<const UcxLibrary> library, FabricOptions options);
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  // Returns the address that other ranks need to connect to this one.
  std::vector<std::byte> address() const;
  // Sets the addresses of all ranks, by world rank. Called once, before the first message.
  void meet(std::vector<std::vector<std::byte>> addresses);

  // Sets the addresses of some ranks of a world with `world` ranks. May be called at any time.
  // Addresses that are already known stay unchanged.
  void introduce(std::size_t world,
                 std::span<const int> ranks,
                 std::span<const std::vector<std::byte>> addresses);

  // Returns UCX's name and version, for example "UCX 1.13.1".
  std::string name() const;
  // Returns whether messages may lie in GPUs' memory.
  bool knows_gpus() const noexcept { return knows_gpus_; }
  // Returns whether UCX has a lane to this rank that moves GPUs' memory without copies through the
  // host.
  bool reaches_gpus(int rank);

  // Tests the connections: sends a trial message to each of `ranks`. Each of these ranks sends one
  // to this rank. `own_rank` is the world rank of this rank.
  void try_ways(int own_rank, std::span<const int> ranks);
  // Makes progress with the trial messages. Returns whether all trials have ended, with success or
  // not.
  bool are_ways_tried();
  // Returns whether this rank has sent `rank` a trial message but has not received one from it.
  bool is_on_trial(int rank);
  // Returns why a rank cannot be reached. Empty: the rank may be reachable.
  std::string why_unreachable(int rank);
  // Returns whether the connection to a rank has broken, or could not be made.
  bool is_broken(int rank) noexcept;

  // A descriptor that becomes readable when something may have arrived since `arm` returned true.
  int event_fd() const noexcept { return event_fd_; }
  // Arms the descriptor. Returns false if something has already arrived.
  bool arm() noexcept;
  // Moves operations in progress. Returns true if something moved.
  bool progress() noexcept;
  // Returns whether messages that count as sent have not left this process yet. Making connections
  // takes time, and peers may read slowly. While this is true, some thread must call `progress`.
  bool pending() const noexcept { return unsent_.load(std::memory_order_relaxed) != 0; }
  // Returns the ranks whose connections have broken or could not be made since the last call. They
  // include ranks that have ended. `help` is called when there are such ranks.
  std::vector<int> take_broken();
  // Waits until all messages have left this process. Returns false if the deadline passes first, or
  // if a rank has died. In the second case it waits only for the messages to living ranks.
  bool flush(base::Deadline deadline) noexcept;
  // Stops all activity, because the process is about to end or no rank can be reached.
  void retire() noexcept;
  // Stops all activity if no thread uses the fabric now. Otherwise returns false.
  bool try_retire() noexcept;

  // --- For ports, with `mutex` held -----------------------------------------------------------

  std::mutex& mutex() noexcept { return mutex_; }
  // Registers the port of a group. `id` is the group's number, the same on all ranks. Messages that
  // arrived for the group before are delivered now.
  void open(std::uint64_t id, Port& port);
  void close(std::uint64_t id) noexcept;
  // Sends copies of `header` and `payload`.
  void send(int rank, const MessageHeader& header, std::span<const std::byte> payload);
  // Sends a message without copying `payload`. UCX may read `payload` until `left` has been
  // decremented again.
  using Count = std::shared_ptr<int>;
  void send_in_place(int rank,
                     const MessageHeader& header,
                     std::span<const std::byte> payload,
                     const Count& left);
  bool poll() noexcept;

  // Returns whether a message of `bytes` bytes to that rank should be direct; see Bulk.
  bool moves_directly(int rank, std::size_t bytes);
  // Returns a new UCX tag for a direct transfer to this rank. No tag is used twice.
  std::uint64_t new_tag() noexcept { return ++last_tag_; }
  std::unique_ptr<Transfer> send_directly(int rank,
                                          std::uint64_t tag,
                                          std::span<const std::byte> bytes,
                                          MemoryKind memory = MemoryKind::kHost);
  std::unique_ptr<Transfer> receive_directly(int rank,
                                             std::uint64_t tag,
                                             std::span<std::byte> bytes,
                                             MemoryKind memory = MemoryKind::kHost);
  // Take memory back from UCX: when this returns, UCX does not access the memory any more. The
  // steps are:
  //   1. Wait for a limited time for the transfer to end, or until the peer is known to be lost.
  //   2. Close the connection and wait again.
  //   3. If UCX still keeps the memory, stop using UCX in this process, because UCX moves nothing
  //      without being called. All connections then count as broken, so that no thread waits for
  //      data on them.
  // `lock` holds `mutex`, and is released during waits. The second form waits until `*left` is 0.
  void take_back(std::unique_ptr<Transfer> transfer, std::unique_lock<std::mutex>& lock) noexcept;
  void take_back(int rank, const Count& left, std::unique_lock<std::mutex>& lock) noexcept;

 private:
  struct Outgoing;
  struct Peer {
    std::vector<std::byte> address;
    Endpoint endpoint = nullptr;
    bool broken = false;
    bool to_close = false;
    std::string why_broken;      // set if the connection could not be made, or broke in the trial
    bool is_on_trial = false;    // a trial began, and the peer's trial message has not come yet
    bool was_heard = false;      // the peer's trial message came before the trial began here
    std::optional<bool> direct;  // the result of moves_directly
  };
  struct Unexpected {
    MessageHeader header;
    std::vector<std::byte> payload;
  };
  // UCX calls these functions. They are noexcept because an exception must not pass through UCX.
  static UcsStatus on_message(
      void*, const void*, std::size_t, void*, std::size_t, const AmReceiveParam*) noexcept;
  static void on_error(void*, Endpoint, UcsStatus) noexcept;
  static void on_sent(void*, UcsStatus, void*) noexcept;
  static void on_moved(void*, UcsStatus, void*) noexcept;
  static void on_came(void*, UcsStatus, const TagReceived*, void*) noexcept;
  static void on_drained(void*, UcsStatus, const TagReceived*, void*) noexcept;

  void start(const FabricOptions& options);
  // Start UCX with TCP on this port. 0: any port.
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
  engine::Fate fate(std::size_t rank) const noexcept;
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
  std::function<engine::Fate(int)> fate_;  // null: all ranks count as living
  const Bulk bulk_;
  const std::size_t direct_from_;
  std::atomic<int> unsent_{0};  // written with `mutex_` held
  Context context_ = nullptr;
  Worker worker_ = nullptr;
  int event_fd_ = -1;
  bool knows_gpus_ = false;
  std::mutex mutex_;  // guards all members below, and the worker
  bool retired_ = false;
  bool came_ = false;        // something has arrived since the last `poll`
  bool knows_lost_ = false;  // a rank has died, or its connection broke before it left the job
  bool closes_ = false;      // the connection of at least one of `peers_` must be closed
  bool delivers_ = false;    // UCX is calling `on_message` now
  std::vector<Peer> peers_;  // by world rank
  std::vector<int> broken_;  // ranks for the next take_broken
  std::map<std::uint64_t, Port*> ports_;
  std::deque<std::uint64_t> closed_;  // groups that were closed, the latest last
  std::map<std::uint64_t, std::deque<Unexpected>>
      unexpected_;  // messages for groups that this rank has not opened yet
  std::vector<std::pair<int, MessageHeader>> answers_;  // receiver and header; see `send`
  std::vector<std::unique_ptr<Outgoing>> free_;
  std::uint64_t last_tag_ = 0;
  std::set<void*> drains_;                        // requests of `drain`
  Count trials_left_ = std::make_shared<int>(0);  // trial messages that have not left yet
};

}  // namespace hocket::engines::ucx
