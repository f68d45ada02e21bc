// The socket from which a host's ranks get their shared memory, with other clients that connect.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cstring>
#include <random>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "calls/joining/segment_handover.h"
#include "foundation/os/sockets/socket.h"
#include "hocket/error.h"

namespace hocket::joining {
namespace {

using base::Deadline;

constexpr std::chrono::seconds kWatchdog{50};
constexpr std::size_t kBytes = 4096;

class Handover : public testing::Test {
 protected:
  Handover() : segment_(os::Segment::create(kBytes)), listener_(os::UnixListener::autobind()) {
    std::memcpy(segment_.data(), "shared", 7);
  }

  // A stranger, who sends `bytes` and then hangs up.
  void intrude(std::span<const std::byte> bytes) {
    const os::Fd socket = os::connect_abstract(listener_.name(), Deadline::in(kWatchdog));
    // Hung up on, perhaps before the last byte.
    static_cast<void>(
        ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  }
  void intrude(const Ticket& ticket) { intrude(std::as_bytes(std::span(&ticket, 1))); }

  std::string fetched(int rank) {
    const auto got =
        fetch(listener_.name(), {.token = token_, .rank = rank}, 0, Deadline::in(kWatchdog));
    return reinterpret_cast<const char*>(got->data());
  }

  os::Segment segment_;
  os::UnixListener listener_;
  JobToken token_ = random_job_token();
};

TEST_F(Handover, StrangersGetNothingAndKeepNobodyOut) {
  std::thread leader([&] {
    EXPECT_NO_THROW(hand_out(segment_, listener_, token_, {1, 2, 3}, Deadline::in(kWatchdog)));
  });
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::byte> junk(random() % 100);
    for (auto& each : junk) each = static_cast<std::byte>(random());
    intrude(junk);
    JobToken wrong = token_;
    wrong[random() % wrong.size()] ^= std::byte{1};
    intrude({.token = wrong, .rank = 1});
    for (const int rank : {0, 4, -1, 1 << 30}) intrude({.token = token_, .rank = rank});
  }
  EXPECT_EQ(fetched(2), "shared");
  // A rank that has come already is a stranger, too.
  intrude({.token = token_, .rank = 2});
  EXPECT_THROW(fetch(listener_.name(), {.token = token_, .rank = 2}, 0, Deadline::in(kWatchdog)),
               RendezvousError);
  EXPECT_EQ(fetched(1), "shared");
  EXPECT_EQ(fetched(3), "shared");
  leader.join();
}

TEST_F(Handover, ASilentStrangerKeepsNobodyOut) {
  const os::Fd silent = os::connect_abstract(listener_.name(), Deadline::in(kWatchdog));
  std::thread leader([&] {
    EXPECT_NO_THROW(hand_out(segment_, listener_, token_, {1}, Deadline::in(kWatchdog)));
  });
  EXPECT_EQ(fetched(1), "shared");
  leader.join();
}

// Ranks that have connected are not hung up on while their tickets are on the way, however few
// descriptors there are.
TEST_F(Handover, RanksThatComeAtOnceNeedFewDescriptors) {
  constexpr int kRanks = 40;
  std::vector<os::Fd> sockets;
  std::set<int> waiting;
  for (int rank = 1; rank <= kRanks; ++rank) {
    sockets.push_back(os::connect_abstract(listener_.name(), Deadline::in(kWatchdog)));
    waiting.insert(rank);
  }
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = static_cast<rlim_t>(sockets.back().get() + 5);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::thread leader([&] {
    EXPECT_NO_THROW(hand_out(segment_, listener_, token_, waiting, Deadline::in(kWatchdog)));
  });
  for (int rank = 1; rank <= kRanks; ++rank) {
    const os::Fd socket = std::move(sockets[static_cast<std::size_t>(rank - 1)]);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const Ticket ticket{.token = token_, .rank = rank};
    std::uint64_t bytes = 0;
    EXPECT_NO_THROW({
      os::send_all(socket, std::as_bytes(std::span(&ticket, 1)), Deadline::in(kWatchdog));
      // Without the descriptor, which this process has no number for.
      os::receive_all(
          socket, std::as_writable_bytes(std::span(&bytes, 1)), Deadline::in(kWatchdog));
    }) << "rank "
       << rank;
    EXPECT_EQ(bytes, kBytes);
  }
  leader.join();
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(Handover, NamesWhoDoesNotCome) {
  std::thread rank([&] { EXPECT_EQ(fetched(2), "shared"); });
  try {
    hand_out(segment_, listener_, token_, {1, 2, 5}, Deadline::in(std::chrono::milliseconds(300)));
    ADD_FAILURE() << "nobody was missed";
  } catch (const RendezvousError& error) {
    EXPECT_EQ(std::string(error.what()).find("ranks 1, 5 met the others"), 0U) << error.what();
  }
  rank.join();
}

TEST_F(Handover, NamesALeaderThatIsGone) {
  const std::string name = listener_.name();
  {
    const os::UnixListener gone = std::move(listener_);
  }
  try {
    fetch(name, {.token = token_, .rank = 3}, 7, Deadline::in(kWatchdog));
    ADD_FAILURE() << "somebody answered";
  } catch (const RendezvousError& error) {
    EXPECT_EQ(std::string(error.what()).find("rank 3 got no shared memory from rank 7"), 0U)
        << error.what();
  }
}

}  // namespace
}  // namespace hocket::joining
