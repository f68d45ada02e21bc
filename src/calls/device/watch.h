// Looks after the calls that one rank has put on its GPU: their deadlines, peers that die, calls
// that do not match. The progress thread does that while nobody's thread is at it.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "calls/call/attended.h"
#include "engine/device_engine.h"
#include "foundation/cuda/memory.h"
#include "membership/control/group.h"
#include "membership/failure/loss.h"
#include "membership/failure/records.h"
#include "monitoring/live/long_wait.h"

namespace hocket::device {

// A resource, shared by the communicator's thread and the progress thread.
class DeviceWatch final : public call::Attended {
 public:
  // Says who is missing in call `sequence`, which was allowed so long.
  using Lateness = std::function<control::Failure(std::uint64_t sequence, Duration allowed)>;

  DeviceWatch(control::GroupControl& control,
              std::shared_ptr<const cuda::DeviceContext> device,
              live::LongWaits& long_waits,
              Lateness lateness);

  // --- The communicator's thread -------------------------------------------------------------
  // An engine that has been connected, until it is `forget`ten.
  void add(engine::DeviceEngine& engine);
  void forget(engine::DeviceEngine& engine) noexcept;
  // Another call in the place of one of this rank's: the calls' numbers. A value.
  struct Other {
    int member;
    std::uint64_t own, theirs;
  };
  // Announces the next call and compares it, and those before, with what the others have announced.
  std::optional<Other> announce(const control::DeviceCall& call, Duration allowed);
  // Whether this rank is so far ahead of its stream, or of another rank whose announcements would
  // be overwritten, that it has to wait before the next call.
  bool is_ahead() const noexcept;
  // What is put on a stream: a call, or, without a number, messages with some peers. A value.
  struct Watched {
    std::uint64_t sequence = 0;
    std::uint64_t peers = 0;  // their peer_bits
    Duration allowed{};
  };
  // Of a member. Beyond 64 two may have the same, and a loss of one is taken for that of both.
  static constexpr std::uint64_t peer_bit(int member) noexcept {
    return std::uint64_t{1} << (member % 64);
  }
  // Words in front of and behind it, for engines that do not keep time themselves.
  void mark_begin(cuda::Stream stream, const Watched& what);
  void mark_end(cuda::Stream stream);
  // Something that the engine carries has gone into a graph: of its replays nobody tells.
  void note_captured(const engine::DeviceEngine& engine) noexcept;
  // Looks at once whether an engine has ended a call that had gone wrong: to be called by who sees
  // that a stream has passed it, before the result is taken for one.
  void look_at_result() noexcept;
  // True once, when the progress thread has to be woken to look from now on.
  bool was_asleep() noexcept;
  // Whether calls were ended while some were at work, or may have been.
  bool was_cut_short() noexcept;
  // From here on nothing of the communicator is touched any more.
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
  // The number of a call that has been announced.
  std::uint64_t sequence_of(std::uint32_t low_bits) noexcept {
    const std::uint64_t last = launched(index_.load(std::memory_order_acquire)).sequence.load();
    return last - (static_cast<std::uint32_t>(last) - low_bits);
  }
  // Absent: it has ended.
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
  // One of those that `what` needs, who ended suddenly before any other.
  std::optional<Lost> find_lost(const Watched& what) const;

  std::shared_ptr<const cuda::DeviceContext> device_;
  // The last mark that has begun; that has ended. Null once it is closed: whoever lets go of this
  // last may be the progress thread, which must not wait for the GPU.
  std::unique_ptr<cuda::HostBuffer> words_;
  std::array<Launched, control::kDeviceCalls> launched_;
  std::atomic<std::uint64_t> index_{0};      // of the last call
  std::atomic<std::uint32_t> last_mark_{0};  // put on a stream
  std::atomic<bool> asleep_{true};
  std::vector<std::uint64_t> compared_;  // by member: index up to which calls were alike

  // What the marks that have not ended stand for, the oldest first: as many as streams have taken.
  std::mutex marks_mutex_;
  std::deque<Watched> marks_;
  std::uint32_t oldest_mark_ = 1;

  std::mutex mutex_;  // guards what follows
  control::GroupControl* control_;
  live::LongWaits& long_waits_;  // not once it is closed
  Lateness lateness_;
  std::vector<engine::DeviceEngine*> engines_;
  bool ended_engines_ = false;
  bool cut_short_ = false;  // then, with a call under way on a stream
  bool any_gentle_ = false;
  // Replays may be under way that have to be ended where a peer dies: not by an engine that has
  // been told so at once.
  bool may_replay_ = false;
  std::uint64_t seen_index_ = 0;
  Clock::time_point active_;
  std::uint32_t running_ = 0;  // the mark that had begun at the last look
  Clock::time_point running_since_;
  std::optional<live::LongWait> wait_;  // for that mark's end
  // The same of an engine that keeps time: what it has told last, and when that was new.
  engine::DeviceWait told_;
  Clock::time_point told_at_;
  std::uint32_t told_call_ = 0;  // that `told_wait_` is for
  std::optional<live::LongWait> told_wait_;
  std::uint32_t losses_seen_ = 0;
  std::optional<Clock::time_point> lost_at_;     // when somebody was, the first time
  std::optional<Clock::time_point> doubted_at_;  // when something was first seen that may be a loss
};

}  // namespace hocket::device
