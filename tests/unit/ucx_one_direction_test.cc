// UCX gets one direction of a connection at a time, and what depends on it.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <set>
#include <utility>
#include <vector>

#include "engines/ucx/library.h"
#include "engines/ucx/one_direction.h"
#include "foundation/os/fd.h"

namespace hocket::engines::ucx {
namespace {

constexpr std::uint32_t kIn = EPOLLIN;
constexpr std::uint32_t kOut = EPOLLOUT;

// A socket with room to send and, if `readable`, something to receive.
struct Connection {
  explicit Connection(bool readable) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    near = os::Fd(ends[0]);
    far = os::Fd(ends[1]);
    EXPECT_EQ(::write(far.get(), "x", readable ? 1 : 0), readable ? 1 : 0);
  }
  os::Fd near;
  os::Fd far;
};

// Three connections with events in both directions, in this, and in both directions.
class OneDirection : public testing::Test {
 protected:
  OneDirection() {
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      epoll_event event{};
      event.events = kIn | kOut;
      event.data.u64 = i;
      EXPECT_EQ(::epoll_ctl(set_.get(), EPOLL_CTL_ADD, connections_[i].near.get(), &event), 0);
    }
  }
  using Events = std::vector<std::pair<std::uint64_t, std::uint32_t>>;
  Events wait(int most) {
    std::array<epoll_event, 16> raw{};
    const int count = wait_for_one_direction(set_.get(), raw.data(), most, 0);
    EXPECT_LE(count, most);
    Events events;
    for (int i = 0; i < count; ++i) {
      const auto& event = raw.at(static_cast<std::size_t>(i));
      events.emplace_back(event.data.u64, event.events);
    }
    return events;
  }

  std::array<Connection, 3> connections_{Connection(true), Connection(false), Connection(true)};
  os::Fd set_{::epoll_create1(EPOLL_CLOEXEC)};
};

TEST_F(OneDirection, EachDirectionHasItsTurn) {
  std::set<std::pair<std::uint64_t, std::uint32_t>> seen;
  for (int turn = 0; turn < 1000; ++turn) {
    const Events events = wait(16);
    ASSERT_EQ(events.size(), connections_.size());
    seen.insert(events.begin(), events.end());
  }
  EXPECT_EQ(seen, (decltype(seen){{0, kIn}, {0, kOut}, {1, kOut}, {2, kIn}, {2, kOut}}));
}

// Two users who take turns in one thread.
TEST_F(OneDirection, ASecondUserTakesNoTurnAway) {
  std::set<std::uint32_t> seen;
  for (int turn = 0; turn < 1000; ++turn) {
    seen.insert(wait(16).front().second);
    wait(16);
  }
  EXPECT_EQ(seen, (decltype(seen){kIn, kOut}));
}

TEST_F(OneDirection, ABrokenConnectionIsReceivedFrom) {
  for (Connection& connection : connections_) connection.far.reset();
  const std::uint32_t broken = kIn | EPOLLHUP;
  EXPECT_EQ(wait(16), (Events{{0, broken}, {1, broken}, {2, broken}}));
  EXPECT_EQ(wait(1).front().second, broken);
}

TEST_F(OneDirection, OneEventIsOneDirection) {
  for (int turn = 0; turn < 100; ++turn) EXPECT_NE(wait(1).front().second, kIn | kOut);
}

// UCX's own loop over events, which libucx-dev does not declare.
TEST_F(OneDirection, UcxHandlesOneDirection) {
  const FoundUcx found = UcxLibrary::find();
  if (!found.library) GTEST_SKIP() << found.why_not;
  Dl_info ucs{};
  ASSERT_NE(::dladdr(reinterpret_cast<const void*>(found.library->status_string), &ucs), 0);
  void* library = ::dlopen(ucs.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  struct Set;
  using Handler = void (*)(void* data, int events, void* argument);
  const auto look = [&](const char* name) { return ::dlsym(library, name); };
  const auto create =
      reinterpret_cast<UcsStatus (*)(Set**, int)>(look("ucs_event_set_create_from_fd"));
  const auto wait = reinterpret_cast<UcsStatus (*)(Set*, unsigned*, int, Handler, void*)>(
      look("ucs_event_set_wait"));
  ASSERT_TRUE(create != nullptr && wait != nullptr);
  Set* set = nullptr;
  ASSERT_EQ(create(&set, set_.get()), UcsStatus::kOk);
  Events events;
  unsigned most = 16;
  const Handler note = [](void* data, int which, void* argument) {
    constexpr int kRead = 1;
    constexpr int kWrite = 2;
    const auto direction = (which & kRead ? kIn : 0) | (which & kWrite ? kOut : 0);
    static_cast<Events*>(argument)->emplace_back(reinterpret_cast<std::uint64_t>(data), direction);
  };
  for (int turn = 0; turn < 100; ++turn) {
    ASSERT_EQ(wait(set, &most, 0, note, &events), UcsStatus::kOk);
    for (const auto& [connection, direction] : events) EXPECT_NE(direction, kIn | kOut);
    EXPECT_EQ(std::exchange(events, {}).size(), connections_.size());
  }
}

}  // namespace
}  // namespace hocket::engines::ucx
