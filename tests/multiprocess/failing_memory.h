// Memory that is not there: `operator new` of this program fails on demand, for hocket too.
#pragma once

#include <cstddef>

namespace hocket::multiprocess {

enum class Fails { kOnce, kFromThenOn };

// While it lives, this thread's allocation number `at`, from 0, throws std::bad_alloc; those after
// it too for kFromThenOn. One at a time.
class FailingMemory {
 public:
  FailingMemory(std::size_t at, Fails how) noexcept;
  ~FailingMemory();
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;

  // Whether the last one that lived has failed an allocation.
  static bool has_failed() noexcept;
};

}  // namespace hocket::multiprocess
