// The engines of a job, and the carriers of its messages: with the build's own engines, and with
// scripted ones.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "calls/compose/providers.h"
#include "calls/world/job_engines.h"
#include "hocket/error.h"

namespace hocket::world {
namespace {

using engine::Distance;
using engine::ProviderList;
using engine::Ranks;
using engine::Use;
using Names = std::vector<std::string>;

JobEngines chosen(const Names& wanted, Ranks ranks, const std::string& algorithm = "") {
  InitOptions options;
  options.engines = wanted;
  base::Config config;
  config.algorithm = algorithm;
  return {compose::make_providers({}), options, config, ranks};
}

std::string near(const JobEngines& engines) { return std::string(engines.near()->name()); }
std::string far(const JobEngines& engines) {
  return engines.far() ? std::string(engines.far()->name()) : "none";
}

TEST(JobEngines, WhoAsksForNothingHasTheUsual) {
  EXPECT_EQ(chosen({}, Ranks::kProcesses).names(), (Names{"shm", "peer", "nccl"}));
  EXPECT_EQ(chosen({}, Ranks::kThreads).names(), (Names{"local", "peer", "nccl"}));
}

TEST(JobEngines, ForcedAlgorithmsNeedAnEngineThatHasThem) {
  EXPECT_EQ(chosen({}, Ranks::kProcesses, "ring").names(), (Names{"algorithm", "peer", "nccl"}));
  EXPECT_EQ(chosen({}, Ranks::kThreads, "ring").names(), (Names{"local", "peer", "nccl"}));
}

TEST(JobEngines, WhoAsksForGpusAloneHasTheHostsToo) {
  EXPECT_EQ(chosen({"nccl"}, Ranks::kProcesses).names(), (Names{"nccl", "shm"}));
  EXPECT_EQ(chosen({"peer"}, Ranks::kThreads).names(), (Names{"peer", "local"}));
}

TEST(JobEngines, OneThatThereIsNotIsRefusedWithThoseThatThereAre) {
  try {
    chosen({"ucx"}, Ranks::kThreads);
    ADD_FAILURE() << "threads have no UCX";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(),
                 "there is no engine \"ucx\" for ranks that are threads; there are: shm, local, "
                 "algorithm, peer, nccl");
  }
}

TEST(JobEngines, TheNearestCarriesMessagesWithinAHost) {
  EXPECT_EQ(near(chosen({"shm", "local"}, Ranks::kThreads)), "local");
  EXPECT_EQ(near(chosen({"algorithm"}, Ranks::kThreads)), "shm");
  EXPECT_EQ(near(chosen({"ucx", "shm"}, Ranks::kProcesses)), "shm");
  EXPECT_EQ(near(chosen({"mpi", "ucx"}, Ranks::kProcesses)), "shm");
  EXPECT_EQ(near(chosen({"ucx", "peer"}, Ranks::kProcesses)), "ucx");
  EXPECT_TRUE(chosen({"ucx", "peer"}, Ranks::kProcesses).is_one_carrier());
}

TEST(JobEngines, OtherHostsAreReachedByWhatIsThereForThat) {
  JobEngines usual = chosen({}, Ranks::kProcesses);
  EXPECT_EQ(far(usual), "none");
  usual.span_hosts();
  EXPECT_EQ(far(usual), "ucx");
  EXPECT_EQ(usual.names(), (Names{"shm", "peer", "nccl", "ucx"}));
  JobEngines asked = chosen({"mpi"}, Ranks::kProcesses);
  asked.span_hosts();
  EXPECT_EQ(far(asked), "ucx");
  EXPECT_EQ(asked.names(), Names{"mpi"});
  EXPECT_EQ(far(chosen({"shm", "ucx"}, Ranks::kProcesses)), "ucx");
}

// --- Scripted -----------------------------------------------------------------------------------

class Scripted final : public engine::Provider {
 public:
  Scripted(std::string name, Distance reach, std::size_t bytes)
      : name_(std::move(name)), reach_(reach), bytes_(bytes) {}
  std::string_view name() const noexcept override { return name_; }
  Use use(Ranks) const noexcept override { return Use::kWhenAsked; }
  std::optional<Engine> probe(const Machine&) const override { return std::nullopt; }
  Distance reach() const noexcept override { return reach_; }
  std::size_t group_bytes(int members) const noexcept override {
    return bytes_ * static_cast<std::size_t>(members);
  }

  bool introduces() const noexcept override { return true; }
  std::vector<std::byte> join(const engine::JobSite& site) override {
    if (name_ == "missing") throw RendezvousError("there is no library for it");
    joined_as_ = site.rank;
    return {std::byte{42}};
  }
  void meet(const std::vector<std::vector<std::byte>>& cards) override { met_ = cards; }

  int joined_as_ = -1;
  std::vector<std::vector<std::byte>> met_;

 private:
  const std::string name_;
  const Distance reach_;
  const std::size_t bytes_;
};

JobEngines with_scripted(const std::shared_ptr<Scripted>& scripted, const Names& wanted) {
  ProviderList all = compose::make_providers({});
  all.push_back(scripted);
  InitOptions options;
  options.engines = wanted;
  return {all, options, {}, Ranks::kProcesses};
}

TEST(JobEngines, AnotherCarrierBetweenHostsTakesThePlaceOfTheUsual) {
  const auto other = std::make_shared<Scripted>("other", Distance::kHosts, 0);
  JobEngines engines = with_scripted(other, {"shm", "other"});
  engines.span_hosts();
  EXPECT_EQ(far(engines), "other");
  EXPECT_EQ(near(engines), "shm");
}

TEST(JobEngines, ThoseThatNeedMemoryHaveIt) {
  const auto needy = std::make_shared<Scripted>("needy", Distance::kProcess, 100);
  const JobEngines engines = with_scripted(needy, {"needy", "shm"});
  ASSERT_EQ(engines.with_memory().size(), 2U);
  EXPECT_EQ(engines.with_memory()[1], needy);
  EXPECT_EQ(with_scripted(needy, {"shm"}).with_memory().size(), 1U);
}

TEST(JobEngines, WhoIsAloneMeetsItself) {
  const auto one = std::make_shared<Scripted>("one", Distance::kProcess, 0);
  introduce_engines(
      with_scripted(one, {"one"}), nullptr, {}, base::Deadline::in(std::chrono::seconds(1)));
  EXPECT_EQ(one->joined_as_, 0);
  ASSERT_EQ(one->met_.size(), 1U);
  EXPECT_EQ(one->met_[0], std::vector<std::byte>{std::byte{42}});
}

TEST(JobEngines, WhatIsMissingIsSaid) {
  const auto missing = std::make_shared<Scripted>("missing", Distance::kProcess, 0);
  try {
    introduce_engines(with_scripted(missing, {"missing"}),
                      nullptr,
                      {},
                      base::Deadline::in(std::chrono::seconds(1)));
    ADD_FAILURE() << "it has not been missed";
  } catch (const RendezvousError& error) {
    EXPECT_NE(std::string(error.what()).find("there is no library for it"), std::string::npos);
  }
}

}  // namespace
}  // namespace hocket::world
