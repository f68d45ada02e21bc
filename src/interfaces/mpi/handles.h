// Tables of a program's MPI objects, by handle.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "interfaces/mpi/abi.h"

namespace hocket::mpi {

// A resource: the objects of one kind. Any thread may look an object up without a lock, also while
// another thread adds or removes objects. An object lives until its handle is removed and nobody
// shares it any more.
template <typename Object, typename Handle>
class Handles {
 public:
  void add_predefined(Handle handle, std::shared_ptr<Object> object) {
    Slot& slot = predefined_[predefined_index(bits(handle))];
    slot.handle = handle;
    slot.owner = std::move(object);
    slot.object.store(slot.owner.get(), std::memory_order_release);
  }

  Handle add(std::shared_ptr<Object> object) {
    const std::lock_guard lock(mutex_);
    std::uint32_t index;
    if (free_.empty()) {
      index = used_++;
      if (index / kChunk >= kChunks) throw std::bad_alloc();
      if (index % kChunk == 0) {
        chunks_[index / kChunk].store(new Chunk(), std::memory_order_release);  // NOLINT: it stays
      }
    } else {
      index = free_.back();
      free_.pop_back();
    }
    Slot& slot = own(index);
    slot.handle = handle_of<Handle>(static_cast<int>(kOwnHandles + index));
    slot.owner = std::move(object);
    slot.object.store(slot.owner.get(), std::memory_order_release);
    return slot.handle;
  }

  // Returns whether the handle is of an object that the program has made, not of a predefined one.
  static bool is_own(Handle handle) noexcept { return bits(handle) >= kOwnHandles; }
  // Returns the object of a handle; null if there is none.
  Object* find(Handle handle) noexcept {
    Slot* slot = slot_of(handle);
    return slot == nullptr ? nullptr : slot->object.load(std::memory_order_acquire);
  }
  std::shared_ptr<Object> share(Handle handle) {
    const std::lock_guard lock(mutex_);
    Slot* slot = slot_of(handle);
    return slot == nullptr ? nullptr : slot->owner;
  }

  // Returns all objects that the program has made.
  std::vector<std::shared_ptr<Object>> all() {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<Object>> found;
    for (std::uint32_t i = 0; i < used_; ++i) {
      if (own(i).owner != nullptr) found.push_back(own(i).owner);
    }
    return found;
  }

  // Removes and returns the object of a handle. Null for predefined handles, which stay.
  std::shared_ptr<Object> remove(Handle handle) {
    const std::lock_guard lock(mutex_);
    const std::uint32_t value = bits(handle);
    if (value < kOwnHandles) return nullptr;
    Slot* slot = slot_of(handle);
    if (slot == nullptr || slot->owner == nullptr) return nullptr;
    slot->object.store(nullptr, std::memory_order_release);
    free_.push_back(value - kOwnHandles);
    return std::exchange(slot->owner, nullptr);
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    for (std::uint32_t i = 0; i < used_; ++i) own(i).owner.reset();
    for (Slot& slot : predefined_) slot.owner.reset();
  }

 private:
  static constexpr std::uint32_t kChunk = 1024, kChunks = 4096;
  struct Slot {
    std::atomic<Object*> object{nullptr};
    Handle handle{};
    std::shared_ptr<Object> owner;
  };
  using Chunk = std::array<Slot, kChunk>;

  static std::uint32_t bits(Handle handle) noexcept {
    return static_cast<std::uint32_t>(integer_of(handle));
  }
  Slot& own(std::uint32_t index) noexcept {
    return (*chunks_[index / kChunk].load(std::memory_order_acquire))[index % kChunk];
  }
  Slot* slot_of(Handle handle) noexcept {
    const std::uint32_t value = bits(handle);
    if (value < kOwnHandles) {
      Slot& slot = predefined_[predefined_index(value)];
      return slot.handle == handle ? &slot : nullptr;
    }
    const std::uint32_t index = value - kOwnHandles;
    if (index / kChunk >= kChunks) return nullptr;
    Chunk* chunk = chunks_[index / kChunk].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : &(*chunk)[index % kChunk];
  }

  std::array<Slot, kPredefined> predefined_{};
  std::array<std::atomic<Chunk*>, kChunks> chunks_{};
  std::mutex mutex_;
  std::uint32_t used_ = 0;
  std::vector<std::uint32_t> free_;
};

}  // namespace hocket::mpi
