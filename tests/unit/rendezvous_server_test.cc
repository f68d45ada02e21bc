// The store's server: the clients it admits, its answers to the others, and its robustness.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "foundation/base/deadline.h"
#include "foundation/os/sockets/socket.h"
#include "foundation/os/sockets/unix_socket.h"
#include "hocket/error.h"
#include "hocket/store.h"
#include "membership/rendezvous/store/request.h"
#include "membership/rendezvous/wire/handshake.h"
#include "membership/rendezvous/wire/wire.h"
#include "rendezvous_stores.h"

namespace hocket {
namespace {

using base::Deadline;
using testing::client_of;
using testing::in_threads;
using testing::kPatience;
using testing::kShort;
using testing::message_of;

StoreServer::Options options_of(int size) {
  return {.key = Key::generate(), .job = "job 1", .epoch = 2, .size = size};
}

void expect_says(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

// A raw connection to a server, for clients that break the protocol.
os::Fd connect_raw(const StoreServer& server) {
  const std::string& address = server.address();
  if (address.starts_with("unix:")) {
    return os::connect_abstract(address.substr(5), Deadline::in(kPatience));
  }
  return os::connect_tcp(*os::parse_host_port(address), Deadline::in(kPatience));
}

// True when the server has closed the connection, whatever it said before.
bool is_closed_by_server(const os::Fd& socket) {
  const auto deadline = Deadline::in(kPatience);
  std::array<std::byte, 4096> bytes;
  while (os::wait_ready(socket.get(), os::Readiness::kRead, deadline)) {
    const ssize_t got = ::recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno == ECONNRESET)) return true;
  }
  return false;
}

// Writes what the server takes; it may hang up at any moment.
void send_raw(const os::Fd& socket, std::span<const std::byte> bytes) {
  try {
    os::send_all(socket, bytes, Deadline::in(kPatience));
  } catch (const RendezvousError&) {
  }
}

Bytes framed(const Bytes& payload) {
  rendezvous::WireWriter writer;
  writer.raw(payload);
  return std::move(writer).frame();
}

// A raw connection that has gone through the handshake, as rank 0.
os::Fd prove_raw(const StoreServer& server, const StoreServer::Options& options, StoreRole role) {
  os::Fd socket = connect_raw(server);
  const auto deadline = Deadline::in(kPatience);
  const Bytes hello = rendezvous::Hello{.role = role,
                                        .epoch = options.epoch,
                                        .size = options.size,
                                        .nonce = rendezvous::make_nonce(),
                                        .job = options.job}
                          .encode();
  os::send_all(socket, framed(hello), deadline);
  Bytes challenge(4 + rendezvous::Challenge{}.encode().size());
  os::receive_all(socket, challenge, deadline);
  rendezvous::WireWriter binding;
  binding.text("plain");
  binding.u32(static_cast<std::uint32_t>(server.port()));
  const rendezvous::Transcript transcript(
      hello, std::span(challenge).subspan(4), binding.payload());
  os::send_all(
      socket, framed(rendezvous::Proof{transcript.client_mac(*options.key)}.encode()), deadline);
  Bytes answer(4 + rendezvous::Verdict{}.encode().size());
  os::receive_all(socket, answer, deadline);
  const auto verdict = rendezvous::Verdict::parse(std::span(answer).subspan(4));
  EXPECT_TRUE(verdict && verdict->decision == rendezvous::Decision::kWelcome);
  return socket;
}

void expect_serves(const StoreServer& server, const StoreServer::Options& options, int rank) {
  const auto store = connect_store(client_of(server, options, rank));
  const std::string key = "good " + std::to_string(rank);
  store->set(key, as_bytes(key));
  EXPECT_EQ(to_string(store->get(key, kPatience)), key);
}

TEST(StoreServerTest, TellsWhereItIs) {
  const auto options = options_of(2);
  const StoreServer server(options);
  EXPECT_GT(server.port(), 0);
  EXPECT_EQ(server.address(), "127.0.0.1:" + std::to_string(server.port()));
  EXPECT_EQ(server.clients(), 0U);
  const auto store = connect_store(client_of(server, options, 0));
  EXPECT_EQ(server.clients(), 1U);
  const StoreServer local({.address = testing::unique_unix_address()});
  EXPECT_EQ(local.port(), 0);
  EXPECT_TRUE(local.address().starts_with("unix:hocket-test-"));
}

TEST(StoreServerTest, RefusesAWrongKey) {
  const auto options = options_of(2);
  const StoreServer server(options);
  auto client = client_of(server, options, 0);
  client.key = Key::generate();
  expect_says(message_of([&] { static_cast<void>(connect_store(client)); }),
              "did not accept this job's key");
  expect_serves(server, options, 0);
}

TEST(StoreServerTest, RefusesNoKeyAndSaysHowToMakeOne) {
  const auto options = options_of(2);
  const StoreServer server(options);
  auto client = client_of(server, options, 0);
  client.key.reset();
  expect_says(message_of([&] { static_cast<void>(connect_store(client)); }), "HOCKET_KEY_FILE");
  client.trust_network = true;
  expect_says(message_of([&] { static_cast<void>(connect_store(client)); }),
              "this process has none");
  EXPECT_THROW(StoreServer({.size = 2}), RendezvousError);
}

TEST(StoreServerTest, AKeyDoesNotOpenAServerWithout) {
  const StoreServer::Options options{.job = "j", .size = 2, .trust_network = true};
  const StoreServer server(options);
  auto client = client_of(server, options, 0);
  client.key = Key::generate();
  expect_says(message_of([&] { static_cast<void>(connect_store(client)); }),
              "did not accept this job's key");
}

TEST(StoreServerTest, RefusesASecondClaimantUntilTheFirstHasLeft) {
  const auto options = options_of(4);
  const StoreServer server(options);
  const auto client = client_of(server, options, 3);
  auto first = connect_store(client);
  expect_says(message_of([&] { static_cast<void>(connect_store(client)); }), "rank 3 is taken");
  first->close();
  EXPECT_THROW(first->set("k", {}), RendezvousError);
  auto second = connect_store(client);
  // Without a goodbye the claim stays: the rank may still be alive somewhere.
  second.reset();
  expect_says(message_of([&] { static_cast<void>(connect_store(client)); }), "rank 3 is taken");
}

TEST(StoreServerTest, OneOfManyClaimantsWins) {
  const auto options = options_of(4);
  const StoreServer server(options);
  std::atomic<int> winners = 0;
  std::vector<std::shared_ptr<Store>> stores(8);
  in_threads(8, [&](int i) {
    try {
      stores[static_cast<std::size_t>(i)] = connect_store(client_of(server, options, 1));
      ++winners;
    } catch (const RendezvousError& error) {
      expect_says(error.what(), "rank 1 is taken");
    }
  });
  EXPECT_EQ(winners, 1);
}

TEST(StoreServerTest, RefusesWhatDoesNotBelong) {
  const auto options = options_of(4);
  const StoreServer server(options);
  auto client = client_of(server, options, 4);
  expect_says(message_of([&] { static_cast<void>(connect_store(client)); }),
              "rank 4 is out of range");
  client.rank = 1;
  client.size = 8;
  expect_says(message_of([&] { static_cast<void>(connect_store(client)); }),
              "one of 8, but the store");
  client.size = 4;
  client.epoch = 1;
  expect_says(message_of([&] { static_cast<void>(connect_store(client)); }), "serves epoch 2");
  client.epoch = 2;
  client.job = "job 2";
  expect_says(message_of([&] { static_cast<void>(connect_store(client)); }),
              "another job than \"job 2\"");
  client.job = "job 1";
  client.rank = -1;
  EXPECT_THROW(connect_store(client), InvalidArgument);
  client.rank = 1;
  static_cast<void>(connect_store(client));
}

TEST(StoreServerTest, TellsOfAnotherJobWhenTheTimeRunsOutInAHandshake) {
  const StoreServer::Options options = options_of(1);
  const StoreServer server(options);
  for (int i = 0; i < 3; ++i) {  // the last try begins as the time is over
    StoreClientOptions other = client_of(server, options, 0);
    other.job = "job 2";
    other.timeout = std::chrono::milliseconds(400);
    expect_says(message_of([&] { static_cast<void>(connect_store(other)); }), "another job");
  }
}

TEST(StoreServerTest, ObserversClaimNothing) {
  const auto options = options_of(1);
  const StoreServer server(options);
  auto observer = client_of(server, options, 0);
  observer.role = StoreRole::kObserver;
  const auto first = connect_store(observer);
  const auto second = connect_store(observer);
  const auto member = connect_store(client_of(server, options, 0));
  member->set("k", as_bytes("v"));
  EXPECT_EQ(to_string(second->get("k", kPatience)), "v");
}

TEST(StoreServerTest, TakesNoMoreClientsThanItsLimit) {
  auto options = options_of(8);
  options.max_clients = 2;
  const StoreServer server(options);
  const auto first = connect_store(client_of(server, options, 0));
  const auto second = connect_store(client_of(server, options, 1));
  expect_says(message_of([&] { static_cast<void>(connect_store(client_of(server, options, 2))); }),
              "has 2 clients");
}

TEST(StoreServerTest, HoldsNoMoreBytesThanItsLimit) {
  auto options = options_of(2);
  options.max_bytes = 10000;
  const StoreServer server(options);
  const auto store = connect_store(client_of(server, options, 0));
  store->set("a", Bytes(6000));
  expect_says(message_of([&] { store->set("b", Bytes(6000)); }), "the store is full");
  store->set("a", Bytes(7000));
  EXPECT_TRUE(store->erase("a"));
  store->set("b", Bytes(6000));
  EXPECT_EQ(store->get("b", kPatience).size(), 6000U);
}

// The store keeps a waiting client's request, and its keys.
TEST(StoreServerTest, WhatWaitsCountsAgainstItsLimit) {
  auto options = options_of(2);
  options.max_bytes = 10000;
  const StoreServer server(options);
  const auto store = connect_store(client_of(server, options, 0));
  const auto other = connect_store(client_of(server, options, 1));
  std::vector<std::string> keys;
  for (int i = 0; i < 100; ++i) keys.push_back("key " + std::to_string(i));
  expect_says(message_of([&] { store->wait(keys, kPatience); }), "the store is full");
  keys.resize(20);
  std::thread waiter([&] {  // refused while the other's bytes are there
    while (message_of([&] { store->wait(keys, kPatience); }) != "no RendezvousError") {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  // Meanwhile there is room for less; whether it has begun to wait is seen by that alone.
  const auto limit = std::chrono::steady_clock::now() + kPatience;
  while (message_of([&] { other->set("large", Bytes(8000)); }) == "no RendezvousError" &&
         std::chrono::steady_clock::now() < limit) {
    other->erase("large");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_LT(std::chrono::steady_clock::now(), limit);
  for (const std::string& key : keys)
    EXPECT_EQ(message_of([&] { other->set(key, {}); }), "no RendezvousError");
  waiter.join();
  for (const std::string& key : keys) other->erase(key);
  other->set("large", Bytes(8000));
}

TEST(StoreServerTest, SaysWhereNobodyServes) {
  StoreClientOptions client{.address = "127.0.0.1:1", .key = Key::generate(), .timeout = kShort};
  expect_says(message_of([&] { static_cast<void>(connect_store(client)); }),
              "no store could be reached at 127.0.0.1:1 in 0.03 s");
  client.address = testing::unique_unix_address();
  expect_says(message_of([&] { static_cast<void>(connect_store(client)); }),
              "no store could be reached at unix:");
  client.address = "nonsense";
  EXPECT_THROW(connect_store(client), InvalidArgument);
}

TEST(StoreServerTest, TellsWhenWhatListensIsNoStore) {
  const os::Fd listener = os::listen_tcp({.host = "127.0.0.1", .port = 0});
  StoreClientOptions client{
      .address = "127.0.0.1:" + std::to_string(os::local_port(listener.get())),
      .key = Key::generate(),
      .timeout = std::chrono::milliseconds(200)};
  // It takes the connection, in its backlog, and is silent.
  expect_says(message_of([&] { static_cast<void>(connect_store(client)); }),
              "did not answer as a hocket store");
  client.timeout = kPatience;
  std::thread other([&listener] {
    os::wait_ready(listener.get(), os::Readiness::kRead, Deadline::in(kPatience));
    os::accept_pending(listener.get());  // the silent one's connection
    os::wait_ready(listener.get(), os::Readiness::kRead, Deadline::in(kPatience));
    const os::Fd accepted = os::accept_pending(listener.get());
    os::send_all(accepted, as_bytes("220 mail.example ESMTP\r\n"), Deadline::in(kPatience));
    EXPECT_TRUE(is_closed_by_server(accepted));
  });
  expect_says(message_of([&] { static_cast<void>(connect_store(client)); }), "is no hocket store");
  other.join();
}

// Its host may be off, and start later: such a connection is tried again until the timeout.
TEST(StoreServerTest, AnAddressThatDoesNotAnswerIsNotAnError) {
  const os::Fd listener = os::listen_tcp({.host = "127.0.0.1", .port = 0});
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  const std::string address = "127.0.0.1:" + std::to_string(os::local_port(listener.get()));
  std::vector<os::Fd> queued;  // as many as fill the backlog: the kernel then drops packets
  for (int i = 0; i < 4; ++i) queued.push_back(os::begin_connect(*os::parse_host_port(address)));
  const StoreClientOptions client{
      .address = address, .key = Key::generate(), .timeout = std::chrono::milliseconds(200)};
  const std::string text = message_of([&] { static_cast<void>(connect_store(client)); });
  expect_says(text, "no store could be reached at " + address + " in 0.2 s");
  expect_says(text, "firewall");
}

TEST(StoreServerTest, ARogueServerWithoutTheKeyIsSeen) {
  const os::Fd listener = os::listen_tcp({.host = "127.0.0.1", .port = 0});
  const auto deadline = Deadline::in(kPatience);
  std::thread rogue([&] {
    os::wait_ready(listener.get(), os::Readiness::kRead, deadline);
    const os::Fd socket = os::accept_pending(listener.get());
    std::array<std::byte, 4> length;
    os::receive_all(socket, length, deadline);
    Bytes hello(std::to_integer<std::size_t>(length[0]));
    os::receive_all(socket, hello, deadline);
    os::send_all(socket,
                 framed(rendezvous::Challenge{.nonce = rendezvous::make_nonce()}.encode()),
                 deadline);
    Bytes proof(36);
    os::receive_all(socket, proof, deadline);
    // Sends back the client's own proof, and a welcome.
    rendezvous::Verdict verdict;
    std::copy(proof.begin() + 4, proof.end(), verdict.mac.begin());
    os::send_all(socket, framed(verdict.encode()), deadline);
    EXPECT_TRUE(is_closed_by_server(socket));
  });
  const StoreClientOptions client{
      .address = "127.0.0.1:" + std::to_string(os::local_port(listener.get())),
      .key = Key::generate(),
      .timeout = kPatience};
  expect_says(message_of([&] { static_cast<void>(connect_store(client)); }),
              "does not know this job's key");
  rogue.join();
}

// Somebody at another port hands the messages of client and server on to each other.
TEST(StoreServerTest, AProofServesForOneServerAlone) {
  const auto options = options_of(2);
  const StoreServer server(options);
  const os::Fd listener = os::listen_tcp({.host = "127.0.0.1", .port = 0});
  std::thread between([&] {
    os::wait_ready(listener.get(), os::Readiness::kRead, Deadline::in(kPatience));
    const os::Fd client = os::accept_pending(listener.get());
    const os::Fd onward = connect_raw(server);
    const std::pair<const os::Fd*, const os::Fd*> ways[] = {
        {&client, &onward}, {&onward, &client}, {&client, &onward}, {&onward, &client}};
    for (const auto& [from, to] : ways) {
      std::array<std::byte, 1024> bytes;
      os::wait_ready(from->get(), os::Readiness::kRead, Deadline::in(kPatience));
      const ssize_t got = ::recv(from->get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      ASSERT_GT(got, 0);
      send_raw(*to, std::span(bytes).first(static_cast<std::size_t>(got)));
    }
  });
  auto client = client_of(server, options, 0);
  client.address = "127.0.0.1:" + std::to_string(os::local_port(listener.get()));
  expect_says(message_of([&] { static_cast<void>(connect_store(client)); }),
              "is forwarded to a store at port");
  between.join();
}

TEST(StoreServerTest, ItsLossIsToldAndHarmsNobodyElse) {
  const auto options = options_of(2);
  StoreServer server(options);
  const auto store = connect_store(client_of(server, options, 0));
  std::thread closer([&server, &store] {
    store->set("closing", as_bytes("soon"));
    server.close();
  });
  expect_says(message_of([&] { store->get("never", kPatience); }), "is gone");
  closer.join();
  expect_says(message_of([&] { store->set("k", {}); }), "is gone");
  store->close();
}

TEST(StoreServerTest, SendsWhatIsUnderWayBeforeItCloses) {
  const auto options = options_of(2);
  for (int round = 0; round < 20; ++round) {
    auto server = std::make_unique<StoreServer>(options);
    const auto first = connect_store(client_of(*server, options, 0));
    const auto second = connect_store(client_of(*server, options, 1));
    const Bytes mine(500000, std::byte{7});
    std::thread other([&] {
      EXPECT_EQ(second->exchange("last", 1, 2, mine, kPatience).at(0).size(), mine.size());
    });
    first->exchange("last", 0, 2, mine, kPatience);
    server.reset();
    other.join();
  }
}

TEST(StoreServerTest, WhoseProcessHasEndedIsNotWaitedFor) {
  const StoreServer::Options options = options_of(3);
  StoreServer server(options);
  const std::array clients{connect_store(client_of(server, options, 0)),
                           connect_store(client_of(server, options, 2))};
  const auto refused = [&](int i) {
    return message_of([&] { clients[i]->exchange("init", 2 * i, 3, {}, kPatience); });
  };
  std::string first;
  std::thread waits([&] { first = refused(0); });
  server.rank_ended(1, 3, "exited with code 0");
  server.rank_ended(0, 3, "exited with code 1");
  waits.join();
  expect_says(first, "rank 1 of 3 exited with code 0 before it had joined \"init\"");
  EXPECT_EQ(refused(1), first);  // who comes later hears the same
  // A room of two does not include it.
  in_threads(2, [&](int i) { clients[i]->barrier("two", 2, i, kPatience); });
}

TEST(StoreServerTest, NamesOfItsOwnExchangesAreNotTold) {
  const StoreServer::Options options = options_of(2);
  StoreServer server(options);
  const auto client = connect_store(client_of(server, options, 0));
  const auto told = [&] {
    return message_of([&] { client->exchange("hocket/cards", 0, 2, {}, kShort); });
  };
  expect_says(told(), "rank 1 had not joined the job after 0.03 s");
  expect_says(message_of([&] { client->exchange("hocket/cards", 0, 1 << 21, {}, kShort); }),
              "rank 0 of 2097152 cannot be in the job");
  try {
    client->exchange("hocket/cards", 2, 2, {}, kShort);
    ADD_FAILURE() << "a rank beyond the size is taken";
  } catch (const InvalidArgument& error) {
    expect_says(error.what(), "rank 2 of 2 cannot be in the job");
  }
  server.rank_ended(1, 2, "exited with code 0");
  expect_says(told(), "rank 1 of 2 exited with code 0 before all ranks had joined");
}

StoreClientOptions launcher_of(const StoreServer& server,
                               const StoreServer::Options& options,
                               int size) {
  StoreClientOptions client = client_of(server, options, 1);
  client.role = StoreRole::kLauncher;
  client.size = size;
  return client;
}

struct LauncherEnd {
  bool says_goodbye;
  const char* how;
};

TEST(StoreServerTest, WhoHasNotComeEndsWithItsLauncher) {
  for (const auto& [says_goodbye, how] :
       {LauncherEnd{false, "lost its launcher"}, LauncherEnd{true, "had a launcher that ended"}}) {
    StoreServer::Options options = options_of(0);
    StoreServer server(options);
    const auto first = connect_store(client_of(server, options, 0));
    // Before it has started ranks, its end is no rank's.
    connect_store(launcher_of(server, options, 0)).reset();
    server.launcher_starts(1, 2, 2, 4);
    auto launcher = connect_store(launcher_of(server, options, 4));
    const auto came = connect_store(client_of(server, options, 2));
    std::string told;
    std::thread waits(
        [&] { told = message_of([&] { first->exchange("x", 0, 4, {}, kPatience); }); });
    if (says_goodbye) launcher->close();
    launcher.reset();
    waits.join();
    expect_says(told, std::string("rank 3 of 4 ") + how);
    EXPECT_EQ(server.lost_launchers().size(), says_goodbye ? 1U : 2U);
  }
}

TEST(StoreServerTest, WhoHasComeDoesNotEndWithItsLauncher) {
  StoreServer::Options options = options_of(0);
  StoreServer server(options);
  server.launcher_starts(1, 1, 1, 2);
  auto launcher = connect_store(launcher_of(server, options, 2));
  const std::array clients{connect_store(client_of(server, options, 0)),
                           connect_store(client_of(server, options, 1))};
  launcher.reset();
  in_threads(2, [&](int i) { clients[i]->barrier("two", 2, i, kPatience); });
}

TEST(StoreServerTest, KnowsInWhichOrderRanksHaveLeft) {
  const StoreServer::Options options = options_of(3);
  StoreServer server(options);
  EXPECT_TRUE(server.departures().empty());
  const auto stays = connect_store(client_of(server, options, 0));
  for (const int rank : {2, 1}) connect_store(client_of(server, options, rank))->close();
  EXPECT_EQ(server.departures(), (std::vector{2, 1}));
}

TEST(StoreServerTest, WhoDiesInAnExchangeIsMissing) {
  const auto options = options_of(2);
  const StoreServer server(options);
  {
    const os::Fd doomed = prove_raw(server, options, StoreRole::kMember);
    os::send_all(doomed,
                 rendezvous::encode_request(1,
                                            {.op = rendezvous::Op::kExchange,
                                             .timeout = kPatience,
                                             .key = "x",
                                             .rank = 0,
                                             .size = 2}),
                 Deadline::in(kPatience));
  }
  const auto store = connect_store(client_of(server, options, 1));
  expect_says(message_of([&] { store->exchange("x", 1, 2, {}, kShort); }),
              "rank 0 had not joined \"x\" after 0.03 s");
}

// --- Hostile bytes -----------------------------------------------------------------------------

class HostileTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    options_ = options_of(64);
    if (GetParam() == "unix") options_.address = testing::unique_unix_address();
    if (GetParam() == "tls") {
      const auto address = testing::outside_address();
      if (!address) GTEST_SKIP() << "this machine has no address but loopback";
      options_.address = *address;
    }
    options_.stranger_timeout = std::chrono::milliseconds(200);
    options_.max_strangers = 64;
    server_.emplace(options_);
  }

  StoreServer::Options options_;
  std::optional<StoreServer> server_;
};

TEST_P(HostileTest, RandomBytesAreHungUpOn) {
  std::mt19937 random(7);
  for (int round = 0; round < 100; ++round) {
    const os::Fd socket = connect_raw(*server_);
    Bytes junk(random() % 2000 + 1);
    for (auto& each : junk) each = static_cast<std::byte>(random());
    send_raw(socket, junk);
    ASSERT_TRUE(is_closed_by_server(socket));
  }
  expect_serves(*server_, options_, 1);
}

TEST_P(HostileTest, GiantLengthsAreHungUpOn) {
  for (const std::uint32_t length : {0xffffffffU, 0x7fffffffU, 1U << 24, 513U}) {
    const os::Fd socket = connect_raw(*server_);
    rendezvous::WireWriter writer;
    writer.u32(length);
    send_raw(socket, writer.payload());
    ASSERT_TRUE(is_closed_by_server(socket));
  }
  expect_serves(*server_, options_, 1);
}

TEST_P(HostileTest, HalfHandshakesAreHungUpOnInTime) {
  std::vector<os::Fd> sockets;
  const Bytes hello = framed(rendezvous::Hello{.job = "job 1"}.encode());
  for (std::size_t size = 0; size < hello.size(); size += 3) {
    sockets.push_back(connect_raw(*server_));
    send_raw(sockets.back(), std::span(hello).first(size));
  }
  expect_serves(*server_, options_, 1);
  for (const auto& socket : sockets) EXPECT_TRUE(is_closed_by_server(socket));
}

TEST_P(HostileTest, DripsOfBytesDelayNobody) {
  std::atomic<bool> done = false;
  std::thread dripping([this, &done] {
    const os::Fd socket = connect_raw(*server_);
    const std::byte drop{12};
    while (!done) {
      send_raw(socket, std::span(&drop, 1));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  in_threads(16, [this](int rank) { expect_serves(*server_, options_, rank); });
  done = true;
  dripping.join();
}

TEST_P(HostileTest, ACrowdOfSilentStrangersKeepsNobodyOut) {
  std::vector<os::Fd> crowd;
  for (int i = 0; i < 200; ++i) crowd.push_back(connect_raw(*server_));
  for (int rank = 0; rank < 8; ++rank) expect_serves(*server_, options_, rank);
  for (const auto& socket : crowd) EXPECT_TRUE(is_closed_by_server(socket));
}

INSTANTIATE_TEST_SUITE_P(Every,
                         HostileTest,
                         ::testing::Values("tcp", "unix", "tls"),
                         [](const auto& test) { return test.param; });

// A client that has proved itself and then sends nonsense is no danger either.
TEST(StoreServerTest, NonsenseAfterTheProofIsHungUpOn) {
  const auto options = options_of(64);
  const StoreServer server(options);
  std::mt19937 random(11);
  for (int round = 0; round < 50; ++round) {
    const os::Fd socket = prove_raw(server, options, StoreRole::kObserver);
    Bytes junk(random() % 200 + 20);
    for (auto& each : junk) each = static_cast<std::byte>(random());
    junk[3] = std::byte{0};
    send_raw(socket, framed(junk));
    EXPECT_TRUE(is_closed_by_server(socket));
  }
  expect_serves(server, options, 1);
}

TEST(StoreServerTest, ServesSixHundredClients) {
  constexpr int kClients = 600;
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  // Each takes two descriptors here and one in the server, which is in this process, too.
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 4096);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_cur < 3 * kClients + 100)
    GTEST_SKIP() << "too few descriptors: " << limit.rlim_cur;
  const auto options = options_of(kClients);
  const StoreServer server(options);
  constexpr int kThreads = 12;
  std::vector<std::shared_ptr<Store>> stores(kClients);
  in_threads(kThreads, [&](int thread) {
    for (int rank = thread; rank < kClients; rank += kThreads) {
      stores[static_cast<std::size_t>(rank)] = connect_store(client_of(server, options, rank));
    }
  });
  EXPECT_EQ(server.clients(), std::size_t{kClients});
  in_threads(kClients, [&](int rank) {
    Store& mine = *stores[static_cast<std::size_t>(rank)];
    const auto all =
        mine.exchange("all", rank, kClients, as_bytes(std::to_string(rank * 7)), kPatience);
    const auto next = static_cast<std::size_t>((rank + 1) % kClients);
    EXPECT_EQ(to_string(all.at(next)), std::to_string(next * 7));
  });
}

}  // namespace
}  // namespace hocket
