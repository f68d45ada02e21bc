#include "calls/device/streams/watch.h"

#include <algorithm>
#include <bit>

#include "foundation/base/poll.h"
#include "membership/control/succession.h"
#include "membership/failure/loss.h"

namespace hocket::device {

using base::Deadline;

namespace {

using std::chrono::milliseconds;

// Limit of calls with marks in progress. A stream's queue holds about a thousand entries, and such
// a call takes five or more. The driver blocks a thread that fills the queue, beyond any deadline.
constexpr std::uint32_t kMostOutstanding = 128;

// Interval of looks while calls are in progress, and the time after the last call in which it
// stays.
constexpr auto kTick = milliseconds(10);
constexpr auto kActive = milliseconds(500);
// Interval of looks while a replayed graph may be running, which is not announced.
constexpr auto kIdleTick = milliseconds(50);
// The time in which a call may still succeed after the loss of a peer that it may need. The first
// is for a sudden loss, the second for a clean exit.
constexpr auto kDiedGrace = milliseconds(5);
constexpr auto kLeftGrace = milliseconds(300);

// A kernel that has reported nothing for this long counts as waiting no more. The limit is long
// because kernels may take turns on a GPU.
constexpr auto kQuiet = milliseconds(500);

constexpr std::size_t kEnded = 64;  // offset of the word for ended marks

std::uint32_t read(const std::byte* word) noexcept {
  auto* at = reinterpret_cast<std::uint32_t*>(const_cast<std::byte*>(word));
  return std::atomic_ref(*at).load(std::memory_order_acquire);
}

}  // namespace

DeviceWatch::DeviceWatch(control::GroupControl& control,
                         std::shared_ptr<const cuda::DeviceContext> device,
                         live::LongWaits& long_waits,
                         Lateness lateness)
    : device_(std::move(device)),
      words_(std::make_unique<cuda::HostBuffer>(device_, 2 * kEnded)),
      compared_(static_cast<std::size_t>(control.size())),
      control_(&control),
      long_waits_(long_waits),
      lateness_(std::move(lateness)),
      active_(Clock::now()) {}

void DeviceWatch::add(engine::DeviceEngine& engine) {
  const std::lock_guard lock(mutex_);
  engines_.push_back(&engine);
  any_gentle_ = any_gentle_ || engine.aborts_gently();
}

void DeviceWatch::forget(engine::DeviceEngine& engine) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase(engines_, &engine);
}

void DeviceWatch::note_captured(const engine::DeviceEngine& engine) noexcept {
  const std::lock_guard lock(mutex_);
  may_replay_ = may_replay_ || !engine.aborts_gently();
}

void DeviceWatch::close() noexcept {
  std::unique_ptr<cuda::HostBuffer> words;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  words.swap(words_);
  engines_.clear();
  if (control_ == nullptr) return;
  const auto how = control_->failed() ? live::LongWait::End::kFailed : live::LongWait::End::kWell;
  end(wait_, how);
  end(long_device_wait_, how);
  control_ = nullptr;
}

void DeviceWatch::look_at_result() noexcept {
  const auto is_seen = [this] {
    const std::lock_guard lock(mutex_);
    if (control_ != nullptr && control_->failed()) tell_gentle_engines();
    return control_ == nullptr || ended_engines_ || !look_at_problems(Clock::now());
  };
  base::poll_until(is_seen, base::Deadline::never(), milliseconds(1));
}

bool DeviceWatch::was_cut_short() noexcept {
  const std::lock_guard lock(mutex_);
  return cut_short_ || std::ranges::any_of(engines_, [](engine::DeviceEngine* engine) {
           return engine->problem().has_value();
         });
}

bool DeviceWatch::was_asleep() noexcept {
  return asleep_.load(std::memory_order_relaxed) && asleep_.exchange(false);
}

// --- Announcing and comparing -------------------------------------------------------------------

bool DeviceWatch::is_ahead() const noexcept {
  if (last_mark_.load(std::memory_order_relaxed) - ended() >= kMostOutstanding) return true;
  const std::uint64_t next = index_.load(std::memory_order_relaxed) + 1;
  for (int i = 0; i < control_->size(); ++i) {
    // Other hosts do not compare the announcements of this rank.
    if (i != control_->rank() && control_->is_here(i) &&
        control_->device_calls(i) + control::kDeviceCalls <= next) {
      return true;
    }
  }
  return false;
}

std::optional<DeviceWatch::Other> DeviceWatch::announce(const control::DeviceCall& call,
                                                        Duration allowed) {
  const std::uint64_t index = index_.load(std::memory_order_relaxed) + 1;
  launched(index).sequence.store(call.sequence, std::memory_order_relaxed);
  launched(index).fingerprint.store(call.fingerprint, std::memory_order_relaxed);
  launched(index).allowed.store(allowed.count(), std::memory_order_relaxed);
  index_.store(index, std::memory_order_release);
  control_->announce_device(index, call);
  for (int i = 0; i < control_->size(); ++i) {
    if (i == control_->rank()) continue;
    const std::uint64_t common = std::min(index, control_->device_calls(i));
    auto& compared = compared_[static_cast<std::size_t>(i)];
    if (common <= compared) continue;
    compared = common;
    const control::DeviceCall theirs = control_->device_call(i, common);
    const control::DeviceCall own{
        .sequence = launched(common).sequence.load(std::memory_order_relaxed),
        .fingerprint = launched(common).fingerprint.load(std::memory_order_relaxed)};
    if (theirs == own) continue;
    return Other{.member = i, .own = own.sequence, .theirs = theirs.sequence};
  }
  return std::nullopt;
}

// --- Words around a call ------------------------------------------------------------------------

std::uint32_t DeviceWatch::begun() const noexcept { return read(words_->data()); }
std::uint32_t DeviceWatch::ended() const noexcept { return read(words_->data() + kEnded); }
bool DeviceWatch::pending() const noexcept {
  return ended() != last_mark_.load(std::memory_order_acquire);
}

std::optional<DeviceWatch::Watched> DeviceWatch::watched(std::uint32_t mark) noexcept {
  const std::lock_guard lock(marks_mutex_);
  const std::uint32_t place = mark - oldest_mark_;
  if (place >= marks_.size()) return std::nullopt;
  return marks_[place];
}

void DeviceWatch::mark_begin(cuda::Stream stream, const Watched& what) {
  const std::uint32_t mark = last_mark_.load(std::memory_order_relaxed) + 1;
  {
    const std::lock_guard lock(marks_mutex_);
    while (!marks_.empty() && static_cast<std::int32_t>(ended() - oldest_mark_) >= 0) {
      marks_.pop_front();
      ++oldest_mark_;
    }
    marks_.push_back(what);
  }
  last_mark_.store(mark, std::memory_order_release);
  const cuda::Driver& driver = device_->driver();
  cuda::check(driver,
              driver.stream_write_value32(stream, words_->device_address(), mark, 0),
              "put a word on the stream");
}

void DeviceWatch::mark_end(cuda::Stream stream) {
  const cuda::Driver& driver = device_->driver();
  const std::uint32_t mark = last_mark_.load(std::memory_order_relaxed);
  cuda::check(driver,
              driver.stream_write_value32(stream, words_->device_address() + kEnded, mark, 0),
              "put a word on the stream");
}

// --- Looking ------------------------------------------------------------------------------------

Deadline DeviceWatch::tick() noexcept {
  const std::lock_guard lock(mutex_);
  if (control_ == nullptr) return Deadline::never();
  const auto now = Clock::now();
  try {
    look(now);
  } catch (...) {
    fail({.cause = control::Cause::kDevice,
          .reporter = control_->rank(),
          .culprit = control_->rank(),
          .text = "an error ended the watch over its GPU"});
  }
  if (ended_engines_) return Deadline::never();
  const std::uint64_t index = index_.load(std::memory_order_acquire);
  const bool hurries = lost_at_ && now - *lost_at_ < kLeftGrace;
  if (index != seen_index_ || pending() || hurries) active_ = now;
  seen_index_ = index;
  if (now - active_ < kActive) return Deadline::at(now + (hurries ? milliseconds(1) : kTick));
  if (any_gentle_ || may_replay_) return Deadline::at(now + kIdleTick);
  asleep_.store(true);
  // A call that was announced meanwhile has not seen `asleep_`, and has not woken this thread.
  if (index_.load(std::memory_order_seq_cst) != index) return Deadline::at(now);
  return Deadline::never();
}

void DeviceWatch::look(Clock::time_point now) {
  if (ended_engines_) return;
  if (control_->failed()) return end_engines();
  // Ranks of other hosts report their calls only when they are asked.
  if (pending()) control_->ask();
  look_at_losses(now);
  look_at_problems(now);
  look_at_deadline(now);
  look_at_kernels(now);
  look_at_calls();
}

void DeviceWatch::fail(const control::Failure& failure) noexcept {
  control_->fail(failure);
  end_engines();
}

void DeviceWatch::end_engines() noexcept {
  if (ended_engines_) return;
  ended_engines_ = true;
  end(wait_, live::LongWait::End::kFailed);
  end(long_device_wait_, live::LongWait::End::kFailed);
  cut_short_ = pending();
  for (engine::DeviceEngine* engine : engines_) engine->abort();
}

void DeviceWatch::tell_gentle_engines() noexcept {
  for (engine::DeviceEngine* engine : engines_) {
    if (engine->aborts_gently()) engine->abort();
  }
}

std::optional<DeviceWatch::Lost> DeviceWatch::find_lost(const Watched& what) const {
  const control::Succession succession(*control_);
  std::optional<Lost> found;
  for (int i = 0; i < control_->size(); ++i) {
    if (i == control_->rank()) continue;
    if (what.peers != 0 && (what.peers & peer_bit(i)) == 0) continue;
    const auto loss = failure::loss_of(*control_, succession, i);
    if (!loss || (found && !loss->sudden())) continue;
    found = {i, *loss};
    if (loss->sudden()) break;
  }
  return found;
}

// Engines whose abort spares calls that need no peer are aborted at once. With other engines, a
// call that needs no peer any more gets time to end first.
void DeviceWatch::look_at_losses(Clock::time_point now) {
  const std::uint32_t losses = control_->host().liveness.losses();
  if (losses != losses_seen_) {
    losses_seen_ = losses;
    if (!find_lost({})) return;
    lost_at_ = now;
    tell_gentle_engines();
  }
  if (!lost_at_) return;
  if (const auto what = pending() ? watched(ended() + 1) : std::nullopt) end_if_lost(*what, now);
  if (ended_engines_ || !may_replay_) return;
  // A replay may need the rank that died. A rank that left cleanly had ended its own replay before.
  const Watched any{.sequence = launched(index_.load(std::memory_order_acquire)).sequence.load()};
  if (const auto lost = find_lost({}); lost && lost->loss.sudden()) end_if_lost(any, now);
}

void DeviceWatch::end_if_lost(const Watched& what, Clock::time_point now) {
  const auto lost = find_lost(what);
  if (!lost || now - *lost_at_ < (lost->loss.sudden() ? kDiedGrace : kLeftGrace)) return;
  const auto own = control_->find(control_->rank(), what.sequence);
  fail({.cause = lost->loss.cause,
        .reporter = control_->rank(),
        .culprit = lost->member,
        .sequence = what.sequence,
        .signature = own ? own->signature : engine::Signature{}});
}

// Fails the group if an engine has a problem. Returns true if its cause may be a peer's death that
// is not known yet.
bool DeviceWatch::look_at_problems(Clock::time_point now) {
  bool doubts = false;
  for (engine::DeviceEngine* engine : engines_) {
    const auto problem = engine->problem();
    if (!problem) continue;
    const std::uint64_t sequence = launched(index_.load(std::memory_order_acquire)).sequence.load();
    if (const auto lost = find_lost({})) {
      fail({.cause = lost->loss.cause,
            .reporter = control_->rank(),
            .culprit = lost->member,
            .sequence = sequence});
    } else if (problem->maybe_loss && now - doubted_at_.value_or(now) < engine::kLossDoubt) {
      if (!doubted_at_) doubted_at_ = now;
      doubts = true;
      continue;
    } else if (problem->code == ErrorCode::kDeadlineExceeded && problem->of_messages) {
      fail(lateness_of_messages(problem->missing, problem->allowed));
    } else if (problem->code == ErrorCode::kDeadlineExceeded) {
      control::Failure failure = lateness_(
          sequence, Duration(launched(index_.load(std::memory_order_acquire)).allowed.load()));
      failure.missing |= problem->missing;
      fail(failure);
    } else {
      fail({.cause = problem->code == ErrorCode::kDevice ? control::Cause::kDevice
                                                         : control::Cause::kEngine,
            .reporter = control_->rank(),
            .culprit = control_->rank(),
            .sequence = sequence,
            .text = problem->text});
    }
    return false;
  }
  return doubts;
}

void DeviceWatch::look_at_deadline(Clock::time_point now) {
  const std::uint32_t done = ended();
  const std::uint32_t started = begun();
  if (done == started || !pending()) {
    running_ = 0;
    return end(wait_, live::LongWait::End::kWell);
  }
  // The last mark that began belongs to the running call. Earlier calls on the stream have ended.
  if (started != running_) {
    running_ = started;
    running_since_ = now;
    end(wait_, live::LongWait::End::kWell);
  }
  const auto what = watched(started);
  if (what && what->sequence != 0) look_at_wait(wait_, what->sequence);
  if (!what || what->allowed == kForever || now - running_since_ < what->allowed) return;
  fail(what->sequence != 0 ? lateness_(what->sequence, what->allowed)
                           : lateness_of_messages(what->peers, what->allowed));
}

void DeviceWatch::end(std::optional<live::LongWait>& wait, live::LongWait::End how) noexcept {
  if (!wait) return;
  wait->over(how);
  wait.reset();
}

// Warns of a long wait, because the program may wait for the stream without any message. For
// messages between GPUs the host warns as well: see StreamWaits::look_at_streams.
void DeviceWatch::look_at_wait(std::optional<live::LongWait>& wait,
                               std::uint64_t sequence) noexcept {
  if (!wait) wait.emplace(long_waits_, live::LongWait::Of::kStream);
  const auto own = control_->find(control_->rank(), sequence);
  wait->look({.sequence = sequence}, own ? own->signature : engine::Signature{});
}

// Warns of long waits of engines that enforce time limits. Only the device knows these waits.
void DeviceWatch::look_at_kernels(Clock::time_point now) noexcept {
  for (engine::DeviceEngine* engine : engines_) {
    const auto found = engine->waits();
    if (!found) continue;
    if (*found != device_wait_) device_wait_changed_at_ = now;
    device_wait_ = *found;
    break;  // only one of a communicator's engines reports
  }
  const bool waits = device_wait_.call != 0 && now - device_wait_changed_at_ < kQuiet;
  if (long_device_wait_ && (!waits || device_wait_.call != device_wait_call_)) {
    end(long_device_wait_, live::LongWait::End::kWell);
  }
  if (!waits) return;
  device_wait_call_ = device_wait_.call;
  look_at_wait(long_device_wait_, sequence_of(device_wait_call_));
}

control::Failure DeviceWatch::lateness_of_messages(std::uint64_t peers, Duration allowed) const {
  return {.cause = control::Cause::kLate,
          .reporter = control_->rank(),
          .culprit = peers == 0 ? -1 : std::countr_zero(peers),
          .missing = peers,
          .text = "messages between GPUs did not finish within " + base::in_seconds(allowed)};
}

// Compares calls here as well. The communicator's thread may compare them too late for ranks that
// wait on their GPUs for another call, or for a call that was refused.
void DeviceWatch::look_at_calls() {
  const std::uint64_t last = index_.load(std::memory_order_acquire);
  if (last == 0) return;
  const std::uint64_t first = last > control::kRecords ? last - control::kRecords + 1 : 1;
  for (std::uint64_t index = first; index <= last; ++index) {
    const std::uint64_t sequence = launched(index).sequence.load(std::memory_order_relaxed);
    const auto own = control_->find(control_->rank(), sequence);
    if (!own || own->refused) continue;
    for (int i = 0; i < control_->size(); ++i) {
      const auto theirs = i == control_->rank() ? std::nullopt : control_->find(i, sequence);
      if (!theirs || (!theirs->refused && theirs->signature == own->signature)) continue;
      return fail(theirs->refused ? failure::refused_on_gpu(*control_, i, sequence)
                                  : failure::difference(*control_, i, sequence));
    }
  }
}

}  // namespace hocket::device
