// Runs threads of a program in every order that memory allows, by Relacy, whose names stay in
// simulator.cc.
//
// The library's sources are compiled over it unchanged: foundation/base/atomic.h and
// foundation/os/futex.h of this folder come before the files of src. A value is stored in the
// library's own place. The values that other threads may see are kept separately, by its address,
// for one execution.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <source_location>
#include <string>
#include <vector>

namespace hocket::relacy {

// Source position of an operation.
using Site = std::source_location;

// One execution's threads and data, constructed for each execution and within it. `before` and
// `after` run alone.
class Program {
 public:
  virtual ~Program() = default;
  virtual void before() {}
  virtual void thread(int number) = 0;
  virtual void after() {}
};

// A mistake to put in: at one site, the operation is as weak as can be, or is not done.
struct Mistake {
  enum class Kind { kNone, kRelaxed, kDropped } kind = Kind::kNone;
  std::string site;
};

struct Options {
  int executions = 5'000;
  Mistake mistake = {};
  bool show = false;  // the order that fails, step by step
};

struct Outcome {
  bool passed = false;
  std::string text;  // what failed
  // Sites of operations that order others, and of stores and the like: the places for mutations.
  std::set<std::string> ordering;
  std::set<std::string> storing;
};

using Factory = std::function<std::unique_ptr<Program>()>;
// `threads`: from 2 to 4.
Outcome simulate(int threads, const Factory& make, const Options& options = {});

// In a program: fails the execution unless `holds`.
void check(bool holds, const char* what, Site site);
// Gives the others a turn.
void yield() noexcept;
// A number other than 0, which no other thread of the program has; `before` acts as the first.
std::uintptr_t this_thread() noexcept;

// --- Functions for the headers of this folder ----------------------------------------------------

enum class Update { kAdd, kOr, kAnd, kExchange };
std::uint64_t load(const void* at, std::uint64_t initial, std::memory_order order, Site site);
void store(
    void* at, std::uint64_t initial, std::uint64_t value, std::memory_order order, Site site);
std::uint64_t update(void* at,
                     std::uint64_t initial,
                     Update how,
                     std::uint64_t operand,
                     std::memory_order order,
                     Site site);
bool compare_exchange(void* at,
                      std::uint64_t initial,
                      std::uint64_t& expected,
                      std::uint64_t desired,
                      std::memory_order order,
                      Site site);
void fence(std::memory_order order, Site site);
void heavy_fence(Site site);
// Like futex(2): sleeps if the word has the expected value.
void sleep_on(void* at, std::uint64_t initial, std::uint64_t expected, Site site);
void wake_all(void* at, Site site);
// Accesses to a value that is not atomic. Two concurrent accesses, one of them a write, fail the
// execution.
void read_plain(const void* value, Site site);
void write_plain(void* value, Site site);
// Accesses to bytes, checked in the same way. They are checked only in memory that the program has
// declared by `share`; all other memory counts as one thread's own.
void share(const void* at, std::size_t bytes);
void read_bytes(const void* at, std::size_t bytes, Site site);
void write_bytes(void* at, std::size_t bytes, Site site);
// Returns the number of the execution, from 1.
std::uint64_t execution() noexcept;

}  // namespace hocket::relacy
