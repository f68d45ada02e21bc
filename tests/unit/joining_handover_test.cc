// The socket from which a host's ranks get their shared memory, against whoever else connects.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "hocket/error.h"
#include "joining/segment_handover.h"
#include "os/sockets/socket.h"

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
  { const os::UnixListener gone = std::move(listener_); }
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
