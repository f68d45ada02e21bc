// The common behaviour of every store.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "foundation/base/lookout.h"
#include "foundation/base/poll.h"
#include "hocket/error.h"
#include "hocket/interrupt.h"
#include "hocket/store.h"
#include "membership/rendezvous/wire/establish.h"
#include "rendezvous_stores.h"

namespace hocket {
namespace {

using testing::in_threads;
using testing::kPatience;
using testing::kShort;
using testing::message_of;
using namespace std::chrono_literals;

// A store's home: gives each rank its own way to it.
struct Home {
  std::shared_ptr<StoreServer> server;
  std::function<std::shared_ptr<Store>(int rank)> open;
};

Home served(StoreServer::Options options) {
  options.job = "test job";
  options.epoch = 3;
  options.size = 64;
  auto server = std::make_shared<StoreServer>(options);
  return {server, [server, options](int rank) {
            return connect_store(testing::client_of(*server, options, rank));
          }};
}

Home memory_home() {
  return {nullptr, [store = make_memory_store()](int) { return store; }};
}

Home prefix_home() {
  const Home inner = served({.key = Key::generate()});
  return {inner.server, [inner](int rank) { return make_prefix_store(inner.open(rank), "part/"); }};
}

class StoreTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const std::string form = GetParam();
    if (form == "memory") home_ = memory_home();
    if (form == "prefix") home_ = prefix_home();
    if (form == "tcp") home_ = served({.key = Key::generate()});
    if (form == "unix") home_ = served({.address = testing::unique_unix_address()});
    if (form == "unix_key") {
      home_ = served({.address = testing::unique_unix_address(), .key = Key::generate()});
    }
    if (form == "open") home_ = served({.trust_network = true});
    if (form == "tls") {
      const auto address = testing::outside_address();
      if (!address) GTEST_SKIP() << "this machine has no address but loopback";
      home_ = served({.address = *address, .key = Key::generate()});
    }
  }

  Home home_;
};

std::string value_of(int rank, int round = 0) {
  return "rank " + std::to_string(rank) + " round " + std::to_string(round);
}

TEST_P(StoreTest, SetsAndGets) {
  const auto store = home_.open(0);
  store->set("a", as_bytes("one"));
  EXPECT_EQ(to_string(store->get("a", kPatience)), "one");
  store->set("a", as_bytes("two"));
  EXPECT_EQ(to_string(store->get("a", kPatience)), "two");
  EXPECT_EQ(to_string(store->try_get("a").value()), "two");
  EXPECT_EQ(store->try_get("b"), std::nullopt);
  store->set("empty", {});
  EXPECT_EQ(store->get("empty", kPatience), Bytes());
}

TEST_P(StoreTest, CarriesLargeValues) {
  const auto store = home_.open(0);
  const auto other = home_.open(1);
  Bytes large(kMaxValueBytes);
  for (std::size_t i = 0; i < large.size(); ++i)
    large[i] = static_cast<std::byte>(i * 31 + i / 251);
  store->set("large", large);
  EXPECT_TRUE(other->get("large", kPatience) == large);
  large.push_back(std::byte{});
  EXPECT_THROW(store->set("large", large), InvalidArgument);
  EXPECT_THROW(store->set(std::string(kMaxKeyBytes + 1, 'k'), {}), InvalidArgument);
  EXPECT_THROW(store->set("", {}), InvalidArgument);
}

TEST_P(StoreTest, GetWaitsForAnotherRank) {
  const auto store = home_.open(0);
  const auto other = home_.open(1);
  std::thread setter([&other] { other->set("late", as_bytes("here")); });
  EXPECT_EQ(to_string(store->get("late", kPatience)), "here");
  setter.join();
}

TEST_P(StoreTest, GetNamesTheKeyAtTheDeadline) {
  const auto store = home_.open(0);
  const auto message = message_of([&store] { store->get("never", kShort); });
  EXPECT_NE(message.find("never"), std::string::npos) << message;
  EXPECT_NE(message.find("0.03 s"), std::string::npos) << message;
  // The store still works.
  store->set("never", as_bytes("now"));
  EXPECT_EQ(to_string(store->get("never", kPatience)), "now");
}

TEST_P(StoreTest, WaitListsMissingKeysAlone) {
  const auto store = home_.open(0);
  store->set("k1", as_bytes("x"));
  const std::vector<std::string> keys = {"k1", "k2", "k3"};
  const auto message = message_of([&] { store->wait(keys, kShort); });
  EXPECT_EQ(message.find("k1"), std::string::npos) << message;
  EXPECT_NE(message.find("k2, "), std::string::npos) << message;
  EXPECT_NE(message.find("k3"), std::string::npos) << message;
  std::thread setter([other = home_.open(1)] {
    other->set("k3", {});
    other->set("k2", {});
  });
  store->wait(keys, kPatience);
  setter.join();
  store->wait({}, kShort);
}

TEST_P(StoreTest, ManyMissingKeysAreCounted) {
  const auto store = home_.open(0);
  std::vector<std::string> keys;
  for (int i = 0; i < 200; ++i) keys.push_back("many" + std::to_string(i));
  const auto message = message_of([&] { store->wait(keys, kShort); });
  EXPECT_NE(message.find("136 more"), std::string::npos) << message;
}

TEST_P(StoreTest, Adds) {
  const auto store = home_.open(0);
  EXPECT_EQ(store->add("n", 5), 5);
  EXPECT_EQ(store->add("n", -7), -2);
  EXPECT_EQ(to_string(store->get("n", kPatience)), "-2");
  store->set("text", as_bytes("12x"));
  EXPECT_THROW(store->add("text", 1), RendezvousError);
  store->add("big", std::numeric_limits<std::int64_t>::max());
  EXPECT_THROW(store->add("big", 1), RendezvousError);
}

TEST_P(StoreTest, AddsFromManyThreads) {
  std::atomic<std::int64_t> last = 0;
  in_threads(8, [&](int rank) {
    const auto store = home_.open(rank);
    std::set<std::int64_t> seen;
    for (int i = 0; i < 50; ++i) {
      const auto value = store->add("count", 1);
      EXPECT_TRUE(seen.insert(value).second);
      if (value == 400) last = value;
    }
  });
  EXPECT_EQ(last, 400);
}

TEST_P(StoreTest, ComparesAndSets) {
  const auto store = home_.open(0);
  EXPECT_EQ(store->compare_and_set("c", std::nullopt, as_bytes("one")), std::nullopt);
  EXPECT_EQ(to_string(store->compare_and_set("c", std::nullopt, as_bytes("no")).value()), "one");
  EXPECT_EQ(to_string(store->compare_and_set("c", as_bytes("zero"), as_bytes("no")).value()),
            "one");
  EXPECT_EQ(to_string(store->compare_and_set("c", as_bytes("one"), as_bytes("two")).value()),
            "one");
  EXPECT_EQ(to_string(store->get("c", kPatience)), "two");
  EXPECT_EQ(store->compare_and_set("d", as_bytes("x"), as_bytes("no")), std::nullopt);
  EXPECT_EQ(store->try_get("d"), std::nullopt);
}

TEST_P(StoreTest, OneWinsAComparison) {
  std::atomic<int> winners = 0;
  in_threads(8, [&](int rank) {
    const auto store = home_.open(rank);
    if (!store->compare_and_set("leader", std::nullopt, as_bytes(value_of(rank)))) ++winners;
  });
  EXPECT_EQ(winners, 1);
}

TEST_P(StoreTest, Erases) {
  const auto store = home_.open(0);
  store->set("e", as_bytes("x"));
  EXPECT_TRUE(store->erase("e"));
  EXPECT_FALSE(store->erase("e"));
  EXPECT_EQ(store->try_get("e"), std::nullopt);
}

TEST_P(StoreTest, ExchangesInRankOrderAgainAndAgain) {
  constexpr int kRanks = 7;
  in_threads(kRanks, [&](int rank) {
    const auto store = home_.open(rank);
    for (int round = 0; round < 20; ++round) {
      const auto all =
          store->exchange("x", rank, kRanks, as_bytes(value_of(rank, round)), kPatience);
      ASSERT_EQ(all.size(), std::size_t{kRanks});
      for (int r = 0; r < kRanks; ++r) {
        EXPECT_EQ(to_string(all[static_cast<std::size_t>(r)]), value_of(r, round));
      }
    }
  });
}

TEST_P(StoreTest, BarrierHoldsEverybodyBack) {
  constexpr int kRanks = 5;
  std::atomic<int> arrived = 0;
  in_threads(kRanks, [&](int rank) {
    const auto store = home_.open(rank);
    for (int round = 1; round <= 20; ++round) {
      ++arrived;
      store->barrier("b", kRanks, rank, kPatience);
      EXPECT_GE(arrived.load(), kRanks * round);
      store->barrier("b", kRanks, rank, kPatience);
    }
  });
}

TEST_P(StoreTest, ExchangeNamesMissingRanks) {
  in_threads(4, [&](int i) {
    const int rank = i < 2 ? i : i + 1;  // 0, 1, 3, 4: ranks 2 and 5 never come
    const auto store = home_.open(rank);
    const auto message =
        message_of([&] { store->exchange("x", rank, 6, as_bytes(value_of(rank)), 300ms); });
    EXPECT_TRUE(message.starts_with("ranks 2, 5 had not joined \"")) << message;
    EXPECT_NE(message.find("x\" after 0.3 s"), std::string::npos) << message;
  });
}

TEST_P(StoreTest, BarrierNamesTheMissingRank) {
  const auto store = home_.open(1);
  const auto message = message_of([&] { store->barrier("gate", 3, 1, kShort); });
  EXPECT_TRUE(message.starts_with("ranks 0, 2 had not reached the barrier \"")) << message;
}

std::atomic<bool> stop_wanted{false};

TEST_P(StoreTest, WaitsCanBeInterrupted) {
  const auto store = home_.open(0);
  set_interrupt_check([] { return stop_wanted.load(); });
  stop_wanted = true;
  const auto expect_aborted = [](const std::function<void()>& wait) {
    try {
      wait();
      ADD_FAILURE() << "the wait was not interrupted";
    } catch (const Aborted& error) {
      EXPECT_NE(std::string(error.what()).find("was interrupted"), std::string::npos);
    }
  };
  expect_aborted([&] { store->get("nobody sets it", kPatience); });
  expect_aborted([&] { store->wait(std::vector<std::string>{"a", "b"}, kForever); });
  expect_aborted([&] { store->exchange("x", 0, 2, {}, kPatience); });
  stop_wanted = false;
  store->set("key", as_bytes("value"));
  EXPECT_EQ(to_string(store->get("key", kPatience)), "value");
  set_interrupt_check(nullptr);
}

TEST_P(StoreTest, ACallThatRanOutOfTimeCountsAsNotMade) {
  const auto first = home_.open(0);
  const auto second = home_.open(1);
  EXPECT_THROW(first->exchange("x", 0, 2, as_bytes("old"), kShort), RendezvousError);
  EXPECT_THROW(second->exchange("x", 1, 2, as_bytes("other"), kShort), RendezvousError);
  std::thread late([&first] { first->exchange("x", 0, 2, as_bytes("new"), kPatience); });
  const auto all = second->exchange("x", 1, 2, as_bytes("other"), kPatience);
  late.join();
  EXPECT_EQ(to_string(all[0]), "new");
  EXPECT_EQ(to_string(all[1]), "other");
}

TEST_P(StoreTest, WhoGaveUpIsToldApartFromWhoNeverCame) {
  const auto hasty = home_.open(0);
  const auto patient = home_.open(1);
  std::string message;
  std::thread waiting([&] {
    message = message_of([&] { patient->barrier("b", 3, 1, std::chrono::milliseconds(500)); });
  });
  // Until the patient rank is there, too.
  while (!message_of([&] { hasty->barrier("b", 3, 0, kShort); }).starts_with("rank 2 had not")) {
  }
  waiting.join();
  EXPECT_TRUE(message.starts_with("rank 2 had not reached the barrier \"")) << message;
  EXPECT_TRUE(message.ends_with("(rank 0 had given up waiting)")) << message;
}

TEST_P(StoreTest, RanksThatDisagreeAreToldSo) {
  const auto first = home_.open(0);
  const auto second = home_.open(1);
  std::string messages[2];
  in_threads(2, [&](int rank) {
    messages[rank] = message_of(
        [&, rank] { (rank == 0 ? first : second)->barrier("b", 2 + rank, rank, 300ms); });
  });
  // The later one was refused; the other waited in vain for its number of ranks.
  const int refused = messages[0].starts_with("rank 0 says") ? 0 : 1;
  const std::string ends[] = {"others say 3", "others say 2"};
  EXPECT_TRUE(messages[refused].ends_with(ends[refused])) << messages[refused];
  EXPECT_NE(messages[1 - refused].find("had not reached"), std::string::npos);
  EXPECT_THROW(first->barrier("b", 2, 2, kShort), InvalidArgument);
  EXPECT_THROW(first->barrier("b", 0, 0, kShort), InvalidArgument);
  const auto many = message_of([&] { first->barrier("b", (1 << 20) + 1, 0, kShort); });
  EXPECT_NE(many.find("at most 1048576 meet"), std::string::npos) << many;
}

TEST_P(StoreTest, AWaitHindersNoOtherThread) {
  const auto store = home_.open(0);
  in_threads(12, [&store](int i) {
    if (i % 2 == 0) {
      EXPECT_EQ(to_string(store->get("t" + std::to_string(i + 1), kPatience)), value_of(i + 1));
    } else {
      store->set("t" + std::to_string(i), as_bytes(value_of(i)));
    }
  });
}

// Also for the thread that works the socket for the others.
TEST_P(StoreTest, ClosingEndsAllWaits) {
  if (GetParam() == "memory" || GetParam() == "prefix")
    GTEST_SKIP() << "it has no connection of its own";
  const auto store = home_.open(0);
  std::atomic<int> ended{0};
  in_threads(5, [&](int i) {
    if (i == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      store->close();
      return;
    }
    EXPECT_THROW(store->get("nobody sets it" + std::to_string(i), kForever), RendezvousError);
    ++ended;
  });
  EXPECT_EQ(ended, 4);
}

INSTANTIATE_TEST_SUITE_P(
    Every,
    StoreTest,
    ::testing::Values("memory", "prefix", "tcp", "unix", "unix_key", "open", "tls"),
    [](const auto& test) { return test.param; });

// Both answers have come when rank 1 looks again, and the first one may tell why rank 0 failed.
TEST(MemberStoreTest, AnAnswerIsTakenBeforeALaterLoss) {
  const StoreServer::Options options{.key = Key::generate(), .job = "j", .epoch = 0, .size = 2};
  const StoreServer server(options);
  const auto join = [&](int rank) {
    const auto client = testing::client_of(server, options, rank);
    return rendezvous::make_client(rendezvous::establish(client), client);
  };
  const auto first = join(0);
  const auto second = join(1);
  second->watch(2, kPatience);
  std::barrier looks(2);
  bool has_looked = false;
  std::optional<std::string> seen;
  in_threads(2, [&](int rank) {
    if (rank == 0) {
      looks.arrive_and_wait();
      first->exchange("reasons", 0, 2, as_bytes("rank 2 cannot join"), kPatience);
      first->withdraw("ended");
      return looks.arrive_and_wait();
    }
    const base::Lookout lookout([&] {
      if (std::exchange(has_looked, true)) return;
      looks.arrive_and_wait();
      looks.arrive_and_wait();
      seen = second->why_lost();
    });
    const auto reasons = second->exchange("reasons", 1, 2, as_bytes("none"), kPatience);
    EXPECT_EQ(to_string(reasons[0]), "rank 2 cannot join");
  });
  EXPECT_EQ(seen, std::nullopt);
  const auto loss_is_known = [&] { return second->why_lost().has_value(); };
  EXPECT_TRUE(base::poll_until(loss_is_known, base::Deadline::in(kPatience), kShort));
}

TEST(PrefixStoreTest, KeepsPartsApart) {
  const auto store = make_memory_store();
  const auto a = make_prefix_store(store, "a/");
  const auto b = make_prefix_store(store, "b/");
  a->set("k", as_bytes("in a"));
  b->set("k", as_bytes("in b"));
  EXPECT_EQ(to_string(a->get("k", kPatience)), "in a");
  EXPECT_EQ(to_string(store->get("b/k", kPatience)), "in b");
  EXPECT_THROW(make_prefix_store(nullptr, "x"), InvalidArgument);
}

}  // namespace
}  // namespace hocket
