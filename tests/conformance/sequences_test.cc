// Calls after calls: random programs of all collectives without any barrier between, calls that
// some other engine carries, and calls that are abandoned half-way.
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <tuple>

#include "cases.h"

namespace hocket::conformance {
namespace {

using engine::Kind;

class Sequences : public testing::TestWithParam<std::tuple<std::size_t, int>> {
 protected:
  const EngineCase& engine_case() const { return engine_cases()[std::get<0>(GetParam())]; }
  int ranks() const { return std::get<1>(GetParam()); }
};

TEST_P(Sequences, RandomProgramsMatchTheReference) {
  for (std::uint64_t program = 1; program <= 2; ++program) {
    const engine::KindSet kinds = engine_case().carries;
    const std::string failure =
        engine_case().run(ranks(), [program, kinds](const EngineRank& self) {
          for (std::uint64_t sequence = 1; sequence <= 150; ++sequence) {
            const std::uint64_t seed = mix(program * 1000 + sequence);
            if (seed % 8 == 0) {
              self.engine->skip(sequence);
            } else {
              run_case(self, random_case(seed, self.size, kinds), sequence);
            }
          }
        });
    EXPECT_EQ(failure, "") << "program " << program;
  }
}

// Each rank abandons the call after a different number of steps. From then on no rank may touch its
// memory, which is overwritten and watched by a sanitizer if one is on.
void abandon(const EngineRank& self, const Case& c, std::uint64_t steps) {
  const auto buffers = std::make_unique<Buffers>(c, self.rank, self.size, 1);
  engine::Task task = self.engine->start(buffers->call());
  bool pending = true;
  try {
    for (std::uint64_t i = 0; pending && i < steps; ++i) {
      pending = task.step() == engine::Poll::kPending;
    }
  } catch (const engine::EnvelopeMismatch&) {
    // Another rank has withdrawn messages. Some may have arrived, without the one before them.
  }
  task.reset();
  buffers->scribble();
  self.board->cells[static_cast<std::size_t>(self.rank)].store(1, std::memory_order_release);
  Wait wait(self, "the others' abandoning " + describe(c));
  for (int r = 0; r < self.size; ++r) {
    while (self.board->cells[static_cast<std::size_t>(r)].load(std::memory_order_acquire) == 0) {
      wait.pause();
    }
  }
  if (!buffers->is_scribbled()) {
    throw std::runtime_error(describe(c) + ": written to after its task was destroyed");
  }
}

TEST_P(Sequences, AbandonedCallsTouchNothing) {
  for (const Kind kind : kKinds) {
    if (!engine_case().carries.has(kind)) continue;
    for (std::uint64_t trial = 0; trial < 3; ++trial) {
      Case c{.kind = kind, .count = trial % 2 == 0 ? std::size_t{100} : std::size_t{40'000}};
      c.in_place = trial % 3 == 0;
      c.seed = mix(trial);
      const std::string failure = engine_case().run(ranks(), [&](const EngineRank& self) {
        abandon(self, c, mix(trial * 16 + static_cast<std::uint64_t>(self.rank)) % 40);
      });
      EXPECT_EQ(failure, "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every,
                         Sequences,
                         testing::Combine(testing::Range<std::size_t>(0, engine_cases().size()),
                                          testing::Values(1, 2, 3, 4, 5, 8)),
                         [](const auto& parameters) {
                           return engine_cases()[std::get<0>(parameters.param)].name + "_" +
                                  std::to_string(std::get<1>(parameters.param));
                         });

}  // namespace
}  // namespace hocket::conformance
