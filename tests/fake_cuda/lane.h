// The worker of a stream of the fake driver: a thread with a queue of closures.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "fake.h"

namespace fake {

// Relation of a stream to the default stream, given by its flags.
enum class Kind { kLegacy, kBlocking, kNonBlocking };

// A resource: its thread ends once all work is done that came before `close`. Any thread. It lives
// longer than the handle that the program has: that may be given to another stream at once.
class Lane : public std::enable_shared_from_this<Lane> {
 public:
  using Work = std::function<void()>;

  static std::shared_ptr<Lane> start(Kind kind, int device);

  Kind kind() const { return kind_; }
  int device() const { return device_; }
  std::uint64_t id() const { return id_; }  // no other's, ever

  // Runs `work` after all that came before, here and on the lanes that the default stream's rules
  // name.
  void add(Work work);
  // True if all earlier work has ended, also on the default stream if this one waits for it.
  bool is_empty() const;
  // The thread ends when it is through; nothing may be added.
  void close();

  // --- Capture into a graph ---

  std::atomic<hocket::cuda::CaptureStatus> capture{hocket::cuda::CaptureStatus::kNone};
  hocket::cuda::CaptureMode capture_mode = hocket::cuda::CaptureMode::kGlobal;
  std::thread::id captured_by;
  std::vector<Work> captured;  // by the capturing thread alone

 private:
  Lane(Kind kind, int device);
  struct Item {
    Work work;  // none: the end
    // Lanes, and the amount of their work that must have ended.
    std::vector<std::pair<std::shared_ptr<Lane>, std::uint64_t>> after;
  };
  void put(Item item);
  void wait_for_room() const;
  void run();
  bool is_through(std::uint64_t count) const { return ended_.load() >= count; }

  const Kind kind_;
  const int device_;
  const std::uint64_t id_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Item> queue_;  // guarded by mutex_
  std::atomic<std::uint64_t> added_{0};
  std::atomic<std::uint64_t> ended_{0};
};

// All lanes that have not ended.
std::vector<std::shared_ptr<Lane>> lanes();
// Blocks all additions while it is held.
std::unique_lock<std::mutex> hold_launches();
// The legacy default stream of a device.
std::shared_ptr<Lane> legacy_lane(int device);

inline void pause() { std::this_thread::sleep_for(std::chrono::microseconds(20)); }

}  // namespace fake
