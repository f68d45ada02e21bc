// Engines under conformance test: named ways to give each rank of a group its engine. The list is
// in engines.cc; to have another engine tested, add it there.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/point_to_point.h"

namespace hocket::conformance {

inline constexpr int kMostRanks = 16;

// Memory that all ranks of a run share, whatever the engine, and that starts as zeros. Tests use
// the cells to know where the others are; `failed` ends the waits of the others when a rank has
// failed.
struct Board {
  std::array<std::atomic<std::uint64_t>, kMostRanks> cells{};
  std::atomic<bool> failed{false};
};

// One rank of a group, with its engine. A value; what it points to outlives the run.
struct EngineRank {
  int rank = 0;
  int size = 1;
  engine::CollectiveEngine* engine = nullptr;
  engine::PointToPoint* messages = nullptr;  // null: the case carries collectives alone
  Board* board = nullptr;
  // Floats are added in the order of the ranks. If false, only exact sums can be compared.
  bool ordered = true;
};

// The work of one rank. Throws to fail.
using Body = std::function<void(const EngineRank&)>;

struct EngineCase {
  std::string name;
  // Runs `body` on `size` ranks. Returns the error of the first rank that failed, or an empty
  // string.
  std::function<std::string(int size, const Body& body)> run;
  bool has_messages = true;
  engine::KindSet carries = engine::KindSet::where(engine::is_carried);
};

const std::vector<EngineCase>& engine_cases();

// Makes the ranks of a run. Threads share one team, which is destroyed after all of them have
// ended; each process has a team of its own.
class Team {
 public:
  virtual ~Team() = default;
  virtual EngineRank make_rank(int rank) = 0;  // the caller sets `board`
};
// The usual `run`: every rank is a thread of this process.
std::string run_threads(int size, std::unique_ptr<Team> team, const Body& body);
// Every rank is a process, forked from this one; `make` is called in each, with its rank.
std::string run_processes(int size,
                          const std::function<std::unique_ptr<Team>(int rank)>& make,
                          const Body& body);

// A wait, for tests: `while (!done) wait.pause();`. Gives the processor away soon, as there are
// often more ranks than processors. After a minute it ends the process with a message: the
// watchdog. Throws when another rank has failed.
class Wait {
 public:
  Wait(const EngineRank& self, std::string what) : self_(self), what_(std::move(what)) {}
  void pause();

 private:
  const EngineRank& self_;
  std::string what_;
  std::uint64_t polls_ = 0;
  std::chrono::steady_clock::time_point since_{};
};

// Steps `task` to its end.
void drive(const EngineRank& self, engine::Task& task, const std::string& what);
// Tests `message` until it is complete.
engine::Envelope complete(const EngineRank& self,
                          engine::MessageId message,
                          const std::string& what);
// Waits for a message that matches `wanted` and has not been received yet.
engine::Envelope await_message(const EngineRank& self,
                               const engine::Envelope& wanted,
                               const std::string& what);

}  // namespace hocket::conformance
