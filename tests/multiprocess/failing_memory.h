// Lack of memory: `operator new` of this program fails on demand, for hocket too.
#pragma once

#include <cstddef>

namespace hocket::multiprocess {

enum class Fails { kOnce, kFromThenOn };

// During its life, this thread's allocation number `at`, from 0, throws std::bad_alloc. Later ones
// do, too, for kFromThenOn. One object at a time.
class FailingMemory {
 public:
  FailingMemory(std::size_t at, Fails how) noexcept;
  ~FailingMemory();
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;

  // True if the last object has failed an allocation.
  static bool has_failed() noexcept;
};

}  // namespace hocket::multiprocess
