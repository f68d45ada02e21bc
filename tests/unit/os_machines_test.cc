// Decisions on machines that are not at hand: who spins, who yields, where memory lies.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "foundation/os/machine/allotment.h"
#include "foundation/os/machine/topology.h"
#include "pretended_machine.h"

namespace hocket::os {
namespace {

using test::MachineShape;
using test::PretendedMachine;

const MachineShape kLaptop{.cores = 4, .single = 8};                 // 4 + 8 hybrid cores
const MachineShape kDesktop{.clusters = 2, .cores = 8};              // 16 cores, two chiplets
const MachineShape kServer{.sockets = 2, .cores = 64};               // two sockets of 64 cores
const MachineShape kEpyc{.nodes = 4, .clusters = 4, .cores = 8};     // 128 cores, NPS4
const MachineShape kHuge{.sockets = 4, .cores = 160, .threads = 2};  // 1,280 processors
const MachineShape kThirtyTwo{.cores = 16};

// One letter a rank: it spins, shares processors, or shares time.
std::string letters(const std::vector<Allotment>& ranks) {
  std::string letters;
  for (const Pace pace : paces_of(ranks)) {
    letters += pace == Pace::kSpins ? 's' : pace == Pace::kSharesProcessors ? 'p' : 't';
  }
  return letters;
}

std::string times(int count, char letter) {
  return std::string(static_cast<std::size_t>(count), letter);
}

// Each rank gets `width` separate processors, counted from 0.
std::vector<std::string> in_turn(int ranks, int width) {
  std::vector<std::string> lists;
  for (int i = 0; i < ranks; ++i)
    lists.push_back(fmt::format("{}-{}", i * width, (i + 1) * width - 1));
  return lists;
}

std::vector<std::string> repeated(const std::vector<std::pair<int, std::string>>& parts) {
  std::vector<std::string> lists;
  for (const auto& [count, list] : parts)
    lists.insert(lists.end(), static_cast<std::size_t>(count), list);
  return lists;
}

struct Case {
  const char* name;
  MachineShape shape;
  std::vector<std::string> lists;  // of each rank
  std::string paces;
};

class Binding : public testing::TestWithParam<Case> {};

TEST_P(Binding, DecidesWhoSpins) {
  const PretendedMachine machine(GetParam().shape);
  EXPECT_EQ(letters(machine.ranks(GetParam().lists)), GetParam().paces);
}

INSTANTIATE_TEST_SUITE_P(
    Machines,
    Binding,
    testing::Values(
        Case{"LaptopUnbound", kLaptop, repeated({{16, "0-15"}}), times(16, 's')},
        Case{"LaptopOneRankTooMany", kLaptop, repeated({{17, "0-15"}}), times(17, 'p')},
        Case{"LaptopQuickCoresOnly", kLaptop, repeated({{8, "0-7"}}), times(8, 's')},
        Case{"DesktopByCluster", kDesktop, repeated({{8, "0-7"}, {8, "8-15"}}), times(16, 's')},
        Case{"HocketRunTwoEach", kThirtyTwo, in_turn(16, 2), times(16, 's')},
        Case{"HocketRunTwoOrThreeEach",
             kThirtyTwo,
             {"0-1", "2-4", "5-7", "8-9", "10-12", "13-15", "16-17", "18-20"},
             times(8, 's')},
        Case{"SlurmTwoThreadsOfACore",
             kThirtyTwo,
             {"0,16", "1,17", "2,18", "3,19", "4,20", "5,21", "6,22", "7,23"},
             times(8, 's')},
        Case{"SlurmAllTasksInOneCpuset", kServer, repeated({{8, "40-47"}}), times(8, 's')},
        Case{"SlurmMoreTasksThanCpus", kServer, repeated({{9, "40-47"}}), times(9, 'p')},
        Case{"MpirunTwoElementsEach", kServer, in_turn(64, 2), times(64, 's')},
        Case{"MpirunOneEach", kServer, in_turn(256, 1), times(256, 's')},
        Case{"MpirunRankASocket", kServer, {"0-63,128-191", "64-127,192-255"}, "ss"},
        Case{"MpirunTwoJobsOnTheSameCores", kServer, repeated({{2, "0"}, {2, "1"}}), "pppp"},
        Case{"TorchrunUnbound", kEpyc, repeated({{8, "0-255"}}), times(8, 's')},
        Case{"KubernetesStaticCpus", kEpyc, repeated({{4, "3,5,131,133"}}), times(4, 's')},
        Case{"EightOnOneAndEightOnSixteen",
             kThirtyTwo,
             repeated({{8, "0"}, {8, "1-16"}}),
             times(8, 'p') + times(8, 's')},
        Case{"TheCrowdedMayUseMoreThanTheFree",
             kThirtyTwo,
             repeated({{3, "0-1"}, {1, "1-3"}, {1, "2"}}),
             "pppss"},
        Case{"ChainThatFits", kThirtyTwo, {"0", "0-1", "1-2", "2-3"}, "ssss"},
        Case{"ChainThatDoesNot", kThirtyTwo, {"0", "0-1", "1", "2-3"}, "ppps"},
        Case{"MoreRanksThanCores", MachineShape{.threads = 1}, repeated({{4, "0"}}), "pppp"},
        Case{"BeyondCpuSetT", kHuge, in_turn(640, 2), times(640, 's')},
        Case{"BeyondCpuSetTCrowded", kHuge, repeated({{3, "1100-1101"}}), "ppp"}),
    [](const testing::TestParamInfo<Case>& tested) { return tested.param.name; });

// --- Time ---------------------------------------------------------------------------------------

struct Quota {
  const char* name;
  bool old;  // version 1
  std::string group;
  std::vector<std::string> quotas;  // from the innermost group outwards
  int ranks;
  char pace;
};

class Granted : public testing::TestWithParam<Quota> {};

TEST_P(Granted, TimeDecidesWhoSpins) {
  const Quota& quota = GetParam();
  const PretendedMachine machine({.cores = 32});
  quota.old ? machine.put_into_old_group(quota.group, quota.quotas)
            : machine.put_into_group(quota.group, quota.quotas);
  EXPECT_EQ(letters(machine.unbound(quota.ranks)), times(quota.ranks, quota.pace));
}

INSTANTIATE_TEST_SUITE_P(
    Groups,
    Granted,
    testing::Values(
        Quota{"FourForEight", false, "/pod/box", {"400000 100000"}, 8, 't'},
        Quota{"FourForFour", false, "/pod/box", {"400000 100000"}, 4, 's'},
        Quota{"None", false, "/pod/box", {"", ""}, 64, 's'},
        Quota{"OfTheGroupAbove", false, "/slice/pod/box", {"", "400000 100000"}, 8, 't'},
        Quota{"OfTheTop", false, "/slice/pod/box", {"", "", "200000 100000"}, 3, 't'},
        Quota{"TheLeastCounts", false, "/pod/box", {"800000 100000", "400000 100000"}, 8, 't'},
        Quota{"OfTheMountPoint", false, "/", {"250000 100000"}, 3, 't'},
        Quota{"OldFourForEight", true, "", {"400000"}, 8, 't'},
        Quota{"OldFourForFour", true, "", {"400000"}, 4, 's'},
        Quota{"OldNone", true, "/inner", {"", ""}, 64, 's'},
        Quota{"OldOfTheGroupAbove", true, "/inner", {"", "400000"}, 8, 't'}),
    [](const testing::TestParamInfo<Quota>& tested) { return tested.param.name; });

// The containers of a pod have groups of their own, and a rank counts in its own alone.
TEST(Granted, RanksOfOtherGroupsDoNotCount) {
  std::vector<Allotment> ranks(4);
  for (int i = 0; i < 4; ++i) {
    Allotment& rank = ranks[static_cast<std::size_t>(i)];
    for (int processor = 0; processor < 8; ++processor) rank.processors.add(processor);
    rank.limits = {{.group = i < 2 ? 7U : 9U, .processors = i < 2 ? 2.0 : 1.0}};
  }
  EXPECT_EQ(letters(ranks), "sstt");
}

// --- Places -------------------------------------------------------------------------------------

struct Place {
  const char* name;
  MachineShape shape;
  std::string list;
  int node;
  int socket;
};

class Where : public testing::TestWithParam<Place> {};

TEST_P(Where, ARankIsOfANodeAndASocket) {
  const PretendedMachine machine(GetParam().shape);
  const Allotment rank = machine.ranks({GetParam().list}).front();
  EXPECT_EQ(rank.node, GetParam().node);
  EXPECT_EQ(rank.socket, GetParam().socket);
}

INSTANTIATE_TEST_SUITE_P(
    Machines,
    Where,
    testing::Values(
        Place{"Laptop", kLaptop, "2-9", 0, 0},
        Place{"Desktop", kDesktop, "0-31", 0, 0},
        Place{"FirstSocket", kServer, "0-63,128-191", 0, 0},
        Place{"SecondSocket", kServer, "70,198", 1, 64},
        Place{"BothSockets", kServer, "63-64", -1, -1},
        Place{"ThirdNode", kEpyc, "64-95", 2, 0},
        Place{"TwoNodes", kEpyc, "0-63", -1, 0},
        Place{"NoNodes", MachineShape{.sockets = 2, .nodes = 0, .cores = 4}, "4-7", -1, 4},
        Place{"FarEnd", kHuge, "639,1279", 3, 480}),
    [](const testing::TestParamInfo<Place>& tested) { return tested.param.name; });

TEST(Machine, IsToldAsItIs) {
  const PretendedMachine machine(kEpyc);
  machine.put_into_group("/pod", {"1600000 100000"});
  const auto all = ProcessorSet::parse("0-255");
  const Processors found = find_processors(machine.root(), *all);
  EXPECT_EQ(found.online, 256);
  EXPECT_EQ(found.cores, 128);
  EXPECT_EQ(found.packages, 1);
  EXPECT_EQ(found.numa_nodes, 4);
  EXPECT_EQ(found.quota, 16.0);
  EXPECT_EQ(found.spinning_ranks, 16);
  ASSERT_EQ(found.caches.size(), 1U);
  EXPECT_EQ(found.caches[0].instances, 16);
}

// --- The values ---------------------------------------------------------------------------------

TEST(ProcessorSet, ReadsAndWritesLists) {
  for (const char* text : {"0", "0-3,8", "1,3,5", "63-64", "1023-1025,8191"}) {
    const auto set = ProcessorSet::parse(text);
    ASSERT_TRUE(set) << text;
    EXPECT_EQ(set->text(), text);
  }
  for (const char* text : {"x", "3-1", "-1", "1-", "70000", "0-70000", "1,,2", "1;2"}) {
    EXPECT_FALSE(ProcessorSet::parse(text)) << text;
  }
}

TEST(ProcessorSet, OfThisThreadIsNotEmpty) { EXPECT_GT(ProcessorSet::allowed().count(), 0); }

TEST(Allotment, ComesAsItWent) {
  const Allotment sent{
      .processors = *ProcessorSet::parse("0-3,2000"),
      .limits = {{.group = 1234567890123, .processors = 2.5}, {.group = 4, .processors = 64}},
      .node = 3,
      .socket = -1};
  const auto came = to_allotment(to_text(sent));
  ASSERT_TRUE(came);
  EXPECT_EQ(came->processors, sent.processors);
  EXPECT_EQ(came->node, 3);
  EXPECT_EQ(came->socket, -1);
  ASSERT_EQ(came->limits.size(), 2U);
  EXPECT_EQ(came->limits[0].group, 1234567890123U);
  EXPECT_EQ(came->limits[0].processors, 2.5);
}

TEST(Allotment, OfDamagedTextIsRefused) {
  for (const char* text :
       {"", " ", "0-3", "0-3 0", "x 0 0", "0 0 0 5", "0 0 0 5 x", "0 0 0 5 -1", "0 0 0 5 nan"}) {
    EXPECT_FALSE(to_allotment(text)) << text;
  }
}

}  // namespace
}  // namespace hocket::os
