// The calls of one rank in one group, all of them by one way: check the arguments; give the call a
// number and a fingerprint; announce it; start it on its engine; wait, or hand back what is under
// way; say what has ended it.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calls/call/ledger.h"
#include "calls/call/membership.h"
#include "calls/call/operation.h"
#include "calls/call/planner.h"
#include "calls/call/request.h"
#include "calls/call/runner.h"
#include "calls/call/surroundings.h"
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
// is checked (see CallGuard), but for `abort`, `status` and the progress thread, which takes turns.
class Core : public std::enable_shared_from_this<Core>, public engine::Consistency, private Owner {
 public:
  // `block`: the group's memory, which must outlive this; null for a process that is not a member,
  // and makes no calls. `entry`: of a group between hosts.
  Core(std::shared_ptr<Surroundings> surroundings,
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
  // Whether this rank keeps an audit of the calls; from the next one on. Throws SystemError.
  bool is_audited() const noexcept { return tracing_.audits(); }
  void set_audited(bool audited);
  Surroundings& surroundings() noexcept { return *surroundings_; }

  // --- What it is made of, for those who make calls of a kind of their own; in the turn ---------
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
  // For calls made of others: they carry the name `shown` in records and messages. Takes the turn.
  void run_as(const engine::Signature& shown, const Request& request);
  // In the turn: see CallGuard. Refuses what it cannot plan, so that the others hear of it. See
  // Planner::plan.
  Plan checked(const Request& request,
               CallStorage& storage,
               const engine::Signature* shown = nullptr,
               const Plan* like = nullptr);
  // Makes a planned call, in the turn; numbers it.
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

  // --- Messages; in the turn ------------------------------------------------------------------
  void run_message(MessageInFlight& message, std::optional<Duration> deadline);
  void run_messages(std::span<MessageInFlight> messages, std::optional<Duration> deadline);
  std::shared_ptr<Operation> start_message(MessageInFlight&& message,
                                           std::optional<Duration> deadline);
  // The same of what is more than a message: a probe, or those of GPUs.
  void run_message(engine::Task task,
                   const failure::MessageCall& call,
                   std::optional<Duration> deadline);
  std::shared_ptr<Operation> start_message(engine::Task task,
                                           const failure::MessageCall& call,
                                           std::optional<Duration> deadline);
  // A message that has come and that no receive has taken; absent where none is there and one can
  // still come.
  std::optional<engine::Envelope> find_message(const failure::MessageCall& call);
  // How often to look for a message before anything dearer than looking.
  int eager_polls() const noexcept { return eager_polls_; }

  // --- Whether a call can be made -------------------------------------------------------------
  void require_usable() {
    if (!open_.load(std::memory_order_relaxed) || forks_.forked() || group_->failed()) {
      raise_unusable();
    }
  }
  // Whom a new collective needs: all.
  void require_members() {
    if (inquiry_->has_news()) find_lost({.sequence = ledger_->last() + 1});
  }
  // Whom a message is sent to must be there; whom one comes from may be gone, if the message is
  // not.
  void require_peer(int peer) {
    if (inquiry_->has_news()) find_lost({.peer = peer});
  }
  // The job's memory is not there in a child: whoever would read it asks first.
  void refuse_forked() const;
  // Whether this thread runs a callback of one of its calls. It has the turn then, in the middle of
  // a step, so that whatever waits for the turn would wait for ever: that is refused.
  bool is_in_callback() const noexcept { return runner_ && runner_->is_concluding_here(); }
  // The same of a thread at a step, in which an operator or the handler of a signal runs.
  void refuse_in_callback() const;
  [[noreturn]] void refuse_within_call() const;

  // --- Refusals -------------------------------------------------------------------------------
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
  // it. Takes the turn.
  [[noreturn]] void refuse_next(engine::Kind kind);
  // The same, for `reason`.
  [[noreturn]] void refuse_call(engine::Kind kind, const std::string& reason);
  // Both in the turn. What is not known to be a refusal is thrown as it is.
  [[noreturn]] void refuse(engine::Kind kind, const InvalidArgument& reason);
  [[noreturn]] void refuse_caught(engine::Kind kind);
  // Refuses a call whose limit is none; see foundation/base/limit.h.
  void require_limit(engine::Kind kind, const std::optional<Duration>& limit) {
    if (limit && *limit <= Duration::zero()) [[unlikely]]
      refuse_limit(kind, limit);
  }
  // From here to the end of this object's life the others count on this rank's next calls, and are
  // not to be met in different ones: what this rank cannot begin ends the communicator.
  class Bound {
   public:
    explicit Bound(Core& core) noexcept : core_(core) { core_.bound_ = true; }
    ~Bound() { core_.bound_ = false; }
    Bound(const Bound&) = delete;
    Bound& operator=(const Bound&) = delete;

   private:
    Core& core_;
  };

  // --- Waiting for what is under way: Work, and the progress thread ---------------------------
  // Moves what is under way until `operation` is done or the deadline passes.
  bool wait(Operation& operation, base::Deadline until);
  void poke();  // a bit of progress, if nobody else is at it
  // One turn of the progress thread. kAttended: it took none, as a thread of the program moves what
  // is under way. kAwaitsGpu: nothing moved, and nobody will ring when a GPU does.
  enum class Turn : std::uint8_t { kIdle, kAttended, kAwaitsGpu, kMoved, kNothingLeft };
  Turn progress() noexcept;
  // The program has let go of a Work.
  void abandon(Operation& operation) noexcept;

  // Of a Work whose call is on a stream: throws what has ended it; whether it has ended there;
  // waits for that.
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
  // The program has been told what ended this communicator, if anything has.
  void told() const noexcept;
  // A call of GPUs that the host carried has failed, with nobody to be told.
  void lose_device_call() noexcept override { lost_.store(true, std::memory_order_relaxed); }
  // As the process ends: lets calls on GPUs end, well or not, until their deadlines. Throws what
  // ended one of them and has not been told.
  virtual void finish_device_calls() {}
  // As the process ends without having closed this: compares what nobody had to compare before.
  // Throws Mismatch. Does nothing while another thread is in a call, which does not end well then.
  void compare_at_exit();
  // What this rank ends the group by.
  control::Failure own_failure(control::Cause cause, std::string_view text = {}) const noexcept;
  void miss(const Operation& operation) noexcept override;
  void confirm(int peer, std::uint64_t sequence) override;
  std::vector<RankCall> last_calls() const;
  std::vector<RankCall> recent_calls() const;
  std::string dump(const std::string& directory) const;
  // Whether a thread that closes waits for the one that is in, which gives up its wait for others.
  bool is_called_out() const noexcept { return is_called_out_.load(std::memory_order_relaxed); }

 protected:
  friend class CallGuard;
  friend class LentTurn;
  class Step;

  // What calls on GPUs add to this. They are no part of it, but for these questions.
  virtual bool awaits_gpu() const noexcept { return false; }
  virtual void look_at_device_result() noexcept {}
  // Whether others may have put on their GPUs what this rank refuses, and take its next call for
  // that before they can hear of it.
  virtual bool refuses_too_late() const noexcept { return false; }

  [[noreturn]] void raise_unusable();
  bool is_open() const noexcept { return open_.load(std::memory_order_relaxed); }
  const os::ForkGuard& forks() const noexcept { return forks_; }

  // --- Closing ----------------------------------------------------------------------------------
  // True, once: it was open, and is not any longer.
  bool begin_closing() noexcept { return open_.exchange(false); }
  // How a thread that closes gets in; kInside: it is in already, in a call whose callback closes;
  // kStuck: another one does not come out.
  enum class Closing : std::uint8_t { kEntered, kInside, kStuck };
  Closing enter_to_close() noexcept;
  void leave() noexcept { turn_.leave(); }
  // The program knows that the communicator ends, whatever comes.
  void set_told() noexcept { told_.store(true, std::memory_order_relaxed); }
  // In the turn, before this rank is seen to close. Throws Mismatch where ranks called different
  // things and this rank has not been told: a rank whose part of a call needs nobody, as that of a
  // broadcast's root, does not compare it. The last rank to come here sees what all announced.
  void compare_last_calls();
  // Ends what is under way by `cause`.
  void drop_calls(control::Cause cause) noexcept;
  void drop_engines() noexcept { engines_ = {}; }
  // Throws what has ended a call on GPUs that nobody has been told of: all others have told who
  // waits for them, or were given up by the program. `cut_short`: engines have ended some.
  void raise_untold(bool cut_short) const;

 private:
  std::exception_ptr ended_by(const control::Failure& failure) override;
  std::exception_ptr refused_by(const failure::Refusal& refusal) override;
  std::exception_ptr ended() override;
  void fail_caught(std::uint64_t sequence) noexcept override;
  void refuse_after_leaving() const;
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

  const std::shared_ptr<Surroundings> surroundings_;
  const Membership membership_;
  const os::ForkGuard& forks_;
  const std::unique_ptr<control::GroupControl> group_;
  Engines engines_;
  Tracing tracing_;
  TurnLock turn_;
  std::atomic<std::uintptr_t> stepper_{0};  // the thread within a Step, by this_thread(); 0: none
  std::atomic<bool> open_{false};  // until it is closed
  int eager_polls_ = 0;
  bool bound_ = false;  // see Bound
  Duration deadline_;
  // A member's, from `open` on.
  std::optional<Ledger> ledger_;
  std::optional<Planner> planner_;
  std::optional<failure::Inquiry> inquiry_;
  // Of whoever looks for a message again and again without waiting.
  failure::Doubt probing_;
  int probed_peer_ = 0;
  std::optional<failure::Texts> texts_;
  std::optional<live::LongWaits> long_waits_;
  std::optional<Runner> runner_;
  bool is_watched_ = false;  // by the progress thread, from `watch` until nothing is left
  // By the progress thread's last look.
  std::atomic<std::uint32_t> visits_seen_{0};
  bool awaited_gpu_ = false;
  // What the progress thread has last seen a stream wait for.
  std::weak_ptr<Operation> held_;
  std::optional<live::LongWait> held_wait_;

  std::atomic<bool> written_{false};  // the flight record
  std::atomic<bool> is_called_out_{false};
  mutable std::atomic<bool> told_{false};
  std::atomic<bool> lost_{false};  // a call on GPUs that the host carried has failed
};

// A user thread's turn on a communicator. Throws where another thread has it.
class CallGuard {
 public:
  explicit CallGuard(Core& core) : core_(core), shortly_(core.turn_.enter_shortly()) {
    if (!shortly_) enter();
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
  void enter();
  void leave() noexcept;

  Core& core_;
  const bool shortly_;
};

// A user thread's turn, lent to whoever moves calls under way for as long as this lives: for calls
// of the GPUs' driver, which may keep their caller waiting until streams go on, and these wait for
// calls under way. Meanwhile this thread touches nothing that the turn guards.
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
