// The failure that ends a communicator: how this rank raises it, and whether the program has seen
// it.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calls/call/runner.h"
#include "engine/call.h"
#include "hocket/communicator.h"
#include "membership/failure/texts.h"

namespace hocket::call {

class Core;

// A part of a communicator's Core. Any thread may call `abort` and the reports.
class Failures final : public Owner, public engine::Consistency {
 public:
  explicit Failures(Core& core) noexcept : core_(core) {}
  // Makes the texts of failures. Call it once, after the group's memory was made.
  const failure::Texts& open();

  // --- Causes ---------------------------------------------------------------------------------

  void abort(const std::string& reason);
  // Returns a failure that this rank causes. Once this rank has left the job, the cause is kLeft,
  // and `cause` is ignored.
  control::Failure own(control::Cause cause, std::string_view text = {}) const noexcept;
  // Returns a failure of `operation` that this rank causes.
  control::Failure of(const Operation& operation,
                      control::Cause cause,
                      std::string_view text = {}) const noexcept;
  void confirm(int peer, std::uint64_t sequence) override;
  // Ends the group after an exception in a started call, because the other ranks wait for this
  // rank's part. Does nothing if the exception is a failure of the group.
  void fail_caught(std::uint64_t sequence) noexcept override;
  void fail_dropped(const Operation& operation) noexcept override;
  void lose_device_call() noexcept override { lost_.store(true, std::memory_order_relaxed); }

  // --- Who has seen it --------------------------------------------------------------------------

  // Notes that the program has seen the failure that ended this communicator, if there is one.
  void note_seen() const noexcept;
  // Notes that the program knows of the communicator's end, and needs no error about it.
  void set_seen() noexcept { seen_.store(true, std::memory_order_relaxed); }
  bool is_seen() const noexcept { return seen_.load(std::memory_order_relaxed); }
  // Throws the failure that ended the communicator, if it ended calls on GPUs and no caller has
  // seen it. Failures of other calls were seen by waiting callers, or the program gave the calls
  // up. `cut_short`: engines have ended some calls.
  void raise_unseen(bool cut_short) const;

  // --- Reports ----------------------------------------------------------------------------------

  std::optional<Status> status() const;
  std::vector<RankCall> last_calls() const;
  std::vector<RankCall> recent_calls() const;
  std::string dump(const std::string& directory) const;

 private:
  std::exception_ptr ended_by(const control::Failure& failure) override;
  std::exception_ptr refused_by(const failure::Refusal& refusal) override;
  std::exception_ptr ended() override;
  // Throws the failure as this rank sees it. If the rank itself has left the job, or its process
  // ends, that is the reason, and no peer is blamed.
  [[noreturn]] void raise_seen(const control::Failure& failure) const;

  Core& core_;
  std::optional<failure::Texts> texts_;  // set by `open`
  std::atomic<bool> written_{false};     // true once the flight record is written
  mutable std::atomic<bool> seen_{false};
  std::atomic<bool> lost_{false};  // a call on GPUs that the host carried has failed
};

}  // namespace hocket::call
