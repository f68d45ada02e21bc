// The calls of one rank in one group, which all take the same path:
//
//   check arguments -> number, fingerprint -> announce -> start on an engine -> wait, queue -> end
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calls/call/job_context.h"
#include "calls/call/ledger.h"
#include "calls/call/membership.h"
#include "calls/call/operation.h"
#include "calls/call/planner.h"
#include "calls/call/request.h"
#include "calls/call/runner.h"
#include "calls/call/tracing.h"
#include "calls/call/turn_lock.h"
#include "engine/engine.h"
#include "hocket/communicator.h"
#include "membership/control/group.h"
#include "membership/failure/inquiry.h"
#include "membership/failure/texts.h"
#include "monitoring/live/long_wait.h"

namespace hocket::call {

// A resource, shared by its communicator and the operations under way. One thread at a time, which
// CallGuard checks. Any thread may call `abort` and `status`. The progress thread takes turns.
class Core : public std::enable_shared_from_this<Core>, public engine::Consistency, private Owner {
 public:
  // `block` is the group's memory, which must outlive this. It is null in a process that is no
  // member, and so makes no calls. `entry` is set for a group between hosts.
  Core(std::shared_ptr<JobContext> job,
       Membership membership,
       std::byte* block,
       control::GroupEntry* entry,
       Duration deadline);
  ~Core() override = default;
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  // From here on it makes calls.
  void open(Engines engines);

  const Membership& membership() const noexcept { return membership_; }
  int rank() const noexcept { return membership_.rank; }
  int size() const noexcept { return membership_.size(); }
  RankAndSize place() const noexcept { return {rank(), size()}; }
  Duration deadline() const noexcept { return deadline_; }
  void set_deadline(Duration deadline) { deadline_ = deadline; }
  // True if this rank audits the calls; set_audited applies from the next one on. Throws
  // SystemError.
  bool is_audited() const noexcept { return tracing_.audits(); }
  void set_audited(bool audited);
  JobContext& job() noexcept { return *job_; }

  // --- Parts for functions that make internal calls; in the turn ---------------------------------
  control::GroupControl& group() noexcept { return *group_; }
  const control::GroupControl& group() const noexcept { return *group_; }
  Ledger& ledger() noexcept { return *ledger_; }
  Planner& planner() noexcept { return *planner_; }
  Runner& runner() noexcept { return *runner_; }
  failure::Inquiry& inquiry() noexcept { return *inquiry_; }
  live::LongWaits& long_waits() noexcept { return *long_waits_; }
  engine::PointToPoint& messages() noexcept { return *engines_.messages; }
  const Engines& engines() const noexcept { return engines_; }
  const Tracing& tracing() const noexcept { return tracing_; }

  // --- Collectives of arrays on the host ------------------------------------------------------
  // Makes a part of a composed call. Records and messages name it as `shown`. Takes the turn.
  void run_as(const engine::Signature& shown, const Request& request);
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
  std::shared_ptr<Operation> enqueue(const Plan& plan,
                                     const engine::Signature& shown,
                                     CallStorage storage,
                                     std::optional<Duration> deadline,
                                     std::shared_ptr<Carrying> carrying = nullptr,
                                     std::shared_ptr<StreamMark> mark = nullptr);

  // Starts a call of two parts, of which the second's request follows from the first's result.
  // `first` runs now, and `second` once the first part has ended well; if either throws, its part
  // is refused. Returns the second part. Both keep `keep`. Takes the turn.
  std::shared_ptr<Operation> start_two_parts(engine::Kind kind_of_second,
                                             const std::function<Request()>& first,
                                             std::function<Request()> second,
                                             std::optional<Duration> deadline,
                                             const std::shared_ptr<void>& keep);

  // --- Messages; in the turn ------------------------------------------------------------------
  void run_message(MessageInFlight& message, std::optional<Duration> deadline);
  void run_messages(std::span<MessageInFlight> messages, std::optional<Duration> deadline);
  std::shared_ptr<Operation> start_message(MessageInFlight&& message,
                                           std::optional<Duration> deadline);
  // Run or start a task that is no plain message: a probe, or messages on GPUs.
  void run_message(engine::Task task,
                   const failure::MessageCall& call,
                   std::optional<Duration> deadline);
  std::shared_ptr<Operation> start_message(engine::Task task,
                                           const failure::MessageCall& call,
                                           std::optional<Duration> deadline);
  // Finds a message that has arrived and that no receive has taken. Absent: there is none so far,
  // and one can still come.
  std::optional<engine::Envelope> find_message(const failure::MessageCall& call);
  // Returns the operation for the Work of a message that has already ended.
  std::shared_ptr<Operation> ended_message() { return {shared_from_this(), &ended_message_}; }
  // Number of cheap looks for a message before more expensive checks.
  int eager_polls() const noexcept { return eager_polls_; }

  // --- Whether a call can be made -------------------------------------------------------------
  void require_usable() {
    if (!open_.load(std::memory_order_relaxed) || forks_.forked() || group_->failed()) {
      raise_unusable();
    }
  }
  // Throws if a member is lost, because a new collective of this kind needs all members.
  void require_members(engine::Kind kind = engine::Kind::kNone) {
    if (inquiry_->has_news()) find_lost({.sequence = ledger_->last() + 1, .kind = kind});
  }
  // Throws if a message's peer is lost. The destination must be there; a source may be gone if its
  // message has arrived.
  void require_peer(int peer) {
    if (inquiry_->has_news()) find_lost({.peer = peer});
  }
  // Call it before reading the job's memory, which does not exist in a forked child.
  void refuse_forked() const;
  // True if this thread runs a callback of one of its calls. Calls of the callback are refused.
  bool is_in_callback() const noexcept { return holds_turn_in_callback() || is_telling_here(); }
  // True if the callback's call has just ended. The thread then has the turn, in the middle of a
  // step, so that a wait for the turn would never end.
  bool holds_turn_in_callback() const noexcept { return runner_ && runner_->is_concluding_here(); }
  // Calls `callback` of a call that had ended before. This thread need not have the turn.
  void tell(const std::function<void()>& callback) noexcept;
  // Throws if this thread runs such a callback, or a user's operator or signal handler in a step.
  void refuse_in_callback() const;
  [[noreturn]] void refuse_within_call() const;

  // --- Refusals -------------------------------------------------------------------------------
  // Runs `part`, the work of this rank before its next call, such as allocations and checks. If it
  // throws, the others hear of it at once, as a refusal of that call. All ranks must make that
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
  // The same, for `reason`.
  [[noreturn]] void refuse_call(engine::Kind kind, const std::string& reason);
  // Both need the turn. They rethrow an exception that is not known to be a refusal.
  [[noreturn]] void refuse(engine::Kind kind, const InvalidArgument& reason);
  [[noreturn]] void refuse_caught(engine::Kind kind);
  // Refuses a call with an invalid limit; see foundation/base/limit.h.
  void require_limit(engine::Kind kind, const std::optional<Duration>& limit) {
    if (limit && *limit <= Duration::zero()) [[unlikely]]
      refuse_limit(kind, limit);
  }
  // During this object's life, the others rely on this rank's next calls, and must not be met by
  // different ones. If this rank cannot begin one of them, the communicator ends.
  class Commitment {
   public:
    explicit Commitment(Core& core) noexcept : core_(core) { core_.is_committed_ = true; }
    ~Commitment() { core_.is_committed_ = false; }
    Commitment(const Commitment&) = delete;
    Commitment& operator=(const Commitment&) = delete;

   private:
    Core& core_;
  };

  // --- Waiting for pending calls: Work, and the progress thread -------------------------------
  // Progresses pending calls until `operation` is done or the deadline passes.
  bool wait(Operation& operation, base::Deadline until);
  void poke();  // makes some progress, unless another thread does
  // One turn of the progress thread. kAttended: it did nothing, as a thread of the program moves
  // the pending calls. kAwaitsGpu: nothing moved, and a GPU will not ring the doorbell.
  enum class Progress : std::uint8_t { kIdle, kAttended, kAwaitsGpu, kMoved, kNothingLeft };
  Progress progress() noexcept;
  // The program has dropped a Work.
  void abandon(Operation& operation) noexcept;

  // For the Work of a call on a stream. They throw the failure that ended the call, test whether
  // the stream has passed it, and wait until the stream has.
  void check_stream_work(Operation& operation);
  void await_failed_stream_work(const Operation& operation) noexcept;
  bool test_stream_work(Operation& operation);
  bool wait_stream_work(Operation& operation, base::Deadline until);

  // --- Failure --------------------------------------------------------------------------------
  void abort(const std::string& reason);
  std::optional<Status> status() const;
  using Owner::raise;
  using Owner::raise_any;
  using Owner::raise_failure;
  // Notes that the program has seen the failure that ended this communicator, if there is one.
  void told() const noexcept;
  // Notes that a call of GPUs that the host carried has failed, while no caller waits for it.
  void lose_device_call() noexcept override { lost_.store(true, std::memory_order_relaxed); }
  // Called as the process ends: lets calls on GPUs end, in success or failure, until their
  // deadlines. Throws a failure of one of them that no caller has seen.
  virtual void finish_device_calls() {}
  // Called as the process ends without close: compares calls that were not compared before. Throws
  // Mismatch. Does nothing while another thread is in a call, which then fails.
  void compare_at_exit();
  // Returns the value of a failure that this rank causes.
  control::Failure own_failure(control::Cause cause, std::string_view text = {}) const noexcept;
  void miss(const Operation& operation) noexcept override;
  void confirm(int peer, std::uint64_t sequence) override;
  std::vector<RankCall> last_calls() const;
  std::vector<RankCall> recent_calls() const;
  std::string dump(const std::string& directory) const;
  // True if a closing thread waits for the thread inside, which then gives up its own wait.
  bool is_called_out() const noexcept { return is_called_out_.load(std::memory_order_relaxed); }

 protected:
  friend class CallGuard;
  friend class LentTurn;
  class Step;

  // Hooks for the calls on GPUs, which are separate from this class.
  virtual bool awaits_gpu() const noexcept { return false; }
  virtual void look_at_device_result() noexcept {}
  // True if others may have put on their GPUs a call that this rank refuses. They may then take its
  // next call for that one before they hear of the refusal.
  virtual bool refuses_too_late() const noexcept { return false; }

  [[noreturn]] void raise_unusable();
  bool is_open() const noexcept { return open_.load(std::memory_order_relaxed); }
  const os::ForkGuard& forks() const noexcept { return forks_; }

  // --- Closing ----------------------------------------------------------------------------------
  // Closes this to new calls. Returns true for the first caller alone.
  bool begin_closing() noexcept { return open_.exchange(false); }
  // The result of a closing thread's entry. kInside: it is already inside, in a call whose callback
  // closes. kStuck: another thread does not come out.
  enum class Closing : std::uint8_t { kEntered, kInside, kStuck };
  Closing enter_to_close() noexcept;
  void leave() noexcept { turn_.leave(); }
  // Notes that the program already knows that the communicator ends.
  void set_told() noexcept { told_.store(true, std::memory_order_relaxed); }
  // Compares the last calls, in the turn, before others see this rank close. Throws Mismatch if
  // ranks made different calls and this rank has not been told. Some parts of calls need no other
  // rank, such as a broadcast's at the root, and compare nothing. The last rank to come here sees
  // all announcements.
  void compare_last_calls();
  // Ends all pending calls by `cause`.
  void drop_calls(control::Cause cause) noexcept;
  void drop_engines() noexcept { engines_ = {}; }
  // Throws a failure of calls on GPUs that no caller has seen. Other failures were seen by their
  // waiters, or their calls were given up. `cut_short`: engines have ended some calls.
  void raise_untold(bool cut_short) const;

 private:
  std::exception_ptr ended_by(const control::Failure& failure) override;
  std::exception_ptr refused_by(const failure::Refusal& refusal) override;
  std::exception_ptr ended() override;
  void fail_caught(std::uint64_t sequence) noexcept override;
  void refuse_after_leaving() const;
  bool is_telling_here() const noexcept;
  InvalidArgument told_in_callback() const;
  [[noreturn]] void refuse_call_of_callback(std::optional<engine::Kind> kind);
  void refuse_limit(engine::Kind kind, const std::optional<Duration>& limit);
  void find_lost(const failure::Awaited& awaited);
  void hear_of_last_calls();
  void announce_refusal(std::uint64_t sequence,
                        engine::Kind kind,
                        std::string_view reason) noexcept;
  engine::Task start_task(const Plan& plan, const engine::Signature& shown);
  void finish_queued(Operation& operation);
  void run_behind_others(std::span<MessageInFlight> messages, std::optional<Duration> deadline);
  std::shared_ptr<Operation> new_message(MessageInFlight&& message,
                                         std::optional<Duration> deadline);
  std::shared_ptr<Operation> start_message(std::shared_ptr<Operation> operation);
  void watch(const Operation& operation);
  bool is_attended() noexcept;
  void look_for_returned(Operation& operation) noexcept;
  void look_for_returned() noexcept;
  bool has_passed(Operation& operation);
  void look_at_streams() noexcept;

  const std::shared_ptr<JobContext> job_;
  const Membership membership_;
  const os::ForkGuard& forks_;
  const std::unique_ptr<control::GroupControl> group_;
  Engines engines_;
  Tracing tracing_;
  TurnLock turn_;
  std::atomic<std::uintptr_t> stepper_{0};  // the thread within a Step, by this_thread(); 0: none
  std::atomic<bool> open_{false};           // until it is closed
  int eager_polls_ = 0;
  bool is_committed_ = false;  // see Commitment
  Duration deadline_;
  // A member has these from `open` on.
  std::optional<Ledger> ledger_;
  std::optional<Planner> planner_;
  std::optional<failure::Inquiry> inquiry_;
  // For programs that probe repeatedly without waiting.
  failure::Doubt probing_;
  int probed_peer_ = 0;
  std::optional<failure::Texts> texts_;
  std::optional<live::LongWaits> long_waits_;
  std::optional<Runner> runner_;
  Operation ended_message_{*this};
  // The threads that run a callback in `tell`. Guarded by the mutex; the number is for quick looks.
  mutable std::mutex tellers_mutex_;
  std::vector<std::uintptr_t> tellers_;
  std::atomic<std::size_t> tellers_count_{0};
  bool is_watched_ = false;  // by the progress thread, from `watch` until nothing is left
  // The progress thread's last look found these.
  std::atomic<std::uint32_t> visits_seen_{0};
  bool awaited_gpu_ = false;
  // The operation for which a stream was last seen to wait.
  std::weak_ptr<Operation> held_;
  std::optional<live::LongWait> held_wait_;

  std::atomic<bool> written_{false};  // the flight record
  std::atomic<bool> is_called_out_{false};
  mutable std::atomic<bool> told_{false};
  std::atomic<bool> lost_{false};  // a call on GPUs that the host carried has failed
};

// A user thread's turn on a communicator. Throws if another thread has it, and in a callback. If
// `kind` names a collective that a callback makes, the other ranks hear of the refusal.
class CallGuard {
 public:
  explicit CallGuard(Core& core, std::optional<engine::Kind> kind = std::nullopt)
      : core_(core), shortly_(core.turn_.enter_shortly()) {
    if (!shortly_) enter(kind);
  }
  ~CallGuard() {
    if (shortly_) {
      core_.turn_.leave_shortly();
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
  const bool shortly_;
};

// During this object's life, a user thread lends its turn to threads that move pending calls. The
// GPU driver may block until streams go on, and streams may wait for pending calls. So the turn is
// lent around driver calls. This thread then touches nothing that the turn guards.
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
