#include "engine/task.h"

#include <array>
#include <new>

namespace hocket::engine {
namespace {

constexpr std::size_t kGranule = 256;
constexpr std::size_t kClasses = 16;  // frames up to 4 KiB are cached
constexpr int kKeptPerClass = 8;

// The cache of one thread. If another thread frees a frame, the frame moves to that thread's cache.
class FrameCache {
 public:
  ~FrameCache() {
    for (auto& kept : classes_) {
      while (kept.count > 0) ::operator delete(kept.frames[--kept.count]);
    }
    closed_ = true;
  }

  void* allocate(std::size_t bytes) {
    const std::size_t index = (bytes - 1) / kGranule;
    if (index >= kClasses) return ::operator new(bytes);
    Kept& kept = classes_[index];
    if (kept.count > 0) return kept.frames[--kept.count];
    return ::operator new((index + 1) * kGranule);
  }

  void free(void* frame, std::size_t bytes) noexcept {
    const std::size_t index = (bytes - 1) / kGranule;
    if (index < kClasses && !closed_ && classes_[index].count < kKeptPerClass) {
      classes_[index].frames[classes_[index].count++] = frame;
    } else {
      ::operator delete(frame);
    }
  }

 private:
  struct Kept {
    std::array<void*, kKeptPerClass> frames;
    int count = 0;
  };
  std::array<Kept, kClasses> classes_;
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
