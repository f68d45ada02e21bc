// Ranks exchange their builds before they join.
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "calls/joining/card.h"
#include "calls/joining/host_connections.h"
#include "hocket/hocket.h"
#include "hocket/object.h"
#include "membership/rendezvous/join.h"

namespace hocket::joining {
namespace {

Card card_of(int rank) {
  return {.build = own_build({}),
          .host = "host",
          .host_name = "name" + std::to_string(rank),
          .machine = "machine",
          .listener = "listener",
          .engines = "shm",
          .algorithms = "ring",
          .problem = "",
          .allotment = "0-3 0 0"};
}

std::string refusal_of(const std::vector<Bytes>& cards) {
  try {
    to_cards(cards);
    return "(none)";
  } catch (const RendezvousError& error) {
    return error.what();
  }
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Card, ComesAsItWent) {
  Card sent = card_of(1);
  sent.token[3] = std::byte{7};
  const auto came = to_cards({to_bytes(card_of(0)), to_bytes(sent)});
  EXPECT_EQ(came[1].build, own_build({}));
  EXPECT_EQ(came[1].host_name, "name1");
  EXPECT_EQ(came[1].token, sent.token);
  EXPECT_EQ(came[1].algorithms, "ring");
  EXPECT_EQ(came[1].allotment, "0-3 0 0");
}

TEST(Card, OfAnotherReleaseIsRefusedAndBothAreNamed) {
  Card other = card_of(2);
  other.build.release = "9.8.7";
  const std::string text =
      refusal_of({to_bytes(card_of(0)), to_bytes(card_of(1)), to_bytes(other)});
  EXPECT_TRUE(has(text, "rank 0 is of hocket " + own_build({}).release)) << text;
  EXPECT_TRUE(has(text, "rank 2 of hocket 9.8.7")) << text;
}

TEST(Card, OfAnotherWireOrTuningIsRefused) {
  Card wire = card_of(1);
  ++wire.build.wire;
  EXPECT_TRUE(has(refusal_of({to_bytes(card_of(0)), to_bytes(wire)}),
                  "wire " + std::to_string(wire.build.wire)));
  Card tuning = card_of(1);
  tuning.build.tuning = "feed";
  const std::string text = refusal_of({to_bytes(card_of(0)), to_bytes(tuning)});
  EXPECT_TRUE(has(text, "tuning feed")) << text;
  EXPECT_TRUE(has(text, "the same build")) << text;
}

// Another release's may have any form.
TEST(Card, OfAnotherFormIsRefused) {
  const Bytes good = to_bytes(card_of(0));
  for (const Object& odd : {Object(),
                            Object(7),
                            Object::list({}),
                            Object::list({"host", "name"}),
                            Object::list({"1.0", "1", "x"})}) {
    EXPECT_TRUE(has(refusal_of({good, encode(odd)}), "of an unknown release"));
  }
  const Build own = own_build({});
  const Object damaged = Object::list({own.release, own.wire, own.tuning, "host"});
  EXPECT_TRUE(has(refusal_of({good, encode(damaged)}), "damaged"));
}

// A rank that is not of this release comes to `init`.
TEST(Card, OfAnotherReleaseEndsInit) {
  const std::string address = "unix:hocket-card-test-" + std::to_string(::getpid());
  std::jthread other([&] {
    const LaunchInfo launch = detect_launch({.rank = 1, .size = 2, .address = address});
    const auto store = rendezvous::join(launch, std::chrono::seconds(60), std::nullopt).store;
    Card card = card_of(1);
    card.build.release = "9.8.7";
    store->exchange("hocket/cards", 1, 2, to_bytes(card), std::chrono::seconds(60));
  });
  try {
    static_cast<void>(init({.rank = 0, .size = 2, .address = address}));
    ADD_FAILURE() << "joined a rank of another release";
  } catch (const RendezvousError& error) {
    EXPECT_TRUE(has(error.what(), "rank 1 of hocket 9.8.7")) << error.what();
  }
}

TEST(WaysTest, EachRankTriesTheWayToRanksThatTryTheWayToIt) {
  const std::vector<std::vector<int>> jobs{
      {0, 1}, {0, 0, 1, 1}, {0, 1, 0, 1}, {0, 1, 1, 1, 2, 2}, {0, 0, 0, 1, 2, 2, 2, 2, 2}};
  for (const auto& hosts : jobs) {
    const auto size = static_cast<int>(hosts.size());
    std::set<std::pair<int, int>> ways;
    for (int rank = 0; rank < size; ++rank) {
      std::set<int> reached;
      for (const int other : ranks_to_try(hosts, rank)) {
        ways.emplace(rank, other);
        reached.insert(hosts[static_cast<std::size_t>(other)]);
      }
      std::set<int> others(hosts.begin(), hosts.end());
      others.erase(hosts[static_cast<std::size_t>(rank)]);
      EXPECT_EQ(reached, others) << rank << " of " << size;
    }
    for (const auto& [from, to] : ways) EXPECT_TRUE(ways.contains({to, from})) << from << " " << to;
  }
}

TEST(WaysTest, OfManyHostsTheFirstRanksTry) {
  std::vector<int> hosts;
  for (int i = 0; i < 60; ++i) hosts.push_back(i / 3);
  EXPECT_EQ(ranks_to_try(hosts, 0).size(), 19U);
  EXPECT_EQ(ranks_to_try(hosts, 3).front(), 0);
  EXPECT_TRUE(ranks_to_try(hosts, 4).empty());
}

}  // namespace
}  // namespace hocket::joining
