// The store's clients behind a bad network. Each fault, at every time in a client's life, ends in a
// right result, or in the right error in time. It harms no other client.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "fault_proxy.h"
#include "hocket/store.h"
#include "rendezvous_stores.h"

namespace hocket {
namespace {

using std::chrono::milliseconds;
using testing::Fault;
using testing::FaultProxy;
using testing::kPatience;
using testing::message_of;

constexpr auto kSoon = milliseconds(300);

class StoreFaults : public ::testing::Test {
 protected:
  // A store, a proxy before it, and one client that does not go through the proxy.
  StoreFaults()
      : server_(options_),
        proxy_("127.0.0.2", server_.port()),
        bystander_(connect_store(testing::client_of(server_, options_, 0))) {}

  // This client is served, whatever happened to the others.
  ~StoreFaults() override {
    bystander_->set("here", as_bytes("still"));
    EXPECT_EQ(to_string(bystander_->get("here", kPatience)), "still");
  }

  std::shared_ptr<Store> join(int rank, Duration timeout = kPatience) {
    auto client = testing::client_of(server_, options_, rank);
    client.address = proxy_.address();
    client.timeout = timeout;
    return connect_store(client);
  }
  static void expect_says(const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }

  StoreServer::Options options_{.key = Key::generate(), .job = "j", .epoch = 0, .size = 4};
  StoreServer server_;
  FaultProxy proxy_;
  std::shared_ptr<Store> bystander_;
};

TEST_F(StoreFaults, SlowWaysOnlyTakeLonger) {
  int rank = 1;
  for (const Fault fault : {Fault::kDelay, Fault::kDribble}) {
    proxy_.set(fault);
    const auto store = join(rank++);
    std::string value(200, 'a');
    for (std::size_t i = 0; i < value.size(); ++i) value[i] = static_cast<char>('a' + i % 26);
    store->set("value", as_bytes(value));
    EXPECT_EQ(to_string(store->get("value", kPatience)), value);
    EXPECT_EQ(store->add("sum", 5), 5 * (rank - 1));
    store->close();
  }
}

TEST_F(StoreFaults, JoiningThroughADeadWayEndsInTime) {
  // The server accepts connections and says nothing, or loses data in one direction, or
  // disconnects.
  const struct {
    Fault fault;
    const char* said;
  } cases[] = {{Fault::kHalfOpen, "did not answer as a hocket store"},
               {Fault::kDropToServer, "did not answer as a hocket store"},
               {Fault::kDropFromServer, "did not answer as a hocket store"},
               {Fault::kRefuse, "at 127.0.0.2:"}};
  for (const auto& each : cases) {
    proxy_.set(each.fault);
    expect_says(message_of([&] { join(1, kSoon); }), each.said);
  }
  proxy_.set(Fault::kNone);
  join(2)->set("k", as_bytes("v"));
}

TEST_F(StoreFaults, JoiningGoesOnWhenTheWayIsMendedInTime) {
  proxy_.set(Fault::kRefuse);
  std::thread mender([&] {
    while (proxy_.taken() < 3) std::this_thread::sleep_for(milliseconds(1));
    proxy_.set(Fault::kNone);
  });
  const auto store = join(1);
  mender.join();
  EXPECT_EQ(store->add("n", 1), 1);
}

TEST_F(StoreFaults, ACutIsToldAtOnceInAndBetweenCalls) {
  auto store = join(1);
  std::thread cutter([&] {
    std::this_thread::sleep_for(milliseconds(20));  // into the wait; before it, all is the same
    proxy_.cut();
  });
  expect_says(message_of([&] { store->get("never", kPatience); }), "is gone");
  cutter.join();
  store = join(2);
  store->set("k", as_bytes("v"));
  proxy_.cut();
  expect_says(message_of([&] {
                for (;;) store->set("k", as_bytes("w"));
              }),
              "is gone");
}

TEST_F(StoreFaults, ADeadWayInACallAndAtTheEndEndsInTime) {
  const Fault faults[] = {Fault::kHalfOpen, Fault::kDropToServer, Fault::kDropFromServer};
  testing::in_threads(3, [&](int i) {
    FaultProxy proxy("127.0.0." + std::to_string(3 + i), server_.port());
    auto client = testing::client_of(server_, options_, 1 + i);
    client.address = proxy.address();
    client.timeout = std::chrono::seconds(4);
    const auto store = connect_store(client);
    store->set("k", as_bytes("v"));
    proxy.set(faults[i]);
    expect_says(message_of([&] { store->set("k", as_bytes("w")); }), "does not answer");
    store->close();
  });
}

}  // namespace
}  // namespace hocket
