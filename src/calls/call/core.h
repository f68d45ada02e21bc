// The calls of one rank in one group, which all take the same path:
//
//   check arguments -> number, fingerprint -> announce -> start on an engine -> wait, queue -> end
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calls/call/core/closing.h"
#include "calls/call/core/failures.h"
#include "calls/call/core/message_calls.h"
#include "calls/call/core/pending_calls.h"
#include "calls/call/core/reentry.h"
#include "calls/call/core/state.h"
#include "calls/call/core/stream_waits.h"
#include "calls/call/operation.h"
#include "calls/call/planner.h"
#include "calls/call/request.h"
#include "hocket/communicator.h"
#include "membership/failure/inquiry.h"

namespace hocket::call {

// A call of two parts. The request of the second part depends on the result of the first part. If
// `first` or `second` throws, that part is refused.
struct TwoParts {
  engine::Kind whole;               // named by records and errors of the parts
  std::function<Request()> first;   // runs when the call is started
  std::function<Request()> second;  // runs once the first part has ended well
  std::optional<Duration> deadline;
  std::shared_ptr<void> keep;  // owner of data that both parts refer to
};

// A resource, shared by its communicator and the operations in progress. One thread uses it at a
// time, which CallGuard checks; the progress thread takes turns as well. The classes of its members
// say which of their functions any thread may call.
class Core : public std::enable_shared_from_this<Core>, public CoreState {
 public:
  // `block` is the group's memory, which must outlive this. It is null in a process that is not a
  // member, and that process makes no calls. `entry` is set for a group between hosts.
  Core(std::shared_ptr<JobContext> job,
       Membership membership,
       std::byte* block,
       control::GroupEntry* entry,
       Duration deadline);
  virtual ~Core() = default;
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  // Sets the engines. From then on this can make calls.
  void open(Engines engines);

  // Applies from the next call on; see is_audited. Throws SystemError.
  void set_audited(bool audited);

  // --- Collectives of arrays on the host ------------------------------------------------------

  // Makes a part of a composed call. Records and messages name it as `shown`. Takes the turn.
  void run_as(const engine::Signature& shown, const Request& request);
  // Makes a part of the call that an enclosing Whole names. Takes the turn.
  void run_part(const Request& request);
  bool is_in_whole() const noexcept { return whole() != engine::Kind::kNone; }
  // Plans a call, see Planner::plan. If it cannot be planned, announces the refusal to the other
  // ranks. The caller has the turn, see CallGuard.
  Plan checked(const Request& request,
               CallStorage& storage,
               const engine::Signature* shown = nullptr,
               const Plan* like = nullptr);
  // Numbers a planned call and makes it. The caller has the turn.
  void execute(Plan& plan,
               const engine::Signature& shown,
               std::optional<Duration> deadline,
               CallStorage* storage);
  std::shared_ptr<QueuedCall> enqueue(const Plan& plan,
                                      const engine::Signature& shown,
                                      CallStorage storage,
                                      std::optional<Duration> deadline,
                                      std::shared_ptr<Carrying> carrying = nullptr,
                                      std::shared_ptr<StreamMark> mark = nullptr);

  // Starts a call of two parts and returns the second one. Takes the turn.
  std::shared_ptr<Operation> start_two_parts(TwoParts parts);

  // --- Whether a call can be made -------------------------------------------------------------

  void require_usable() {
    if (!open_.load(std::memory_order_relaxed) || forks_.forked() || group_->failed()) {
      raise_unusable();
    }
  }
  [[noreturn]] void raise_unusable();
  // Returns why this rank, which has left the job, can make no calls.
  std::string why_left() const;
  // Throws if a member is lost, because a new collective of this kind needs all members.
  void require_members(engine::Kind kind = engine::Kind::kNone) {
    if (inquiry_->has_news()) find_lost({.sequence = ledger_->last() + 1, .kind = kind});
  }
  // Throws if the peer of a message is lost. A destination must be alive; a source may be gone if
  // its message has arrived.
  void require_peer(int peer) {
    if (inquiry_->has_news()) find_lost({.peer = peer});
  }
  // Call it before reading the job's memory, which does not exist in a forked child.
  void refuse_forked() const;

  // --- Refusals -------------------------------------------------------------------------------

  // Runs `part`, the work of this rank before its next call, such as allocations and checks. If it
  // throws, the other ranks hear of it at once, as a refusal of that call. All ranks must make that
  // call. So in a function of several calls, no rank may leave a call before all have entered it,
  // except the last call.
  template <typename Part>
  auto before_call(engine::Kind kind, Part&& part) {
    try {
      return part();
    } catch (...) {
      refuse_next(kind);
    }
  }
  // Announces that the next call is refused, for the exception that is being handled, and throws
  // it. Takes the turn.
  [[noreturn]] void refuse_next(engine::Kind kind);
  // Announces and throws the same for the text `reason`.
  [[noreturn]] void refuse_call(engine::Kind kind, const std::string& reason);
  // Announce the next call as refused, for `reason` or for the exception that is being handled, and
  // throw. The caller has the turn. An InvalidArgument gets the call's name; others stay the same.
  [[noreturn]] void refuse(engine::Kind kind, const InvalidArgument& reason);
  [[noreturn]] void refuse_caught(engine::Kind kind);
  // Refuses a call with an invalid limit; see foundation/base/limit.h.
  void require_limit(engine::Kind kind, const std::optional<Duration>& limit) {
    if (limit && *limit <= Duration::zero()) [[unlikely]]
      refuse_limit(kind, limit);
  }
  // While this object lives, the other ranks rely on this rank's next calls and do not expect a
  // refusal. If this rank cannot begin one of them, the communicator ends.
  class Commitment {
   public:
    explicit Commitment(Core& core) noexcept : core_(core) { core_.is_committed_ = true; }
    ~Commitment() { core_.is_committed_ = false; }
    Commitment(const Commitment&) = delete;
    Commitment& operator=(const Commitment&) = delete;

   private:
    Core& core_;
  };

  // While this object lives, records and messages name this rank's calls as `whole`, because they
  // are its parts. Inside another Whole it has no effect.
  class Whole {
   public:
    Whole(Core& core, engine::Kind whole) noexcept : core_(core), outer_(core.whole()) {
      if (outer_ == engine::Kind::kNone) core.whole_.store(whole, std::memory_order_relaxed);
    }
    ~Whole() { core_.whole_.store(outer_, std::memory_order_relaxed); }
    Whole(const Whole&) = delete;
    Whole& operator=(const Whole&) = delete;

   private:
    Core& core_;
    const engine::Kind outer_;
  };

  // --- Hooks for the calls on GPUs, which are separate from this class --------------------------

  virtual bool awaits_gpu() const noexcept { return false; }
  virtual void look_at_device_result() noexcept {}
  // True if other ranks may already have put on their GPUs a call that this rank refuses. They
  // could mistake this rank's next call for the refused call before they hear of the refusal.
  virtual bool refuses_too_late() const noexcept { return false; }
  // Called when the process ends. Waits until calls on GPUs have ended or reached their deadlines.
  // Throws a failure of such a call that no caller has seen.
  virtual void finish_device_calls() {}

 private:
  friend class CallGuard;
  friend class LentTurn;

  engine::Kind whole() const noexcept { return whole_.load(std::memory_order_relaxed); }
  // Returns the kind that the program has called.
  engine::Kind called(engine::Kind part) const noexcept { return is_in_whole() ? whole() : part; }
  void refuse_after_leaving() const;
  [[noreturn]] void refuse_call_of_callback(std::optional<engine::Kind> kind);
  void refuse_limit(engine::Kind kind, const std::optional<Duration>& limit);
  void find_lost(const failure::Awaited& awaited);
  void announce_refusal(std::uint64_t sequence,
                        engine::Kind kind,
                        std::string_view reason) noexcept;
  engine::Task start_task(const Plan& plan, const engine::Signature& shown);

  bool is_committed_ = false;                             // see Commitment
  std::atomic<engine::Kind> whole_{engine::Kind::kNone};  // see Whole; kNone: there is none

 public:
  // --- Parts, each with its own functions. They use CoreState, so they are destroyed before it.
  Reentry reentry{*this, turn_, runner_};
  Failures failures{*this};
  PendingCalls pending{*this, turn_};
  StreamWaits stream_waits{*this};
  MessageCalls message_calls;
  Closing closing{*this, turn_, open_, engines_};
};

// Holds a user thread's turn on a communicator. The constructor throws if another thread has the
// turn, or in a callback. If `kind` names the collective that a callback makes, the other ranks
// hear of the refusal.
class CallGuard {
 public:
  explicit CallGuard(Core& core, std::optional<engine::Kind> kind = std::nullopt)
      : core_(core), is_fast_(core.turn_.enter_fast()) {
    if (!is_fast_) enter(kind);
  }
  ~CallGuard() {
    if (is_fast_) {
      core_.turn_.leave_fast();
    } else {
      leave();
    }
  }
  CallGuard(const CallGuard&) = delete;
  CallGuard& operator=(const CallGuard&) = delete;

 private:
  void enter(std::optional<engine::Kind> kind);
  void leave() noexcept;

  Core& core_;
  const bool is_fast_;
};

// While this object lives, a user thread lends its turn to threads that move pending calls. The GPU
// driver may block until streams go on, and streams may wait for pending calls. So the turn is lent
// around driver calls. Meanwhile this thread must not touch data that the turn guards.
class LentTurn {
 public:
  explicit LentTurn(Core& core) noexcept : core_(core.runner().busy() ? &core : nullptr) {
    if (core_ != nullptr) core_->turn_.lend();
  }
  ~LentTurn() {
    if (core_ != nullptr) core_->turn_.take_back();
  }
  LentTurn(const LentTurn&) = delete;
  LentTurn& operator=(const LentTurn&) = delete;

 private:
  Core* core_;
};

}  // namespace hocket::call
