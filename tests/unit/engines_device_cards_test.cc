// Decisions of GPU engines that follow from the ranks' cards.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "engines/movement/use_of_gpus.h"
#include "engines/mpi/provider.h"
#include "engines/nccl/provider.h"
#include "engines/peer/provider.h"
#include "foundation/base/short_text.h"

namespace hocket::engine {
namespace {

using movement::UseGpus;
using Cards = std::vector<DeviceCard>;

// As NCCL's and peer's cards begin.
struct NcclCard {
  std::int32_t version = 0;
  base::ShortText<160> why_not;
};
DeviceCard nccl(std::int32_t version, const char* why_not = "") {
  NcclCard card{.version = version, .why_not = {}};
  card.why_not = why_not;
  return DeviceCard::of(card);
}
DeviceCard shareable(std::int32_t yes) { return DeviceCard::of(yes); }

// A site with as many ranks as there are cards.
DeviceSite site(const Cards& cards) {
  return {.facts = {.rank = 0, .size = static_cast<int>(cards.size())},
          .world_size = static_cast<int>(cards.size()),
          .cards = cards};
}

TEST(DeviceCards, NcclIsThereWhereAllHaveOneVersion) {
  const engines::nccl::NcclProvider provider({});
  const Cards alike{nccl(22809), nccl(22809)};
  EXPECT_EQ(provider.why_no_device_engine(site(alike)), "");
  DeviceSite sharing = site(alike);
  sharing.shares_gpu = true;
  EXPECT_EQ(provider.why_no_device_engine(sharing), "two ranks use one GPU, which NCCL refuses");
  const Cards differing{nccl(22809), nccl(22703)};
  EXPECT_EQ(provider.why_no_device_engine(site(differing)),
            "rank 0 has version 22809 and rank 1 version 22703");
  const Cards missing{nccl(22809), nccl(0, "it is not installed")};
  EXPECT_EQ(provider.why_no_device_engine(site(missing)), "rank 1: it is not installed");
}

TEST(DeviceCards, OneRankNeedsNcclWhereItIsTheOnlyOne) {
  const engines::nccl::NcclProvider provider({});
  const Cards one{nccl(22809)};
  DeviceSite alone = site(one);
  EXPECT_EQ(provider.why_no_device_engine(alone), "one rank needs no other");
  alone.is_only = true;
  EXPECT_EQ(provider.why_no_device_engine(alone), "");
}

TEST(DeviceCards, KernelsOfOurOwnNeedMemoryThatCanBeShared) {
  const engines::peer::PeerProvider provider;
  const Cards cards{shareable(1), shareable(0)};
  EXPECT_EQ(provider.why_no_device_engine(site(cards)), "a GPU's memory cannot be shared");
}

TEST(DeviceCards, RanksThatDifferInTheUseOfGpusAgreeOnTheLeast) {
  const auto agreed = [](const std::vector<UseGpus>& said) {
    Cards cards;
    for (const UseGpus each : said) cards.push_back(DeviceCard::of(each));
    return movement::agreed_use(cards);
  };
  EXPECT_EQ(agreed({UseGpus::kAlways, UseGpus::kAuto}), UseGpus::kAuto);
  EXPECT_EQ(agreed({UseGpus::kAlways, UseGpus::kNever}), UseGpus::kNever);
  EXPECT_EQ(agreed({UseGpus::kAlways, UseGpus::kAlways}), UseGpus::kAlways);
}

TEST(DeviceCards, MpiSaysWhyNot) {
  const engines::mpi::MpiProvider provider;
  const Cards auto_and_never{DeviceCard::of(UseGpus::kAuto), DeviceCard::of(UseGpus::kNever)};
  EXPECT_EQ(provider.why_no_device_engine(site(auto_and_never)), "HOCKET_MPI_GPUS=never");
  DeviceSite broken = site(auto_and_never);
  broken.has_lost_ranks = true;
  EXPECT_EQ(provider.why_no_device_engine(broken), "MPI has lost a rank");
  const Cards one{DeviceCard::of(UseGpus::kAlways)};
  EXPECT_EQ(provider.why_no_device_engine(site(one)), "one rank needs no other");
}

}  // namespace
}  // namespace hocket::engine
