// Every collective on arrays in GPUs' memory, by every engine there is, against the reference.
#include <gtest/gtest.h>

#include "device_arrays.h"

namespace hocket::gpu {
namespace {

using conformance::Case;
using conformance::Data;
using engine::Kind;

struct Job {
  const char* name;
  int size;
  std::vector<std::string> engines;
};

const std::vector<Job>& jobs() {
  static const std::vector<Job> all{{"host", 2, {"local"}},
                                    {"host", 3, {"local"}},
                                    {"nccl", 1, {"nccl"}},
                                    {"nccl", 2, {"nccl"}},
                                    {"nccl", 4, {"nccl"}},
                                    {"peer", 2, {"peer"}},
                                    {"peer", 3, {"peer"}},
                                    {"peer", 4, {"peer"}},
                                    {"peer", 8, {"peer"}},
                                    {"any", 2, {}},
                                    {"any", 4, {}}};
  return all;
}

class Collectives : public testing::TestWithParam<std::tuple<std::size_t, Kind>> {
 protected:
  void SetUp() override {
    const Machine here = machine();
    if (here.gpus == 0) GTEST_SKIP() << here.why_not;
    const Job& job = jobs()[std::get<0>(GetParam())];
    const bool is_host = job.engines == std::vector<std::string>{"local"};
    const bool is_nccl = job.engines == std::vector<std::string>{"nccl"};
    if (is_nccl && !here.nccl) GTEST_SKIP() << "there is no NCCL";
    if (here.fake && !is_host && !is_nccl) GTEST_SKIP() << "GPUs that are none have no kernels";
    const bool may_share = job.engines == std::vector<std::string>{"peer"};
    if (job.size > here.gpus && !may_share) {
      GTEST_SKIP() << job.size << " GPUs are wanted and there are " << here.gpus;
    }
  }
};

// Arrays large enough for the protocols of large ones, which end in the middle of a vector; in
// place, too.
void add_large(Kind kind, std::vector<Case>& cases) {
  if (kind == Kind::kBarrier) return;
  const bool is_whole = kind == Kind::kAllReduce || kind == Kind::kReduce ||
                        kind == Kind::kBroadcast || kind == Kind::kScan || kind == Kind::kExscan;
  for (const std::size_t count : {std::size_t{1'200'001}, std::size_t{5'300'001}}) {
    if (count > 2'000'000 && !is_whole) continue;  // a rank's share is as large as that
    for (const int form : {0, 1, kind == Kind::kReduceScatter ? 2 : 1}) {
      cases.push_back({.kind = kind,
                       .count = count,
                       .root = 1,
                       .in_place = form > 0,
                       .at_own_part = form == 2,
                       .data = Data::kExact,
                       .seed = 2 * count + 1000 + 2 * cases.size()});
    }
  }
}

// Engines of GPUs may add in any order, so these cases have results that do not depend on it.
std::vector<Case> cases(Kind kind, int size) {
  std::vector<Case> all = conformance::sweep(kind, size);
  if (size > 1) add_large(kind, all);
  // The public call has its parts one after the other.
  if (kind == Kind::kReduceScatterV) {
    std::erase_if(all, [](const Case& c) { return (c.seed & 1) != 0; });
  }
  for (Case& c : all) {
    if (!conformance::reduces(kind) || c.op > ReduceOp::kAvg) continue;
    if (c.op == ReduceOp::kAvg) c.op = ReduceOp::kSum;
    c.data = Data::kExact;
  }
  return all;
}

TEST_P(Collectives, MatchTheReference) {
  const auto [index, kind] = GetParam();
  const Job& job = jobs()[index];
  const bool shares = job.size > machine().gpus;
  const std::string failure = run(job.size, job.engines, [&, kind = kind](GpuRank& self) {
    std::uint64_t sequence = 0;
    for (const Case& c : cases(kind, job.size)) {
      ++sequence;
      DeviceArrays arrays(self, c, sequence);
      // Ranks that share a GPU may wait for each other where one frees memory.
      if (shares) self.comm.barrier();
      // Only GPUs replay; what NCCL lacks is carried by the host where NCCL is alone.
      const bool replays = (job.engines.empty() || job.engines.front() == "peer") &&
                           !engine::is_prefix(kind);  // which the host carries
      arrays.call(sequence % 4 == 0              ? DeviceArrays::Verb::kAsync
                  : sequence % 4 == 1 && replays ? DeviceArrays::Verb::kGraph
                                                 : DeviceArrays::Verb::kBlocking);
      const std::string wrong = arrays.check();
      if (!wrong.empty()) throw std::runtime_error(conformance::describe(c) + ": " + wrong);
      if (shares) self.comm.barrier();
    }
    self.comm.barrier();  // a rank that had no part in the last one would leave too early
  });
  EXPECT_EQ(failure, "");
}

INSTANTIATE_TEST_SUITE_P(Every,
                         Collectives,
                         testing::Combine(testing::Range<std::size_t>(0, jobs().size()),
                                          testing::ValuesIn(conformance::kKinds)),
                         [](const auto& parameters) {
                           const Job& job = jobs()[std::get<0>(parameters.param)];
                           return std::string(job.name) + "_" + std::to_string(job.size) + "_" +
                                  std::string(engine::name_of(std::get<1>(parameters.param)));
                         });

}  // namespace
}  // namespace hocket::gpu
