// The state that all parts of a communicator's Core share.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>

#include "calls/call/job_context.h"
#include "calls/call/ledger.h"
#include "calls/call/membership.h"
#include "calls/call/planner.h"
#include "calls/call/request.h"
#include "calls/call/runner.h"
#include "calls/call/tracing.h"
#include "calls/call/turn_lock.h"
#include "engine/engine.h"
#include "membership/control/group.h"
#include "membership/failure/inquiry.h"
#include "monitoring/live/long_wait.h"

namespace hocket::call {

// A resource. The communicator's turn guards the members that are not constant or atomic.
class CoreState {
 public:
  CoreState(const CoreState&) = delete;
  CoreState& operator=(const CoreState&) = delete;

  const Membership& membership() const noexcept { return membership_; }
  int rank() const noexcept { return membership_.rank; }
  int size() const noexcept { return membership_.size(); }
  RankAndSize place() const noexcept { return {rank(), size()}; }
  Duration deadline() const noexcept { return deadline_; }
  void set_deadline(Duration deadline) { deadline_ = deadline; }
  // True if this rank audits the calls.
  bool is_audited() const noexcept { return tracing_.audits(); }
  JobContext& job() noexcept { return *job_; }
  bool is_open() const noexcept { return open_.load(std::memory_order_relaxed); }
  const os::ForkGuard& forks() const noexcept { return forks_; }

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

 protected:
  CoreState(std::shared_ptr<JobContext> job,
            Membership membership,
            std::byte* block,
            control::GroupEntry* entry,
            Duration deadline);
  ~CoreState() = default;

  const std::shared_ptr<JobContext> job_;
  const Membership membership_;
  const os::ForkGuard& forks_;
  const std::unique_ptr<control::GroupControl> group_;
  Engines engines_;
  Tracing tracing_;
  TurnLock turn_;
  std::atomic<bool> open_{false};  // true from `open` to the close
  Duration deadline_;
  // The following members are set by `open`.
  std::optional<Ledger> ledger_;
  std::optional<Planner> planner_;
  std::optional<failure::Inquiry> inquiry_;
  std::optional<live::LongWaits> long_waits_;
  std::optional<Runner> runner_;
};

}  // namespace hocket::call
