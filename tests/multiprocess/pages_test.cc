// Memory that was released reads zero when it is allocated again, and its neighbours do not change.
// This holds for all page sizes of the kernel, and for locked memory. Run with pages of 4, 16 and
// 64 KiB.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <vector>

#include "collectives.h"
#include "foundation/os/segment.h"
#include "membership/control/host/host.h"
#include "pretended_pages.h"
#include "ranks.h"

#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif

namespace hocket::multiprocess {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 20;

TEST(Pages, AreAsPretended) { EXPECT_EQ(os::page_bytes(), pretended_page()); }

// Checks that exactly the discarded range reads zero.
void expect_discarded(const os::Segment& segment, std::size_t offset, std::size_t bytes) {
  std::memset(segment.data(), 0xaa, segment.size());
  segment.discard(offset, bytes);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < segment.size(); ++i) {
    const bool inside = i >= offset && i < offset + bytes;
    wrong += segment.data()[i] != std::byte(inside ? 0 : 0xaa);
  }
  EXPECT_EQ(wrong, 0) << "of [" << offset << ", " << offset + bytes << ")";
}

void expect_all_discarded(const os::Segment& segment) {
  const std::size_t page = os::page_bytes();
  for (const std::size_t offset : {std::size_t{0}, std::size_t{4096}, page, 3 * page + 256}) {
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{100}, page - 1, page, 5 * page + 1}) {
      expect_discarded(segment, offset, bytes);
    }
  }
  expect_discarded(segment, 0, segment.size());
}

TEST(Pages, ADiscardedRangeIsZeroAndNothingElse) {
  expect_all_discarded(os::Segment::create(kBytes));
  expect_all_discarded(os::Segment::create_private(kBytes));
}

TEST(Pages, ADiscardedRangeIsZeroWhereMemoryIsLocked) {
  const os::Segment shared = os::Segment::create(kBytes);
  const os::Segment owned = os::Segment::create_private(kBytes);
  if (mlock(shared.data(), kBytes) != 0 || mlock(owned.data(), kBytes) != 0) {
    GTEST_SKIP() << "memory cannot be locked here: see `ulimit -l`";
  }
  expect_all_discarded(shared);
  expect_all_discarded(owned);
}

// Blocks of one stripe, of every size. Neighbours do not follow from sizes.
TEST(Pages, ABlockThatIsTakenAnewIsZeroAndItsNeighboursStay) {
  const control::HostShape shape{.ranks = 1, .stripe_bytes = std::size_t{8} << 20};
  for (const bool shared : {true, false}) {
    const std::size_t bytes = control::HostControl::segment_bytes(shape);
    auto segment = std::make_shared<os::Segment>(shared ? os::Segment::create(bytes)
                                                        : os::Segment::create_private(bytes));
    control::HostControl::format(*segment, shape);
    control::HostControl host(segment, 0);
    host.arrive(0);
    const int holders[] = {0};
    struct Block {
      std::uint64_t offset;
      std::size_t bytes;
      int value;
    };
    std::vector<Block> living;
    for (int round = 0; round < 600; ++round) {
      const std::size_t wanted = 1 + static_cast<std::size_t>(round * 7919 % 90'000);
      const std::uint64_t offset = host.memory.allocate(wanted, holders);
      std::byte* at = host.memory.at(offset);
      ASSERT_EQ(std::count(at, at + wanted, std::byte{}), static_cast<std::ptrdiff_t>(wanted))
          << "round " << round;
      const int value = 1 + round % 250;
      std::memset(at, value, wanted);
      living.push_back({offset, wanted, value});
      if (living.size() < 40) continue;
      const auto leaves = living.begin() + round * 31 % 40;
      for (const Block& block : living) {
        const std::byte* data = host.memory.at(block.offset);
        ASSERT_EQ(std::count(data, data + block.bytes, std::byte(block.value)),
                  static_cast<std::ptrdiff_t>(block.bytes))
            << "round " << round;
      }
      host.memory.release(leaves->offset);
      living.erase(leaves);
    }
  }
}

using Check = std::function<void(bool, const std::string&)>;

// Makes and closes groups and symmetric arrays, beside others that stay.
void come_and_go(const Check& check, Communicator& comm) {
  constexpr std::size_t kCount = 3001;
  auto stays = comm.symmetric().empty<int>(kCount);
  std::fill_n(stays.data<int>(), kCount, comm.rank() + 7);
  Communicator group_that_stays = comm.duplicate();
  for (int round = 0; round < 8; ++round) {
    Communicator group = comm.duplicate();
    const std::string wrong = wrong_results(group, round, 20'000);
    check(wrong.empty(), fmt::format("round {}: {}", round, wrong));
    {
      auto array = group.symmetric().empty<int>(kCount);
      const int* own = array.data<int>();
      check(std::count(own, own + kCount, 0) == kCount, "a new symmetric array is not zero");
      group.barrier();
      std::fill_n(array.data<int>(), kCount, -1);
      group.barrier();
    }
    group.close();
    const std::string beside = wrong_results(group_that_stays, round, 100);
    check(beside.empty(), fmt::format("beside it, round {}: {}", round, beside));
  }
  const int* own = stays.data<int>();
  check(std::count(own, own + kCount, comm.rank() + 7) == kCount, "an array that stayed changed");
  comm.barrier();
}

TEST(Pages, GroupsAndArraysComeAndGoBetweenProcesses) {
  run_job({.size = 3}, [](Rank& rank) {
    World world = rank.join();
    come_and_go([&](bool good, const std::string& what) { rank.check(good, what); },
                world.communicator());
  });
}

TEST(Pages, GroupsAndArraysComeAndGoBetweenThreads) {
  run_threads(3, [](Communicator& comm) {
    come_and_go([](bool good, const std::string& what) { EXPECT_TRUE(good) << what; }, comm);
  });
}

TEST(Pages, GroupsAndArraysComeAndGoInLockedMemory) {
  const auto ranks = run_job({.size = 2}, [](Rank& rank) {
    // ONFAULT locks touched pages alone, as a segment is large.
    if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0) return rank.report("locked", "no");
    World world = rank.join();
    come_and_go([&](bool good, const std::string& what) { rank.check(good, what); },
                world.communicator());
  });
  if (ranks[0].get("locked") == "no") GTEST_SKIP() << "memory cannot be locked: see `ulimit -l`";
}

}  // namespace
}  // namespace hocket::multiprocess
