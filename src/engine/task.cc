#include "engine/task.h"

#include <array>
#include <new>
#include <utility>

namespace hocket::engine {
namespace {

constexpr std::size_t kGranule = 256;
constexpr std::size_t kClasses = 16;  // frames up to 4 KiB are cached
constexpr int kKeptPerClass = 64;

// A thread's cache of coroutine frames, in size classes of 256 bytes. A frame goes to the cache of
// the thread that frees it, which may differ from the thread that allocated it. The object itself
// is small, because a library that is loaded late gets little thread-local memory. So the free
// frames of a class form a list: each holds the address of the next one.
class FrameCache {
 public:
  ~FrameCache() {
    for (auto& kept : classes_) {
      while (kept.count > 0) ::operator delete(kept.take());
    }
    closed_ = true;
  }

  void* allocate(std::size_t bytes) {
    const std::size_t index = (bytes - 1) / kGranule;
    if (index >= kClasses) return ::operator new(bytes);
    FreeList& kept = classes_[index];
    if (kept.count > 0) return kept.take();
    return ::operator new((index + 1) * kGranule);
  }

  void free(void* frame, std::size_t bytes) noexcept {
    const std::size_t index = (bytes - 1) / kGranule;
    if (index < kClasses && !closed_ && classes_[index].count < kKeptPerClass) {
      classes_[index].put(frame);
    } else {
      ::operator delete(frame);
    }
  }

 private:
  struct FreeList {
    void put(void* frame) noexcept {
      first = new (frame) Free{first};
      ++count;
    }
    void* take() noexcept {
      --count;
      return std::exchange(first, first->next);
    }

    struct Free {
      Free* next;
    };
    Free* first = nullptr;
    int count = 0;
  };
  std::array<FreeList, kClasses> classes_;
  bool closed_ = false;
};

FrameCache& cache() {
  static thread_local FrameCache instance;
  return instance;
}

}  // namespace

void* allocate_frame(std::size_t bytes) { return cache().allocate(bytes); }
void free_frame(void* frame, std::size_t bytes) noexcept { cache().free(frame, bytes); }

}  // namespace hocket::engine
