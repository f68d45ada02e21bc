// Calls that fail because a test wants them to.
#include "faults.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

namespace fake {
namespace {

using hocket::cuda::Result;

// A function of the driver: at most six numbers or pointers, which are passed alike.
using Any = Result (*)(
    std::uintptr_t, std::uintptr_t, std::uintptr_t, std::uintptr_t, std::uintptr_t, std::uintptr_t);

constexpr std::size_t kMost = 96;
struct Slot {
  std::string name;
  Any function = nullptr;
  std::atomic<long> calls{0};  // so far
  std::atomic<long> first{0};  // of the calls that fail; 0: none does
  std::atomic<long> last{0};
  std::atomic<int> result{0};
};
std::array<Slot, kMost>& slots() {
  static auto& made = *new std::array<Slot, kMost>;
  return made;
}

template <std::size_t Index>
Result call(std::uintptr_t a,
            std::uintptr_t b,
            std::uintptr_t c,
            std::uintptr_t d,
            std::uintptr_t e,
            std::uintptr_t f) {
  Slot& slot = slots()[Index];
  const long number = ++slot.calls;
  const long first = slot.first;
  if (first != 0 && number >= first && number <= slot.last) {
    return static_cast<Result>(slot.result.load());
  }
  return slot.function(a, b, c, d, e, f);
}

template <std::size_t... Indices>
constexpr std::array<Any, kMost> all_calls(std::index_sequence<Indices...>) {
  return {&call<Indices>...};
}

constexpr int kLaunchFailed = 719;

// FAKE_CUDA_FAIL: "cuMemcpyAsync:3" fails the third call, "cuMemcpyAsync:3:2:700" two with 700.
void read_wish() {
  const char* wish = std::getenv("FAKE_CUDA_FAIL");
  if (wish == nullptr) return;
  char name[64] = {};
  long first = 0, count = 1;
  int result = kLaunchFailed;
  if (std::sscanf(wish, "%63[^:]:%ld:%ld:%d", name, &first, &count, &result) < 2 ||
      fake_cuda_fail(name, first, count, result) != 0) {
    std::fprintf(stderr, "FAKE_CUDA_FAIL is \"%s\", expected NAME:FIRST[:COUNT[:RESULT]]\n", wish);
    std::abort();
  }
}

}  // namespace

void* breakable(const char* name, void* function) {
  static std::size_t used = 0;
  constexpr auto calls = all_calls(std::make_index_sequence<kMost>());
  if (used == kMost) std::abort();
  slots()[used].name = name;
  slots()[used].function = reinterpret_cast<Any>(function);
  return reinterpret_cast<void*>(calls[used++]);
}

void read_faults() {
  static std::once_flag once;
  std::call_once(once, read_wish);
}

}  // namespace fake

extern "C" int fake_cuda_fail(const char* name, long first, long count, int result) {
  for (fake::Slot& slot : fake::slots()) {
    if (slot.name != name) continue;
    slot.result = result;
    slot.last = slot.calls + first + count - 1;
    slot.first = first == 0 ? 0 : slot.calls + first;
    return 0;
  }
  return -1;
}

extern "C" long fake_cuda_calls(const char* name) {
  for (const fake::Slot& slot : fake::slots()) {
    if (slot.name == name) return slot.calls;
  }
  return -1;
}
