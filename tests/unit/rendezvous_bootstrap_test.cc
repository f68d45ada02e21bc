// The bootstrap by a store, and worlds set up by it.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "hocket/bootstrap.h"
#include "hocket/error.h"
#include "rendezvous_stores.h"

namespace hocket {
namespace {

using testing::in_threads;
using testing::kPatience;

TEST(StoreBootstrap, BroadcastsTheRootsBytes) {
  constexpr int kRanks = 4;
  const auto store = make_memory_store();
  in_threads(kRanks, [&](int rank) {
    const auto bootstrap = make_store_bootstrap(store, rank, kRanks, kPatience);
    EXPECT_EQ(bootstrap->rank(), rank);
    EXPECT_EQ(bootstrap->size(), kRanks);
    for (int root = 0; root < kRanks; ++root) {
      std::array<std::byte, 5> bytes{};
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<std::byte>(rank * 16 + root * 5 + static_cast<int>(i));
      }
      bootstrap->broadcast(bytes, root);
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        EXPECT_EQ(static_cast<int>(bytes[i]), root * 16 + root * 5 + static_cast<int>(i));
      }
      bootstrap->broadcast({}, root);
    }
  });
}

TEST(StoreBootstrap, FoldsIntegers) {
  constexpr int kRanks = 3;
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  const auto store = make_memory_store();
  in_threads(kRanks, [&](int rank) {
    const auto bootstrap = make_store_bootstrap(store, rank, kRanks, kPatience);
    const std::vector<std::int64_t> own{rank + 1, -10 * rank, rank == 1 ? kMost : 1};
    const auto folded = [&](Bootstrap::Fold fold) {
      std::vector<std::int64_t> values = own;
      bootstrap->all_reduce(values, fold);
      return values;
    };
    EXPECT_EQ(folded(Bootstrap::Fold::kSum),
              (std::vector<std::int64_t>{6, -30, std::numeric_limits<std::int64_t>::min() + 1}));
    EXPECT_EQ(folded(Bootstrap::Fold::kMin), (std::vector<std::int64_t>{1, -20, 1}));
    EXPECT_EQ(folded(Bootstrap::Fold::kMax), (std::vector<std::int64_t>{3, 0, kMost}));
  });
}

TEST(StoreBootstrap, SaysWhoBringsAnotherLength) {
  const auto store = make_memory_store();
  in_threads(2, [&](int rank) {
    const auto bootstrap = make_store_bootstrap(store, rank, 2, kPatience);
    std::vector<std::int64_t> values(rank == 0 ? 2 : 3);
    const std::string message =
        testing::message_of([&] { bootstrap->all_reduce(values, Bootstrap::Fold::kSum); });
    EXPECT_NE(message.find("rank " + std::to_string(1 - rank) + " brought another number"),
              std::string::npos)
        << message;
  });
}

TEST(StoreBootstrap, RefusesRanksOutOfRange) {
  const auto store = make_memory_store();
  EXPECT_THROW(make_store_bootstrap(store, 2, 2), InvalidArgument);
  EXPECT_THROW(make_store_bootstrap(store, 0, 0), InvalidArgument);
}

// A process group that says nonsense of itself.
class Nonsense final : public Bootstrap {
 public:
  Nonsense(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void broadcast(std::span<std::byte>, int) override {}
  void all_reduce(std::span<std::int64_t> values, Fold) override {
    if (size_ == 2) values[1] = 1;  // the least size
  }

 private:
  int rank_, size_;
};

TEST(Bootstrap, OfOneRankIsAWorldOfOne) {
  const auto bootstrap = make_store_bootstrap(make_memory_store(), 0, 1);
  World world = init(*bootstrap, {.segment_bytes = std::size_t{1} << 20});
  EXPECT_EQ(world.size(), 1);
  EXPECT_EQ(world.launch().launcher, "bootstrap");
}

TEST(Bootstrap, NonsenseIsRefused) {
  Nonsense outside(3, 3);
  EXPECT_THROW(init(outside), InvalidArgument);
  Nonsense disagreeing(0, 2);
  const std::string message = testing::message_of([&] { static_cast<void>(init(disagreeing)); });
  EXPECT_NE(message.find("there are 2 ranks here and 1 elsewhere"), std::string::npos) << message;
}

}  // namespace
}  // namespace hocket
