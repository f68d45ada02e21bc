#include "calls/joining/attendance.h"

#include <chrono>

#include "foundation/base/deadline.h"
#include "foundation/base/poll.h"
#include "hocket/error.h"

namespace hocket::joining {
namespace {

// Time limit for the store to report why a rank was lost. It reports this once it knows how the
// process ended.
constexpr std::chrono::milliseconds kWaitForReason{1000};
constexpr std::chrono::milliseconds kForLatecomers{300};

}  // namespace

Attendance::Attendance(std::shared_ptr<rendezvous::MemberStore> store,
                       const LaunchInfo& launch,
                       bool serves)
    : store_(std::move(store)),
      serves_(serves),
      server_(launch.rank_zero_serves ? "; rank 0 serves it: see its output" : "") {}

Attendance::~Attendance() {
  if (store_) store_->end_watch();
}

void Attendance::look() const {
  if (!store_) return;
  const auto why = store_->why_lost();
  if (!why) return;
  const bool is_store = why->starts_with("the store");
  throw RendezvousError(*why + (is_store ? server_ : "; see its output"));
}

void Attendance::look_for_reason() const {
  const auto looks = [this] {
    look();
    return false;
  };
  base::poll_until(looks, base::Deadline::in(kWaitForReason), std::chrono::milliseconds(5));
}

void Attendance::withdraw(const std::string& reason) noexcept {
  if (!store_) return;
  if (!known_to_all_) store_->withdraw(reason);
  if (!serves_) return;
  const auto never = [] { return false; };
  base::poll_until(never, base::Deadline::in(kForLatecomers), std::chrono::milliseconds(20));
}

}  // namespace hocket::joining
