// Messages between processes: tags, sources, sizes, and both directions at once.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>

#include "collectives.h"
#include "ranks.h"

namespace hocket::multiprocess {
namespace {

// Element i of message `tag` from `rank`.
std::uint64_t value(int rank, int tag, std::size_t i) {
  return static_cast<std::uint64_t>(rank) << 56 | static_cast<std::uint64_t>(tag) << 40 | i;
}
std::vector<std::uint64_t> message(int rank, int tag, std::size_t count) {
  std::vector<std::uint64_t> made(count);
  for (std::size_t i = 0; i < count; ++i) made[i] = value(rank, tag, i);
  return made;
}

TEST(Messages, TagsComeInAnyOrder) {
  run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    for (const std::size_t count : {1, 1000, 50'000}) {
      constexpr int kTags = 20;
      if (rank.rank() == 0) {
        std::vector<std::vector<std::uint64_t>> made;
        std::vector<Work> works;
        for (int tag = 0; tag < kTags; ++tag) made.push_back(message(0, tag, count));
        for (int tag = 0; tag < kTags; ++tag) {
          works.push_back(comm.send_async(made[static_cast<std::size_t>(tag)], 1, {.tag = tag}));
        }
        for (Work& work : works) work.wait();
      } else {
        for (int tag = kTags - 1; tag >= 0; --tag) {
          std::vector<std::uint64_t> in(count);
          const Received received = comm.recv(in, 0, {.tag = tag});
          rank.check(in == message(0, tag, count), fmt::format("tag {} is wrong", tag));
          rank.check(received.source == 0 && received.tag == tag, "source and tag are wrong");
        }
      }
    }
  });
}

TEST(Messages, OfOneTagKeepTheirOrder) {
  run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    // Short and long ones in turns: they travel by different ways.
    for (int i = 0; i < 60; ++i) {
      const std::size_t count = i % 3 == 0 ? 20'000 : 5;
      if (rank.rank() == 0) comm.send(message(0, i, count), 1, {.tag = 4});
      if (rank.rank() == 1) {
        std::vector<std::uint64_t> in(count);
        comm.recv(in, 0, {.tag = 4});
        rank.check(in == message(0, i, count), fmt::format("message {} is wrong", i));
      }
    }
  });
}

// Receives that wait and receives that only start take different ways, and so do messages of
// different lengths. The order within a tag holds among all of them.
TEST(Messages, KeepTheirOrderHoweverTheyAreReceived) {
  run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    std::minstd_rand same(5), own(static_cast<unsigned>(rank.rank()) + 1);
    constexpr std::array<std::size_t, 5> kCounts{0, 1, 25, 900, 3000};
    constexpr int kMessages = 30, kTags = 3;
    for (int round = 0; round < 300; ++round) {
      std::vector<std::vector<std::uint64_t>> data;
      std::array<std::vector<std::size_t>, kTags> of_tag;  // numbers of its messages, in order
      std::vector<int> tags;
      for (int i = 0; i < kMessages; ++i) {
        tags.push_back(static_cast<int>(same() % kTags));
        of_tag[static_cast<std::size_t>(tags.back())].push_back(data.size());
        data.push_back(message(i, round, kCounts[same() % kCounts.size()]));
      }
      // The receiver takes the tags in an order of its own.
      if (rank.rank() == 1) std::shuffle(tags.begin(), tags.end(), own);
      std::array<std::size_t, kTags> next{};
      std::vector<std::vector<std::uint64_t>> got(data.size());
      std::vector<Work> works;
      for (const int tag : tags) {
        const auto t = static_cast<std::size_t>(tag);
        const std::size_t number = of_tag[t][next[t]++];
        const MessageOptions options{.tag = tag};
        // A long send waits for its receive, which may come after those of other tags.
        const bool is_long = data[number].size() > 1000;
        const bool waits = own() % 2 == 0 && (rank.rank() == 1 || !is_long);
        got[number].resize(data[number].size());
        if (rank.rank() == 0) {
          waits ? comm.send(data[number], 1, options)
                : works.push_back(comm.send_async(data[number], 1, options));
        } else {
          waits ? static_cast<void>(comm.recv(got[number], 0, options))
                : works.push_back(comm.recv_async(got[number], 0, options));
        }
      }
      for (Work& work : works) work.wait();
      if (rank.rank() == 1) rank.check(got == data, fmt::format("round {} is wrong", round));
    }
  });
}

TEST(Messages, FromAnySourceSayWhoSentThem) {
  run_job({.size = 4}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    for (const std::size_t count : {3, 30'000}) {
      if (rank.rank() != 2) {
        comm.send(message(rank.rank(), 6, count), 2, {.tag = 6});
      } else {
        std::set<int> sources;
        for (int i = 0; i < 3; ++i) {
          std::vector<std::uint64_t> in(count);
          const Received received = comm.recv(in, kAnySource, {.tag = 6});
          sources.insert(received.source);
          rank.check(in == message(received.source, 6, count), "a message is wrong");
        }
        rank.check(sources == std::set<int>{0, 1, 3}, "not everybody's message came");
      }
      comm.barrier();
    }
  });
}

TEST(Messages, AsyncOnesSayWhoSentThemWhenTheyHaveCome) {
  run_job({.size = 3}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    for (const std::size_t count : {3, 30'000}) {
      std::uint64_t go = count;
      if (rank.rank() != 1) {
        comm.recv(scalar(go), 1);  // not before it is asked
        const auto out = message(rank.rank(), 4, count);
        Work sends = comm.send_async(out, 1, {.tag = rank.rank()});
        sends.wait();
        rank.check(!sends.received(), "a send says that something was received");
      } else {
        std::vector<std::uint64_t> in(count);
        for (const int sender : {2, 0}) {
          Work work = comm.recv_async(in, kAnySource, {.tag = sender});
          rank.check(!work.received(), "who sent is known before anything was");
          comm.send(scalar(go), sender);
          work.wait();
          const auto received = work.received();
          rank.check(received && received->source == sender && received->tag == sender,
                     "it does not say who sent");
          rank.check(in == message(sender, 4, count), "a message is wrong");
        }
      }
      comm.barrier();
    }
  });
}

// An asynchronous receive whose message has arrived ends at its start.
TEST(Messages, AsyncOnesThatHaveComeBeforeSayWhoSentThem) {
  run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    for (const std::size_t count : {0, 3, 1500, 30'000}) {
      std::vector<std::uint64_t> in(count);
      if (rank.rank() == 0) {
        const auto out = message(0, 7, count);
        Work sends = comm.send_async(out, 1, {.tag = 7});
        sends.wait();
        comm.barrier();
        continue;
      }
      static_cast<void>(comm.probe(0, {.tag = 7}));
      Work work = comm.recv_async(in, kAnySource, {.tag = kAnyTag});
      Work moved = std::move(work);
      rank.check(!work.received(), "a Work that was moved from tells who sent");  // NOLINT
      bool is_told = false;
      moved.on_done([&] { is_told = true; });
      moved.wait();
      const auto received = moved.received();
      rank.check(is_told, "on_done did not run");
      rank.check(
          received && received->source == 0 && received->tag == 7 && received->count == count,
          "it does not say who sent");
      rank.check(in == message(0, 7, count), "a message is wrong");
      comm.barrier();
    }
  });
}

TEST(Messages, LongOnesBothWaysAtOnceFinish) {
  for (const char* engine : {"shm", "algorithm"}) {
    run_job({.size = 2, .engines = {engine}}, [](Rank& rank) {
      World world = rank.join();
      auto& comm = world.communicator();
      const int peer = 1 - rank.rank();
      const std::size_t count = std::size_t{8} << 20;  // 64 MiB
      const auto out = message(rank.rank(), 1, count);
      std::vector<std::uint64_t> in(count);
      Work sends = comm.send_async(out, peer, {.tag = 1});
      Work receives = comm.recv_async(in, peer, {.tag = 1});
      receives.wait();
      sends.wait();
      rank.check(in == message(peer, 1, count), "64 MiB are wrong");
      std::fill(in.begin(), in.end(), 0);
      comm.send_recv(out, in, peer);
      rank.check(in == message(peer, 1, count), "64 MiB by send_recv are wrong");
    });
  }
}

TEST(Messages, OfAnExchangeArriveInWhateverOrder) {
  run_job({.size = 4}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    for (const std::size_t count : {0, 3, 100'000}) {
      // Two to each and from each, oneself too; what comes is listed the other way round.
      std::vector<std::vector<std::uint64_t>> out, in(8, std::vector<std::uint64_t>(count));
      std::vector<Outgoing> outgoing;
      std::vector<Incoming> incoming;
      for (int peer = 0; peer < 4; ++peer) {
        for (const std::uint64_t k : {0, 1}) out.push_back(message(rank.rank(), 10 * k + 7, count));
      }
      for (std::size_t i = 0; i < 8; ++i) outgoing.push_back({out[i], static_cast<int>(i / 2)});
      for (std::size_t i = 0; i < 8; ++i) incoming.push_back({in[i], 3 - static_cast<int>(i / 2)});
      comm.exchange(outgoing, incoming, {.tag = 4});
      for (std::size_t i = 0; i < 8; ++i) {
        const int source = 3 - static_cast<int>(i / 2);
        rank.check(in[i] == message(source, 10 * (i % 2) + 7, count), fmt::format("message {}", i));
      }
      // In place around the ring.
      auto both = message(rank.rank(), 1, count);
      const Outgoing sent{both, (rank.rank() + 1) % 4};
      const Incoming received{both, (rank.rank() + 3) % 4};
      comm.exchange({&sent, 1}, {&received, 1});
      rank.check(both == message((rank.rank() + 3) % 4, 1, count), "in place");
    }
    comm.exchange({}, {});
  });
}

TEST(Messages, InARingAndToOneselfArrive) {
  run_job({.size = 5}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    const int next = (rank.rank() + 1) % 5;
    const int before = (rank.rank() + 4) % 5;
    for (const std::size_t count : {0, 1, 9, 100'000}) {
      std::vector<std::uint64_t> in(count);
      comm.send_recv(message(rank.rank(), 2, count), next, in, before, {.tag = 2});
      rank.check(in == message(before, 2, count), fmt::format("{} around the ring", count));
      auto both = message(rank.rank(), 3, count);
      comm.send_recv(both, next, both, before);
      rank.check(both == message(before, 3, count), fmt::format("{} in place", count));
      std::fill(in.begin(), in.end(), 0);
      comm.send_recv(message(rank.rank(), 7, count), in, rank.rank());
      rank.check(in == message(rank.rank(), 7, count), fmt::format("{} to oneself", count));
    }
  });
}

// A message without a receive must neither block others nor use unlimited memory.
TEST(Messages, UnreceivedOnesHarmNothing) {
  run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    const auto lost = message(0, 9, 100);
    if (rank.rank() == 0) {
      for (int i = 0; i < 50; ++i) comm.send(lost, 1, {.tag = 9});
    }
    for (int round = 0; round < 20; ++round) {
      const std::string wrong = wrong_results(comm, round, 900);
      rank.check(wrong.empty(), wrong);
      std::vector<int> x{rank.rank()};
      comm.send_recv(x, x, 1 - rank.rank());
      rank.check(x[0] == 1 - rank.rank(), "a message behind unreceived ones is wrong");
    }
  });
}

}  // namespace
}  // namespace hocket::multiprocess
