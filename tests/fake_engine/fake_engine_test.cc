// An engine that is added by the steps of docs/adding-an-engine.md, in a separate list. Programs
// find it by its name, and it carries their calls.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "calls/compose/providers.h"
#include "calls/joining/thread_team.h"
#include "engines/algorithm/algorithm_engine.h"
#include "fake_engine/provider.h"
#include "foundation/cuda/memory.h"
#include "foundation/cuda/stream.h"
#include "hocket/hocket.h"

namespace hocket {
namespace {

using engines::mail::MailProvider;

// The list of providers, with one more.
world::MakeProviders with(const std::shared_ptr<MailProvider>& mail) {
  return [mail](const std::vector<std::string>& folders) {
    engine::ProviderList all = compose::make_providers(folders);
    all.push_back(mail);
    return all;
  };
}

InitOptions by(const std::string& engine) {
  InitOptions options;
  options.engines = {engine};
  return options;
}

TEST(FakeEngine, CarriesWhatProgramsCall) {
  const auto mail = std::make_shared<MailProvider>();
  joining::run_threads(
      3,
      [](Communicator& comm) {
        std::vector<double> values(1000, comm.rank() + 1);
        comm.all_reduce(values);
        EXPECT_EQ(values, std::vector<double>(1000, 6));
        const int next = (comm.rank() + 1) % comm.size();
        const int before = (comm.rank() + 2) % comm.size();
        std::vector<int> sent(10, comm.rank());
        std::vector<int> got(10);
        const Outgoing out{.in = sent, .destination = next};
        const Incoming in{.out = got, .source = before};
        comm.exchange({&out, 1}, {&in, 1});
        EXPECT_EQ(got, std::vector<int>(10, before));
        Communicator half = comm.split({.color = comm.rank() % 2});
        std::vector<int> one{1};
        half.all_reduce(one);
        EXPECT_EQ(one[0], half.size());
      },
      by("mail"),
      with(mail));
  EXPECT_EQ(mail->groups(), 6);  // of three ranks, in two groups each
}

// An engine with code for a single collective.
class OnlyBroadcasts final : public engine::CollectiveEngine {
 public:
  OnlyBroadcasts(std::unique_ptr<engine::PointToPoint> messages, const engine::GroupFacts& facts)
      : messages_(std::move(messages)), algorithms_(*messages_, facts) {}
  std::string_view name() const noexcept override { return "broadcasts"; }
  std::optional<engine::Score> score(const engine::Signature& s) const noexcept override {
    return s.kind == engine::Kind::kBroadcast ? algorithms_.score(s) : std::nullopt;
  }
  engine::Task start(const engine::Call& call) override { return algorithms_.start(call); }

 private:
  const std::unique_ptr<engine::PointToPoint> messages_;
  algorithm::AlgorithmEngine algorithms_;
};

class BroadcastProvider final : public engine::Provider {
 public:
  std::string_view name() const noexcept override { return "broadcasts"; }
  engine::Use use(engine::Ranks ranks) const noexcept override { return mail_.use(ranks); }
  std::optional<Engine> probe(const Machine& machine) const override {
    return mail_.probe(machine);
  }
  engine::Distance reach() const noexcept override { return engine::Distance::kProcess; }
  std::unique_ptr<engine::PointToPoint> make_messages(const engine::GroupSite& site) override {
    return mail_.make_messages(site);
  }
  bool has_collectives() const noexcept override { return true; }
  std::unique_ptr<engine::CollectiveEngine> make_collectives(
      const engine::GroupSite& site) override {
    ++collectives;
    return std::make_unique<OnlyBroadcasts>(others_.make_messages(site), site.facts);
  }

  std::atomic<int> collectives{0};

 private:
  MailProvider mail_;
  MailProvider others_;  // with separate messages
};

TEST(FakeEngine, WhatAnEngineHasNoCodeForIsCarriedByMessages) {
  const auto provider = std::make_shared<BroadcastProvider>();
  joining::run_threads(
      3,
      [](Communicator& comm) {
        std::vector<int> values(100, comm.rank() + 1);
        comm.broadcast(values, {.root = 2});
        EXPECT_EQ(values, std::vector<int>(100, 3));
        comm.all_reduce(values);
        EXPECT_EQ(values, std::vector<int>(100, 9));
        comm.scan(values);
        EXPECT_EQ(values, std::vector<int>(100, 9 * (comm.rank() + 1)));
        comm.barrier();
      },
      by("broadcasts"),
      [provider](const std::vector<std::string>& folders) {
        engine::ProviderList all = compose::make_providers(folders);
        all.push_back(provider);
        return all;
      });
  EXPECT_EQ(provider->collectives, 3);
}

TEST(FakeEngine, IsThereWhenAskedForAndNotElse) {
  const auto mail = std::make_shared<MailProvider>();
  joining::run_threads(2, [](Communicator& comm) { comm.barrier(); }, {}, with(mail));
  EXPECT_EQ(mail->groups(), 0);
  try {
    run_threads(2, [](Communicator&) {}, by("mail"));
    ADD_FAILURE() << "the library's own list has it";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("there is no engine \"mail\""), std::string::npos);
  }
}

TEST(FakeEngine, ABadSettingOfItsOwnIsRefused) {
  ::setenv("HOCKET_TEST_MAIL_GPUS", "often", 1);
  EXPECT_THROW(joining::run_threads(
                   2, [](Communicator&) {}, by("mail"), with(std::make_shared<MailProvider>())),
               InvalidArgument);
  ::unsetenv("HOCKET_TEST_MAIL_GPUS");
}

// On the fake driver's GPUs, whose memory is the host's.
TEST(FakeEngine, MovesGpusArrays) {
  const cuda::FoundDriver found = cuda::Driver::find();
  if (!found.driver) GTEST_SKIP() << found.why_not;
  if (found.driver->path().find("fake_cuda") == std::string::npos) {
    GTEST_SKIP() << "the host does not reach this GPU's memory";
  }
  ::setenv("HOCKET_TEST_MAIL_GPUS", "1", 1);
  const auto mail = std::make_shared<MailProvider>();
  joining::run_threads(
      2,
      [&](Communicator& comm) {
        const auto device = std::make_shared<cuda::DeviceContext>(found.driver, comm.rank());
        const cuda::DeviceGuard guard(*device);
        const cuda::OwnedStream stream(device);
        constexpr std::size_t kCount = 100'000;
        const cuda::DeviceBuffer array(device, kCount * sizeof(int));
        auto* values = reinterpret_cast<int*>(array.data());
        std::fill_n(values, kCount, comm.rank() + 7);
        comm.broadcast(ArrayView(values, kCount, DType::kInt32, MemoryKind::kCuda),
                       {.root = 1, .stream = StreamRef(stream.get())});
        EXPECT_EQ(std::count(values, values + kCount, 8), std::ptrdiff_t{kCount});
      },
      by("mail"),
      with(mail));
  EXPECT_EQ(mail->device_groups(), 2);
  ::unsetenv("HOCKET_TEST_MAIL_GPUS");
}

}  // namespace
}  // namespace hocket
