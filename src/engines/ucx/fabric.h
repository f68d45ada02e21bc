// One process's end of UCX: what all groups of the process share.
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
#include "foundation/base/deadline.h"
#include "foundation/cuda/context.h"
#include "hocket/types.h"

namespace hocket::engines::ucx {

// What UCX reads from a TCP connection at once: no message of its own may be longer, headers
// included.
inline constexpr std::size_t kReceivedAtOnce = std::size_t{128} << 10;

// What the messages of one group are handed to. Called while the fabric's mutex is held.
class Port {
 public:
  virtual void take(const MessageHeader& header, std::span<const std::byte> payload) = 0;

 protected:
  ~Port() = default;
};

// How the bytes of long messages travel.
enum class Bulk : std::uint8_t {
  kAuto,    // directly to ranks where UCX then copies nothing, else in pieces
  kPieces,  // by active messages, copied at both ends
  kDirect,  // from array to array by UCX, by their tag
};

// Above what is sent unasked directly wins by a factor, below it loses by the round trip.
inline constexpr std::size_t kDirectFrom = std::size_t{512} << 10;

// What a fabric is told. A value.
struct FabricOptions {
  std::string interface;       // the one to use; empty: UCX chooses
  std::function<void()> wake;  // called when something came in; any thread
  std::function<void()> help;  // called when `pending` becomes true, or one breaks; any thread
  // Whether others know that rank to be gone; any thread, not from the destructor.
  std::function<bool(int rank)> lost;
  std::function<bool(int rank)> died;  // the same of one that has not left in good order
  Bulk bulk = Bulk::kAuto;
  std::size_t direct_from = kDirectFrom;  // bytes; shorter messages never travel directly
  // Whether UCX is to use its transports of GPUs; to host memory they are no gain.
  bool gpus = false;
  // The GPU whose context is current then, where there is one: what UCX makes in the context has to
  // go before it does.
  std::shared_ptr<const cuda::DeviceContext> device = {};
};

// Memory that is in UCX's hands while it moves it. A resource: goes back to the fabric, by
// `take_back`, before anybody else touches the memory or gives it up.
struct Transfer {
  enum class State : std::uint8_t { kUnderWay, kDone, kFailed, kCancelled };
  State state = State::kUnderWay;
  bool receives = false;
  int rank = 0;  // of the world
  std::uint64_t tag = 0;
  std::size_t bytes = 0;
  void* request = nullptr;
  class Fabric* fabric = nullptr;
};

// A resource: context, worker and the connections to other ranks, made when they are first needed.
// Safe from any thread; one at a time works the worker. Broken connections are remembered, never
// thrown: who is dead is others' to say. Throws SystemError where UCX refuses to start.
class Fabric {
 public:
  Fabric(std::shared_ptr<const UcxLibrary> library, FabricOptions options);
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  // What others need to connect.
  std::vector<std::byte> address() const;
  // The addresses of all ranks; once, before the first message.
  void meet(std::vector<std::vector<std::byte>> addresses);

  // The same for some ranks of a world, at any time; those known already are left as they are.
  void introduce(std::size_t world,
                 std::span<const int> ranks,
                 std::span<const std::vector<std::byte>> addresses);

  // "UCX 1.13.1".
  std::string name() const;
  // Whether messages may come from, and go to, GPUs' memory.
  bool knows_gpus() const noexcept { return knows_gpus_; }
  // Whether UCX has a lane to that rank by which GPUs' memory moves without the host's.
  bool reaches_gpus(int rank);

  // Why there is no way to that rank at all; empty: there may be one.
  std::string why_unreachable(int rank);
  // Whether there was one, and is no more; or none could be made.
  bool is_broken(int rank) noexcept;

  // A descriptor that is readable when something may have come since `arm` said true.
  int event_fd() const noexcept { return event_fd_; }
  // False where something has come already.
  bool arm() noexcept;
  // Moves what is under way; true when something moved.
  bool progress() noexcept;
  // Whether messages that count as sent have not left yet: connections take their time, and peers
  // may be slow to read. Somebody has to call `progress` until they have.
  bool pending() const noexcept { return unsent_.load(std::memory_order_relaxed) != 0; }
  // The ranks to which connections have broken, or could not be made, since it was last asked. A
  // rank that has ended is among them. `help` is called when there are any.
  std::vector<int> take_broken();
  // Asks `died`. Waits until what was sent has left this process; false where the deadline came
  // first, or a rank has died: then only what goes to the living is waited for.
  bool flush(base::Deadline deadline) noexcept;
  // From now on nothing happens any more: the process is about to end, or nobody is left that could
  // be reached.
  void retire() noexcept;
  // The same where nobody is at work in it; else false.
  bool try_retire() noexcept;

  // --- For ports, with `mutex` held -----------------------------------------------------------
  std::mutex& mutex() noexcept { return mutex_; }
  // `id`: the same on all ranks. Messages that came early are handed over now.
  void open(std::uint64_t id, Port& port);
  void close(std::uint64_t id) noexcept;
  // Sends copies of both.
  void send(int rank, const MessageHeader& header, std::span<const std::byte> payload);
  // The same without a copy of `payload`, which is in UCX's hands while `left` counts it.
  using Count = std::shared_ptr<int>;
  void send_in_place(int rank,
                     const MessageHeader& header,
                     std::span<const std::byte> payload,
                     const Count& left);
  bool poll() noexcept;

  // Whether a message of so many bytes to that rank is better left to UCX; see Bulk.
  bool moves_directly(int rank, std::size_t bytes);
  // UCX's tag of a message that is to come here; none is used twice.
  std::uint64_t new_tag() noexcept { return ++last_tag_; }
  std::unique_ptr<Transfer> send_directly(int rank,
                                          std::uint64_t tag,
                                          std::span<const std::byte> bytes,
                                          MemoryKind memory = MemoryKind::kHost);
  std::unique_ptr<Transfer> receive_directly(int rank,
                                             std::uint64_t tag,
                                             std::span<std::byte> bytes,
                                             MemoryKind memory = MemoryKind::kHost);
  // Afterwards UCX does not touch the memory any more: what has begun is seen to its end, for a
  // while; then, or at once where the other rank is lost, the connection is given up. Where UCX
  // keeps the memory even so, this process makes no more use of UCX, which moves nothing by itself:
  // all connections count as broken, so that nobody waits for what they might bring. `lock`, of
  // `mutex`, is let go of while it waits.
  void take_back(std::unique_ptr<Transfer> transfer, std::unique_lock<std::mutex>& lock) noexcept;
  void take_back(int rank, const Count& left, std::unique_lock<std::mutex>& lock) noexcept;

 private:
  struct Outgoing;
  struct Peer {
    std::vector<std::byte> address;
    Endpoint endpoint = nullptr;
    bool broken = false;
    bool to_close = false;
    std::string why_broken;      // where there never was a connection
    std::optional<bool> direct;  // what moves_directly has found
  };
  struct Early {
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
  [[noreturn]] void refuse(const char* what, UcsStatus status) const;
  void take(const MessageHeader& header, std::span<const std::byte> payload);
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
  std::mutex mutex_;  // guards all below, and the worker
  bool retired_ = false;
  bool came_ = false;        // something, since it was last asked
  bool knows_dead_ = false;  // since a flush
  bool closes_ = false;      // whether one of `peers_` is to be closed
  std::vector<Peer> peers_;  // by world rank
  std::vector<int> broken_;  // not told yet
  std::map<std::uint64_t, Port*> ports_;
  std::set<std::uint64_t> closed_;
  std::map<std::uint64_t, std::deque<Early>> early_;  // of groups not made here yet
  std::size_t early_bytes_ = 0;
  std::vector<std::unique_ptr<Outgoing>> free_;
  std::uint64_t last_tag_ = 0;
  std::set<void*> drains_;  // requests that take what nobody wants any more
};

}  // namespace hocket::engines::ucx
