#include "engines/algorithm/scratch.h"

#include <algorithm>
#include <bit>
#include <new>
#include <vector>

namespace hocket::algorithm {
namespace {

constexpr std::align_val_t kAlignment{64};
constexpr std::size_t kLeast = 4096;
// Maximum memory in bytes that a thread caches.
constexpr std::size_t kMostCached = std::size_t{32} << 20;

struct CachedBlock {
  std::byte* data;
  std::size_t room;
};

// The cached blocks of one thread. The most recently released block is the last one.
class BlockCache {
 public:
  BlockCache() { blocks_.reserve(kMostBlocks); }
  ~BlockCache() {
    for (const CachedBlock& block : blocks_) ::operator delete(block.data, kAlignment);
    closed_ = true;
  }
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // Returns the most recently released block of this size, or null if there is none.
  std::byte* take(std::size_t room) noexcept {
    if (closed_) return nullptr;
    for (auto it = blocks_.rbegin(); it != blocks_.rend(); ++it) {
      if (it->room != room) continue;
      std::byte* data = it->data;
      bytes_ -= room;
      blocks_.erase(std::next(it).base());
      return data;
    }
    return nullptr;
  }
  void give(CachedBlock block) noexcept {
    if (closed_ || block.room > kMostCached) {
      ::operator delete(block.data, kAlignment);
      return;
    }
    while (blocks_.size() == kMostBlocks || bytes_ + block.room > kMostCached) {
      ::operator delete(blocks_.front().data, kAlignment);
      bytes_ -= blocks_.front().room;
      blocks_.erase(blocks_.begin());
    }
    blocks_.push_back(block);
    bytes_ += block.room;
  }

 private:
  static constexpr std::size_t kMostBlocks = 16;
  std::vector<CachedBlock> blocks_;
  std::size_t bytes_ = 0;
  bool closed_ = false;  // the thread is ending, and the cache no longer takes blocks
};

BlockCache& kept() {
  thread_local BlockCache blocks;
  return blocks;
}

}  // namespace

// Rounds sizes that can be cached up to powers of two, so that similar calls reuse blocks.
Scratch::Scratch(std::size_t bytes) {
  if (bytes == 0) return;
  const std::size_t room = std::max(kLeast, bytes <= kMostCached ? std::bit_ceil(bytes) : bytes);
  data_ = kept().take(room);
  if (data_ == nullptr) data_ = static_cast<std::byte*>(::operator new(room, kAlignment));
  room_ = room;
}

Scratch::~Scratch() {
  if (data_ != nullptr) kept().give({data_, room_});
}

}  // namespace hocket::algorithm
