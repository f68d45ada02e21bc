// The lock of a communicator (calls/call/turn_lock.h).
#include "calls/call/turn_lock.h"

#include "foundation/base/atomic.h"
#include "scenario.h"
#include "system.h"

namespace hocket::call {
namespace {

// One thread comes repeatedly, and gets the fast path if there are fences. Others come beside it.
template <bool kFences, int kNumber>
class Comings : public relacy::Program {
 public:
  static constexpr int kThreads = kNumber;
  Comings() { relacy::has_heavy_fence = kFences; }
  void before() override {
    for (int i = 0; i < 16; ++i) {
      HOCKET_CHECK(lock_.try_enter(TurnLock::Who::kUser));
      lock_.leave_quietly();
    }
    HOCKET_CHECK(lock_.enter_fast() == kFences);
    if (kFences) lock_.leave_fast();
  }
  void thread(int number) override {
    if (number == 0) {
      for (int i = 0; i < 2; ++i) come_as_user();
    } else {
      come(number == kThreads - 1 ? TurnLock::Who::kUser : TurnLock::Who::kProgress);
    }
  }
  void after() override { HOCKET_CHECK(visits_ == kThreads + 1); }

 private:
  void work() {
    const int before = visits_;
    relacy::yield();
    visits_ = before + 1;
  }
  void come_as_user() {
    if (lock_.enter_fast()) {
      work();
      lock_.leave_fast();
      return;
    }
    while (!lock_.try_enter(TurnLock::Who::kUser)) {
      HOCKET_CHECK(!lock_.is_user_here());
      relacy::yield();
    }
    HOCKET_CHECK(lock_.is_user_here());
    work();
    lock_.leave_quietly();
    HOCKET_CHECK(!lock_.is_user_here());
  }
  void come(TurnLock::Who who) {
    while (!lock_.try_enter(who)) {
      HOCKET_CHECK(!lock_.is_user_here());
      relacy::yield();
    }
    HOCKET_CHECK(lock_.is_progress() == (who == TurnLock::Who::kProgress));
    HOCKET_CHECK(who != TurnLock::Who::kUser || lock_.is_user_here());
    work();
    lock_.leave();
    HOCKET_CHECK(!lock_.is_user_here());
  }

  TurnLock lock_{kFences};
  base::NonAtomic<int> visits_ = 0;  // only by the thread inside
};

// Every visit makes a favourite. A former favourite fails to enter while the next one is inside,
// and a third thread comes.
class Heirs : public relacy::Program {
 public:
  static constexpr int kThreads = 3;
  Heirs() { relacy::has_heavy_fence = true; }
  void thread(int number) override {
    for (int i = 0; i < (number < 2 ? 2 : 1); ++i) come();
  }
  void after() override { HOCKET_CHECK(visits_ == 5); }

 private:
  void come() {
    while (true) {
      if (lock_.enter_fast()) {
        work();
        return lock_.leave_fast();
      }
      if (lock_.try_enter(TurnLock::Who::kUser)) {
        work();
        return lock_.leave_quietly();
      }
      relacy::yield();
    }
  }
  void work() {
    const int before = visits_;
    relacy::yield();
    visits_ = before + 1;
  }

  TurnLock lock_{true, 1};
  base::NonAtomic<int> visits_ = 0;  // only by the thread inside
};

const relacy::Harmless kNoFastPath = {{"is_one_inside load", "nobody is inside by the fast path"},
                                      {"try_enter load", "nobody lends its place here"}};

// It asked for the favourite first, so that what it did before was before the other's fence, too.
const relacy::Harmless kNothingDone = {{"enter_fast store", "the favourite came in vain"},
                                       {"try_enter load", "nobody lends its place here"}};

TEST(TurnLock, OneAtATimeWithTheFastPath) {
  relacy::holds_and_needs_all<Comings<true, 2>>(kNothingDone, {}, 1'000);
}

TEST(TurnLock, OneAtATimeAmongThree) {
  relacy::holds_and_needs_all<Comings<true, 3>>(kNothingDone, {}, 1'000);
}

TEST(TurnLock, WhoComesInVainTakesNobodysMark) {
  const relacy::Harmless may_be_left_out = {
      {"has_slot store", "no favourite is without one"},
      {"leave_quietly store", "without a favourite all take the slow path"},
      {"try_enter store", "nobody asks who the user is"},
      {"TurnLock::leave store", "nobody asks who the user is"}};
  relacy::holds_and_needs_all<Heirs>(kNothingDone, may_be_left_out, 2'000);
}

TEST(TurnLock, OneAtATimeWithoutHeavyFences) {
  relacy::holds_and_needs_all<Comings<false, 2>>(kNoFastPath, {}, 1'000);
}

}  // namespace
}  // namespace hocket::call
