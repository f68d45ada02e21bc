// The memory that the decoder requests, by a counting operator new.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <vector>

#include "hocket/object.h"

namespace hocket {
namespace {

using Bytes = std::vector<std::byte>;

Bytes encoded(std::initializer_list<int> payload) {
  Bytes bytes{std::byte{'H'}, std::byte{'K'}, std::byte{'O'}, std::byte{1}};
  for (const int value : payload) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

// The largest block asked of `new` in this thread since the counter was cleared.
thread_local std::size_t largest_block = 0;

TEST(ObjectMemory, LengthsAreNotBelieved) {
  // Every kind that has a length, with lengths up to 2^63, and little or nothing behind it.
  for (const int tag : {4, 5, 8, 9, 10, 11, 12, 14}) {
    for (int groups = 1; groups <= 8; ++groups) {
      Bytes bytes = encoded({tag});
      bytes.insert(bytes.end(), static_cast<std::size_t>(groups), std::byte{0xff});
      bytes.insert(bytes.end(), {std::byte{0x7f}, std::byte{0}, std::byte{0}});
      largest_block = 0;
      EXPECT_THROW(decode(bytes), InvalidArgument) << "tag " << tag << ", " << groups;
      EXPECT_LT(largest_block, 16384u) << "tag " << tag << ", " << groups;
    }
  }
  // Arrays of 2^35 and of 2^70 elements.
  largest_block = 0;
  EXPECT_THROW(decode(encoded({13, 12, 1, 128, 128, 128, 128, 128, 1})), InvalidArgument);
  EXPECT_THROW(decode(encoded({13, 12, 2, 128, 128, 128, 128, 128, 1, 128, 128, 128, 128, 128, 1})),
               InvalidArgument);
  EXPECT_LT(largest_block, 16384u);
}

}  // namespace
}  // namespace hocket

// noinline: the compiler would take `new` and `free` for a mismatched pair.
[[gnu::noinline]] void* operator new(std::size_t size) {
  hocket::largest_block = std::max(hocket::largest_block, size);
  if (void* block = std::malloc(size)) return block;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept { std::free(block); }
