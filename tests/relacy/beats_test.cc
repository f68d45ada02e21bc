// The time that others read while the watch over it writes (foundation/base/beats.h).
#include "foundation/base/beats.h"

#include "scenario.h"

namespace hocket::base {
namespace {

// The watch has missed its beats once, misses them again, and beats, while somebody reads: the time
// stands still. Both read the same clock.
class Reading : public relacy::Program {
 public:
  static constexpr int kThreads = 2;
  static constexpr std::int64_t kFirst = 10 * Beats::kGap;
  static constexpr std::int64_t kNow = 6 * kFirst;
  void before() override {
    beats_.beat(kFirst);
    beats_.beat(3 * kFirst);
  }
  void thread(int number) override {
    if (number == 0) return beats_.beat(kNow);
    for (int i = 0; i < 2; ++i) check();
  }
  void after() override { check(); }

 private:
  void check() {
    HOCKET_CHECK(beats_.time([] { return kNow; }) == kFirst + 2 * Beats::kGap);
  }

  Beats beats_;
};

TEST(Beats, AreReadWhole) { relacy::holds_and_needs_all<Reading>({}, {}, 3'000); }

}  // namespace
}  // namespace hocket::base
