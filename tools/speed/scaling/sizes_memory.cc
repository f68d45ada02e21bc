#include "sizes_memory.h"

#include <sys/mman.h>

#include <new>

#include "engines/algorithm/scratch.h"

namespace hocket::scaling {
namespace {

constexpr std::size_t kRoom = std::size_t{1} << 42;

std::byte* region(std::size_t number) {
  static std::byte* const all = [] {
    void* const made =
        ::mmap(nullptr, 3 * kRoom, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) throw std::bad_alloc();
    return static_cast<std::byte*>(made);
  }();
  return all + number * kRoom;
}

}  // namespace

std::byte* input_addresses() { return region(0); }
std::byte* output_addresses() { return region(1); }
std::byte* scratch_addresses() { return region(2); }

}  // namespace hocket::scaling

// Linked instead of engines/algorithm/scratch.cc. Every task gets the same addresses.
namespace hocket::algorithm {

Scratch::Scratch(std::size_t bytes)
    : data_(bytes == 0 ? nullptr : scaling::scratch_addresses()), room_(bytes) {}
Scratch::~Scratch() = default;

}  // namespace hocket::algorithm
