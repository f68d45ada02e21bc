// Processes other than the parent find out how a rank ended, on a busy machine too.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <thread>

#include "foundation/os/segment.h"
#include "membership/control/host/host.h"
#include "membership/failure/witness.h"

namespace hocket::failure {
namespace {

using control::HostControl;

constexpr control::HostShape kShape{.ranks = 2, .remote = 0, .stripe_bytes = 1 << 20};
constexpr int kChild = 1;

// A job of this process and a child that sleeps.
class WitnessTest : public ::testing::Test {
 protected:
  WitnessTest() {
    pid_ = ::fork();
    if (pid_ == 0) {
      const auto own = std::make_shared<os::Segment>(
          os::Segment::map(os::Fd(::dup(segment_->fd().get())), segment_->size()));
      HostControl(own, kChild).arrive(kChild);
      for (;;) ::pause();
    }
    host_->arrive(0);
    while (host_->liveness.state(kChild) == control::RankState::kAbsent) std::this_thread::yield();
  }
  ~WitnessTest() override {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  static std::shared_ptr<os::Segment> make_segment() {
    auto segment =
        std::make_shared<os::Segment>(os::Segment::create(HostControl::segment_bytes(kShape)));
    HostControl::format(*segment, kShape);
    return segment;
  }

  const std::shared_ptr<os::Segment> segment_ = make_segment();
  const std::shared_ptr<HostControl> host_ = std::make_shared<HostControl>(segment_, 0);
  Witness witness_{std::shared_ptr<control::Liveness>(host_, &host_->liveness)};
  pid_t pid_ = -1;
};

TEST_F(WitnessTest, LooksThoughTheTimeIsOver) {
  ::kill(pid_, SIGKILL);
  siginfo_t unused;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid_), &unused, WEXITED | WNOWAIT), 0);
  host_->liveness.record_death(kChild);
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  EXPECT_EQ(witness_.await_end(kChild), SIGKILL);
}

// A dying process may lose its processor after its death was recorded and before its end.
TEST_F(WitnessTest, WaitsForOneThatIsEnding) {
  host_->liveness.record_death(kChild);
  std::thread busy([pid = pid_] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ::kill(pid, SIGKILL);
  });
  EXPECT_EQ(witness_.await_end(kChild), SIGKILL);
  busy.join();
}

TEST_F(WitnessTest, DoesNotWaitForOneThatLivesOn) {
  host_->liveness.record_death(kChild);
  EXPECT_EQ(witness_.await_end(kChild), std::nullopt);
}

}  // namespace
}  // namespace hocket::failure
