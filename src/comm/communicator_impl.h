// Behind a Communicator: what is done once for every call, in this order: check the arguments; give
// it a number and a fingerprint; record it; choose the engine; start; wait, or hand back work.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "comm/request.h"
#include "comm/tracing.h"
#include "comm/turnstile.h"
#include "control/group.h"
#include "engine/choices.h"
#include "engine/engine.h"
#include "engine/point_to_point.h"
#include "hocket/communicator.h"
#include "os/segment.h"

namespace hocket::comm {

class WorldImpl;
class DeviceCalls;
class DeviceWork;
struct DevicePlan;
class Operation;
class StagedCall;

// Who is in a group. A value.
struct Membership {
  std::string name;
  int epoch = 0;                 // how often it has been rebuilt
  int rank = -1;                 // of this process; -1: not a member
  std::vector<int> world_ranks;  // of each member
  std::vector<int> hosts;        // number of each member's host
  std::vector<int> host_ranks;   // of each member: its place on this host, see HostControl
  // Whether a rebuild has left somebody out, of it or of what it was made of: to MPI such a group
  // is what is left of a broken job.
  bool bereaved = false;

  int size() const noexcept { return static_cast<int>(world_ranks.size()); }
  // Whether they are on several hosts.
  bool spans() const noexcept {
    return std::any_of(hosts.begin(), hosts.end(), [this](int host) { return host != hosts[0]; });
  }
  // A number by which all members know the group, and no other group of the job is known.
  std::uint64_t id() const noexcept;
};

// What the composition root makes for a group.
struct Engines {
  std::vector<std::unique_ptr<engine::CollectiveEngine>> collectives;  // best first on ties
  std::unique_ptr<engine::PointToPoint> messages;
};

// A call that has been checked, and what follows from its signature. A value.
struct Plan {
  engine::Call call;
  engine::CollectiveEngine* engine = nullptr;
  std::uint64_t mark = 0;  // what the fingerprint takes in; see CommunicatorImpl::mark_of
};

// Until when one wait does not believe a loss that it has heard of: what was sent before may still
// come. A value.
struct Doubt {
  std::optional<base::Deadline> until;
  std::uint64_t came = 0;  // see engine::PointToPoint::owed
};

// A resource, shared by its Communicator and the operations under way. One thread at a time, which
// is checked, but for `abort`, `status` and the progress thread, which takes turns.
class CommunicatorImpl final : public std::enable_shared_from_this<CommunicatorImpl>,
                               private engine::Consistency {
 public:
  // `block`: offset of the group's memory on this host; members only. Where this rank cannot make
  // its part, as memory is short, the others have the group: it has failed for them, too.
  static std::shared_ptr<CommunicatorImpl> make(const std::shared_ptr<WorldImpl>& world,
                                                Membership membership,
                                                std::uint64_t block);
  // To be called by `make`.
  CommunicatorImpl(std::shared_ptr<WorldImpl> world, Membership membership, std::uint64_t block);
  ~CommunicatorImpl() override;

  const Membership& membership() const noexcept { return membership_; }
  int rank() const noexcept { return membership_.rank; }
  int size() const noexcept { return membership_.size(); }
  Place place() const noexcept { return {rank(), size()}; }
  const std::shared_ptr<WorldImpl>& world() const noexcept { return world_; }
  control::GroupControl& control() noexcept { return *control_; }

  // --- Collectives ----------------------------------------------------------------------------
  void run(const Request& request);
  std::shared_ptr<Operation> start(const Request& request);
  // For calls made of others: they carry the name `shown` in records and messages.
  void run_as(const engine::Signature& shown, const Request& request);

  // What a rank does by itself before its part of its next call, outside of any call: memory it
  // takes, arguments it checks. Whatever `part` throws, the others hear of at once, as a refusal of
  // that call. All ranks must come to that call: every call of several steps but the last must be
  // one that nobody leaves before all have come to it.
  template <typename Part>
  auto before_call(engine::Kind kind, Part&& part) {
    try {
      return part();
    } catch (...) {
      refuse_next(kind);
    }
  }
  // Announces that the next call is refused, for the exception that is being handled, and throws
  // it.
  [[noreturn]] void refuse_next(engine::Kind kind);
  // The same, for `reason`.
  [[noreturn]] void refuse_call(engine::Kind kind, const std::string& reason);
  // From here to the end of this object's life the others count on this rank's next calls, and are
  // not to be met in different ones: what this rank cannot begin ends the communicator.
  class Bound {
   public:
    explicit Bound(CommunicatorImpl& impl) noexcept : impl_(impl) { impl_.bound_ = true; }
    ~Bound() { impl_.bound_ = false; }
    Bound(const Bound&) = delete;
    Bound& operator=(const Bound&) = delete;

   private:
    CommunicatorImpl& impl_;
  };

  // --- Messages, as tasks made by messages.h ------------------------------------------------
  engine::PointToPoint& messages() noexcept { return *engines_.messages; }
  // `call`: what the task carries; its peer, or kAnyPeer, is whom it needs. The caller holds the
  // Seat, as the tasks begin outside.
  void require_usable() {
    if (!open_.load(std::memory_order_relaxed) || forks_.forked() || control_->failed()) {
      raise_unusable();
    }
  }
  // Whom a message is sent to must be there; whom one comes from may be gone, if the message is
  // not.
  void require_peer(int peer) {
    if (control_->host().losses() != losses_seen_) find_peer(peer);
  }
  // How often to look for a message before anything dearer than looking.
  int eager_polls() const noexcept { return eager_polls_; }
  void run_message(engine::Task task, const MessageCall& call, std::optional<Duration> deadline);
  std::shared_ptr<Operation> start_message(engine::Task task,
                                           const MessageCall& call,
                                           std::optional<Duration> deadline,
                                           observe::Span span = {});
  const Tracing& tracing() const noexcept { return tracing_; }

  // --- Prepared -------------------------------------------------------------------------------
  // Checks now; `run_prepared` then only numbers, records and starts. What it refuses is announced
  // as if the call had been made: the others make it.
  Plan prepare(const Request& request, CallStorage& storage);
  void run_prepared(Plan& plan, std::optional<Duration> deadline);
  // `keep` lives until the call has ended.
  std::shared_ptr<Operation> start_prepared(const Plan& plan,
                                            std::optional<Duration> deadline,
                                            std::shared_ptr<void> keep);

  // --- Waiting, for Operation -------------------------------------------------------------------
  // Moves what is under way until `operation` is done or the deadline passes.
  bool wait(Operation& operation, base::Deadline until);
  void poke();  // a bit of progress, if nobody else is at it
  // One turn of the progress thread. kAwaitsGpu: nothing moved, and nobody will ring when a GPU
  // does.
  enum class Turn { kIdle, kAwaitsGpu, kMoved, kNothingLeft };
  Turn progress() noexcept;
  void abandon(Operation& operation) noexcept;

  // --- Calls of GPUs ----------------------------------------------------------------------------
  // Guarded by the communicator's turn.
  DeviceCalls& devices();
  // Whom a new collective needs: all.
  void require_members() {
    if (control_->host().losses() != losses_seen_) find_members();
  }
  // Whether there has been a call on GPUs.
  bool has_device() const noexcept;
  DevicePlan prepare_device(const Request& request, CallStorage& storage);
  void run_prepared_device(DevicePlan& plan, const Request& request);
  std::shared_ptr<Operation> start_prepared_device(DevicePlan& plan, const Request& request);
  std::shared_ptr<Operation> mark_stream(StreamRef stream);
  // For Work: throws what has ended the call; whether it has ended on the GPU; waits for that.
  void check_device_work(Operation& operation);
  bool test_device_work(Operation& operation);
  bool wait_device_work(Operation& operation, base::Deadline until);
  bool has_passed(Operation& operation);

  // --- Failure --------------------------------------------------------------------------------
  void abort(const std::string& reason);
  std::optional<Status> status() const;
  [[noreturn]] void raise_failure();
  [[noreturn]] void throw_failure(const control::Failure& failure) const;
  // The group of those who go on; see Communicator::rebuild.
  std::shared_ptr<CommunicatorImpl> rebuild(const RebuildOptions& options);
  // Lets calls on GPUs end, well or not, until their deadlines, and gives all back. Throws what
  // ended one of them and has not been told: see DeviceCalls.
  void close();
  // The first half of it, as the process ends.
  void finish_device_calls();
  // The program has been told what ended this communicator, if anything has.
  void told() const noexcept;
  // A call on GPUs was refused by a peer, and the program has let go of it: the communicator ends.
  void miss(const Operation& operation) noexcept;
  std::vector<RankCall> last_calls() const;
  std::vector<RankCall> recent_calls() const;
  std::string dump(const std::string& directory) const;

  // How many groups were made of this one: part of their names, the same on all ranks.
  int groups() const noexcept { return groups_; }
  void count_group() noexcept { ++groups_; }

  Duration deadline() const noexcept { return deadline_; }
  void set_deadline(Duration deadline) { deadline_ = deadline; }

  // --- Groups, kept by the first call, closed or not: programs hold references to them ---------
  std::unique_ptr<Communicator> intra_node;
  std::unique_ptr<Communicator> inter_node;

 private:
  friend class Seat;
  friend class Lent;
  friend class DeviceCalls;

  void confirm(int peer, std::uint64_t sequence) override;

  // What a wait waits for.
  struct Awaited {
    std::uint64_t sequence = 0;  // a collective's number; 0: a message
    int peer = -1;               // a message's
    const MessageCall* message = nullptr;
  };

  static void fail_unmade(WorldImpl& world,
                          const Membership& membership,
                          std::uint64_t block) noexcept;
  [[noreturn]] void raise_unusable();
  // The job's memory is not there in a child: whoever would read it asks first.
  void refuse_forked() const;
  void refuse_after_leaving() const;
  void fail_by_closing() noexcept;
  // How a thread that closes gets in; kInside: it is in already, in a call whose callback closes;
  // kStuck: another one does not come out.
  enum class Closing : std::uint8_t { kEntered, kInside, kStuck };
  Closing enter_to_close() noexcept;
  void drop_calls() noexcept;
  void raise_untold() const;
  void find_members();
  void find_peer(int peer);
  // A hash of the signature; mixed together, those of all calls so far are the fingerprint.
  static std::uint64_t mark_of(const engine::Signature& signature) noexcept;
  static std::uint64_t fingerprint_after_refusal(std::uint64_t sequence) noexcept;
  // `shown`: what the records say, where that is not the call itself.
  Plan plan(const Request& request, CallStorage& storage, const engine::Signature* shown);
  Plan checked(const Request& request,
               CallStorage& storage,
               const engine::Signature* shown = nullptr);
  void find_symmetric(engine::Call& call) const noexcept;
  // All three by whoever holds the seat. What is not known to be a refusal is thrown as it is.
  [[noreturn]] void refuse(engine::Kind kind, const InvalidArgument& reason);
  [[noreturn]] void refuse_caught(engine::Kind kind);
  void announce_refusal(std::uint64_t sequence,
                        engine::Kind kind,
                        std::string_view reason) noexcept;
  void publish_refusal(std::uint64_t sequence, engine::Kind kind, std::string_view reason);
  void fail_caught(std::uint64_t sequence) noexcept;
  engine::CollectiveEngine& choose(const engine::Signature& signature);
  void begin(Plan& plan, const engine::Signature& shown);
  engine::Task start_task(const Plan& plan, const engine::Signature& shown);
  void end(std::uint64_t sequence, bool failed = false) noexcept;
  // Numbers the call.
  void execute(Plan& plan,
               const engine::Signature& shown,
               std::optional<Duration> deadline,
               CallStorage* storage);
  void finish_queued(Operation& operation);
  void drive(engine::Task& task, const Awaited& awaited, Duration allowed);
  // Of a call on GPUs: what is copied for it; the mark behind it, for a Work.
  struct OnStream {
    std::shared_ptr<StagedCall> staged;
    std::shared_ptr<DeviceWork> end;
  };
  std::shared_ptr<Operation> enqueue(const Plan& plan,
                                     const engine::Signature& shown,
                                     CallStorage storage,
                                     std::optional<Duration> deadline,
                                     const OnStream& on_stream = {});
  bool advance(bool look);
  bool advance_one(Operation& operation, bool look);
  bool start(Operation& operation);
  bool settle(Operation& operation);
  control::Failure missed_refusal(int peer,
                                  std::uint64_t sequence,
                                  const engine::Signature& shown) const;
  void check_deadlines();
  void fail_all(const std::exception_ptr& error) noexcept;
  void give_up(Operation& operation, const std::exception_ptr& error) noexcept;
  // Ends the operation and runs its callback.
  void conclude(Operation& operation, const std::exception_ptr& error) noexcept;
  // Shows host-mates what messages this rank waits for; once more where there are others now.
  void show_messages(const MessageCall& awaited);
  void hide_messages() noexcept;
  // When to look by oneself: nobody rings when a GPU does what a call under way waits for.
  base::Deadline next_look() const noexcept;
  bool busy() const noexcept { return !queue_.empty() || !messages_.empty(); }

  // What ends a wait that has not ended well so far; the caller makes sure of that, after this.
  // Throws where a peer refused the call.
  std::optional<control::Failure> look_around(const Awaited& awaited, Doubt& doubt);
  std::optional<control::Failure> find_failure(const Awaited& awaited);
  std::optional<control::Failure> find_loss(const Awaited& awaited);
  bool has_finished(const Awaited& awaited, int member) const;
  std::optional<control::Failure> compare_records(std::uint64_t sequence) const;
  void compare_ended(std::uint64_t sequence);
  void check_refusals(std::uint64_t sequence);
  control::Failure mismatch(int peer, std::uint64_t sequence) const;
  control::Failure lateness(const Awaited& awaited, Duration allowed) const;
  control::Failure interruption() const;
  int last_other() const noexcept { return rank() == size() - 1 ? size() - 2 : size() - 1; }
  [[noreturn]] void raise_envelopes(const engine::EnvelopeMismatch& found, const Awaited& awaited);
  [[noreturn]] void raise(const control::Failure& failure);
  RankCall call_of(int member) const;
  Status status_of(const control::Failure& failure) const;

  std::shared_ptr<WorldImpl> world_;
  Membership membership_;
  const os::ForkGuard& forks_;  // the world's
  std::uint64_t block_ = 0;
  control::GroupEntry* entry_ = nullptr;  // of a group between hosts
  std::unique_ptr<control::GroupControl> control_;
  Engines engines_;
  Tracing tracing_;

  Turnstile turnstile_;
  // The thread that runs a callback of an operation, with the turn, by this_thread(); 0: none does.
  std::atomic<std::uintptr_t> concluding_{0};
  std::atomic<bool> open_{false};     // a member's, until it is closed
  std::atomic<bool> written_{false};  // the flight record
  mutable std::atomic<bool> told_{false};
  std::atomic<bool> lost_{false};         // a call on GPUs that the host carried has failed
  std::atomic<bool> is_stepping_{false};  // then failures are not those of who steps
  bool rebuilt_ = false;                  // what comes after it has been handed out
  bool bound_ = false;                    // see Bound
  int groups_ = 0;
  std::uint64_t sequence_ = 0;     // of the last call
  std::uint64_t fingerprint_ = 0;  // of all calls so far
  std::uint64_t compared_ = 0;  // the last call whose records were found alike; see compare_ended
  std::uint32_t losses_seen_ = 0;
  int eager_polls_ = 0;
  Duration deadline_;
  std::deque<std::shared_ptr<Operation>> queue_;      // collectives, in order
  std::vector<std::shared_ptr<Operation>> messages_;  // in no order
  std::size_t shown_messages_ = 0;                    // how many waited when they were shown
  std::unique_ptr<DeviceCalls> devices_;
  engine::Choices<engine::CollectiveEngine*> choices_;
  // The last of `run`'s calls, of different kinds: programs repeat themselves, and what was right
  // is right again.
  struct Repeated {
    Request request;
    Plan plan;
  };
  std::array<Repeated, 4> repeated_;
};

// A user thread's turn on a communicator. Throws where another thread has it.
class Seat {
 public:
  explicit Seat(CommunicatorImpl& impl) : impl_(impl), shortly_(impl.turnstile_.enter_shortly()) {
    if (!shortly_) enter();
  }
  ~Seat() {
    if (shortly_) {
      impl_.turnstile_.leave_shortly();
    } else {
      leave();
    }
  }
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;

 private:
  void enter();
  void leave() noexcept;

  CommunicatorImpl& impl_;
  const bool shortly_;
};

// A user thread's turn, lent to whoever moves calls under way for as long as this lives: for calls
// of the GPUs' driver, which may keep their caller waiting until streams go on, and these wait for
// calls under way. Meanwhile this thread touches nothing that the turn guards.
class Lent {
 public:
  explicit Lent(CommunicatorImpl& impl) noexcept : impl_(impl.busy() ? &impl : nullptr) {
    if (impl_ != nullptr) impl_->turnstile_.lend();
  }
  ~Lent() {
    if (impl_ != nullptr) impl_->turnstile_.take_back();
  }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

 private:
  CommunicatorImpl* impl_;
};

}  // namespace hocket::comm
