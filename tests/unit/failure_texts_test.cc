// How texts name a rank: by its number, by its process if that is known, and by its machine if that
// is another one.
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "membership/failure/texts.h"

namespace hocket::failure {
namespace {

TEST(NameOfARank, LeavesOutWhatIsUnknown) {
  constexpr control::HostShape kShape{.ranks = 2, .remote = 2, .stripe_bytes = 4096};
  auto segment = std::make_shared<os::Segment>(
      os::Segment::create_private(control::HostControl::segment_bytes(kShape)));
  control::HostControl::format(*segment, kShape);
  control::HostControl host(segment, 0);
  host.arrive(0);
  host.remote_hosts.set_whereabouts({"", "", "on b (10.0.0.2:7)", "on c (10.0.0.3:7)"});
  host.remote_hosts.record(2, {.world_rank = 2, .state = control::RankState::kAlive, .pid = 4711});
  const std::string own_pid = std::to_string(::getpid());
  struct Case {
    const char* what;
    int rank, place;
    std::string name;
  };
  const Case cases[] = {
      {"of this host", 5, 0, "rank 5 (pid " + own_pid + ")"},
      {"of this host, not yet here", 6, 1, "rank 6"},
      {"of another host", 7, 2, "rank 7 (pid 4711) on b (10.0.0.2:7)"},
      {"of another host, never heard", 8, 3, "rank 8 on c (10.0.0.3:7)"},
  };
  for (const Case& each : cases) {
    EXPECT_EQ(name_of(host, each.rank, each.place), each.name) << each.what;
  }
}

}  // namespace
}  // namespace hocket::failure
