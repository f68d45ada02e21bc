// The pace of a thread's wait for a peer.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>

#include "calls/call/waiter.h"
#include "membership/control/host/host.h"

namespace hocket::call {
namespace {

// Returns the number of polls, each of this length, before the first look at other events.
int polls_to_the_first_look(std::chrono::microseconds each) {
  const control::HostShape shape{.ranks = 1, .stripe_bytes = 4096};
  const auto segment = std::make_shared<os::Segment>(
      os::Segment::create_private(control::HostControl::segment_bytes(shape)));
  control::HostControl::format(*segment, shape);
  control::HostControl host(segment, 0);
  host.arrive(0);
  host.processors.set_may_spin(true);
  Waiter waiter(host);
  int polls = 1;
  for (; !waiter.pause(); ++polls) std::this_thread::sleep_for(each);
  return polls;
}

// An MPI may yield the processor in each poll. On a busy machine a look after 2,048 of these would
// come after many seconds.
TEST(Waiter, LooksSoonWhereEachPollTakesLong) {
  EXPECT_LE(polls_to_the_first_look(std::chrono::microseconds(200)), 512);
}

}  // namespace
}  // namespace hocket::call
