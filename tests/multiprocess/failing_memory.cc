#include "failing_memory.h"

#include <cstdlib>
#include <new>

namespace hocket::multiprocess {
namespace {

struct State {
  bool armed = false;
  bool failed = false;
  Fails how = Fails::kOnce;
  std::size_t left = 0;  // allocations that go well
};
thread_local constinit State state;

bool is_to_fail() noexcept {
  if (!state.armed) return false;
  if (state.left != 0) {
    --state.left;
    return false;
  }
  if (state.failed && state.how == Fails::kOnce) return false;
  state.failed = true;
  return true;
}

}  // namespace

FailingMemory::FailingMemory(std::size_t at, Fails how) noexcept {
  state = {.armed = true, .failed = false, .how = how, .left = at};
}
FailingMemory::~FailingMemory() { state.armed = false; }
bool FailingMemory::has_failed() noexcept { return state.failed; }

void* allocate(std::size_t bytes) {
  void* const memory = is_to_fail() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace hocket::multiprocess

void* operator new(std::size_t bytes) { return hocket::multiprocess::allocate(bytes); }
void* operator new[](std::size_t bytes) { return hocket::multiprocess::allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
