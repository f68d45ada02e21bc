// Watches the calls that one rank has enqueued on its GPU: their deadlines, peers that die, calls
// that do not match. The progress thread looks, because the program's thread may be elsewhere.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "calls/call/periodic_task.h"
#include "engine/device_engine.h"
#include "foundation/cuda/memory.h"
#include "membership/control/group.h"
#include "membership/failure/loss.h"
#include "membership/failure/records.h"
#include "monitoring/live/long_wait.h"

namespace hocket::device {

// A resource that the communicator's thread and the progress thread share.
class DeviceWatch final : public call::PeriodicTask {
 public:
  // Returns the failure of call `sequence` with the time limit `allowed`. It names the missing
  // ranks.
  using Lateness = std::function<control::Failure(std::uint64_t sequence, Duration allowed)>;

  DeviceWatch(control::GroupControl& control,
              std::shared_ptr<const cuda::DeviceContext> device,
              live::LongWaits& long_waits,
              Lateness lateness);

  // --- The communicator's thread -------------------------------------------------------------

  // Adds a connected engine, until `forget`.
  void add(engine::DeviceEngine& engine);
  void forget(engine::DeviceEngine& engine) noexcept;
  // The numbers of a call of this rank and of a different call of another rank at the same
  // position. A value.
  struct Other {
    int member;
    std::uint64_t own, theirs;
  };
  // Announces the next call. Compares this call and earlier ones with the other ranks'
  // announcements. Returns a difference, if there is one.
  std::optional<Other> announce(const control::DeviceCall& call, Duration allowed);
  // True if this rank must wait before its next call. It is then too far ahead of its stream, or of
  // another rank that has not compared announcements which the call would overwrite.
  bool is_ahead() const noexcept;
  // The work on a stream: a call or, without a number, messages with some peers. A value.
  struct Watched {
    std::uint64_t sequence = 0;
    std::uint64_t peers = 0;  // their peer_bits
    Duration allowed{};
  };
  // Returns the bit of a member. In groups above 64 ranks two members may share a bit. Then a loss
  // of one counts as a loss of both.
  static constexpr std::uint64_t peer_bit(int member) noexcept {
    return std::uint64_t{1} << (member % 64);
  }
  // Enqueue words before and behind work on a stream, for engines that do not enforce time limits.
  void mark_begin(cuda::Stream stream, const Watched& what);
  void mark_end(cuda::Stream stream);
  // Records that work of the engine was captured into a graph, whose replays are not announced.
  void note_captured(const engine::DeviceEngine& engine) noexcept;
  // Checks at once whether an engine has ended a failed call. It must be called by a thread that
  // sees that a stream has passed a call, before it uses the result.
  void look_at_result() noexcept;
  // Returns true once, when the progress thread must be woken to watch from now on.
  bool was_asleep() noexcept;
  // True if engines were aborted while calls were running, or may have been.
  bool was_cut_short() noexcept;
  // After this, nothing of the communicator is accessed.
  void close() noexcept;

  // --- The progress thread -------------------------------------------------------------------

  base::Deadline tick() noexcept override;

 private:
  struct Launched {
    std::atomic<std::uint64_t> sequence{0};
    std::atomic<std::uint64_t> fingerprint{0};
    std::atomic<std::int64_t> allowed{0};  // ns
  };
  using Clock = base::Deadline::Clock;

  Launched& launched(std::uint64_t index) noexcept {
    return launched_[index % control::kDeviceCalls];
  }
  // Returns the full number of a call that has been announced.
  std::uint64_t sequence_of(std::uint32_t low_bits) noexcept {
    const std::uint64_t last = launched(index_.load(std::memory_order_acquire)).sequence.load();
    return last - (static_cast<std::uint32_t>(last) - low_bits);
  }
  // Returns the work of a mark. Absent if the work has ended.
  std::optional<Watched> watched(std::uint32_t mark) noexcept;
  std::uint32_t begun() const noexcept;
  std::uint32_t ended() const noexcept;
  bool pending() const noexcept;
  void look(Clock::time_point now);
  void look_at_losses(Clock::time_point now);
  void end_if_lost(const Watched& what, Clock::time_point now);
  bool look_at_problems(Clock::time_point now);
  void look_at_deadline(Clock::time_point now);
  void look_at_kernels(Clock::time_point now) noexcept;
  void look_at_wait(std::optional<live::LongWait>& wait, std::uint64_t sequence) noexcept;
  static void end(std::optional<live::LongWait>& wait, live::LongWait::End how) noexcept;
  void look_at_calls();
  control::Failure lateness_of_messages(std::uint64_t peers, Duration allowed) const;
  void fail(const control::Failure& failure) noexcept;
  void end_engines() noexcept;
  void tell_gentle_engines() noexcept;
  struct Lost {
    int member;
    failure::Loss loss;
  };
  // Returns one of the ranks that `what` needs; a rank that ended suddenly comes first.
  std::optional<Lost> find_lost(const Watched& what) const;

  std::shared_ptr<const cuda::DeviceContext> device_;
  // The words of the last mark that has begun, and of the last that has ended. `close` releases
  // them, because the last owner of this may be the progress thread, which must not wait for the
  // GPU.
  std::unique_ptr<cuda::HostBuffer> words_;
  std::array<Launched, control::kDeviceCalls> launched_;
  std::atomic<std::uint64_t> index_{0};      // position of the last announced call
  std::atomic<std::uint32_t> last_mark_{0};  // the last mark that was enqueued on a stream
  std::atomic<bool> asleep_{true};
  std::vector<std::uint64_t> compared_;  // by member: index up to which the calls agreed

  // The work of the marks that have not ended, oldest first.
  std::mutex marks_mutex_;
  std::deque<Watched> marks_;
  std::uint32_t oldest_mark_ = 1;

  std::mutex mutex_;  // guards the members below
  control::GroupControl* control_;
  live::LongWaits& long_waits_;  // not used after close
  Lateness lateness_;
  std::vector<engine::DeviceEngine*> engines_;
  bool ended_engines_ = false;
  bool cut_short_ = false;  // a call was running on a stream when the engines were ended
  bool any_gentle_ = false;
  // Graphs with work of an engine may be replayed, and the watch must end them when a peer dies.
  // Engines that abort gently are left out, because they are always told at once.
  bool may_replay_ = false;
  std::uint64_t seen_index_ = 0;
  Clock::time_point active_;
  std::uint32_t running_ = 0;  // the mark that had begun at the last look
  Clock::time_point running_since_;
  std::optional<live::LongWait> wait_;  // for the end of the work of that mark
  // The latest wait that an engine with time limits of its own reports, and the time of the wait's
  // last change.
  engine::DeviceWait device_wait_;
  Clock::time_point device_wait_changed_at_;
  std::uint32_t device_wait_call_ = 0;  // the call that `long_device_wait_` belongs to
  std::optional<live::LongWait> long_device_wait_;
  std::uint32_t losses_seen_ = 0;
  std::optional<Clock::time_point> lost_at_;     // time of the first loss of a rank
  std::optional<Clock::time_point> doubted_at_;  // time at which a possible loss was first seen
};

}  // namespace hocket::device
