#include "lane.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>

namespace fake {
namespace {

// Threads of lanes may outlive the process's globals: what they use stays.
struct Lanes {
  std::mutex mutex;
  std::vector<std::shared_ptr<Lane>> all;
  std::map<int, std::shared_ptr<Lane>> legacy;  // by device
  std::uint64_t made = 0;
};
Lanes& known() {
  static Lanes& made = *new Lanes;
  return made;
}

// Makes one addition atomic for other streams. Otherwise two streams might wait for each other.
std::mutex& adding() {
  static std::mutex& made = *new std::mutex;
  return made;
}

std::uint64_t next_id() {
  const std::lock_guard lock(known().mutex);
  return ++known().made;
}

// A stream, or a thread that launches, is held up now and then, so that others overtake it wherever
// nothing forbids that. FAKE_CUDA_SEED: which times those are.
class Whims {
 public:
  explicit Whims(std::uint64_t lane) : random_(lane * 7919 + seed()) {}
  void hold_up() {
    const auto roll = random_();
    if (roll % 32 != 0) return;
    const auto most = roll % 1024 == 0 ? 2000u : 200u;
    std::this_thread::sleep_for(std::chrono::microseconds(roll / 1024 % most));
  }

 private:
  static std::uint64_t seed() {
    const char* wanted = std::getenv("FAKE_CUDA_SEED");
    return wanted == nullptr ? 1 : std::strtoull(wanted, nullptr, 10);
  }
  std::minstd_rand random_;
};

}  // namespace

Lane::Lane(Kind kind, int device) : kind_(kind), device_(device), id_(next_id()) {}

std::shared_ptr<Lane> Lane::start(Kind kind, int device) {
  std::shared_ptr<Lane> lane(new Lane(kind, device));
  {
    const std::lock_guard lock(known().mutex);
    known().all.push_back(lane);
  }
  std::thread([lane] { lane->run(); }).detach();
  return lane;
}

void Lane::put(Item item) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(item));
  ++added_;
  ready_.notify_one();
}

// As the driver does it, where a stream has as much to do as its queue holds. FAKE_CUDA_QUEUE: how
// much that is.
void Lane::wait_for_room() const {
  static const char* const wanted = std::getenv("FAKE_CUDA_QUEUE");
  static const std::uint64_t most = wanted == nullptr ? 1024 : std::strtoull(wanted, nullptr, 10);
  while (added_.load() - ended_.load() >= most) pause();
}

void Lane::add(Work work) {
  thread_local Whims whims(id_);
  whims.hold_up();
  wait_for_room();
  Item item{.work = std::move(work), .after = {}};
  const std::lock_guard lock(adding());
  if (kind_ == Kind::kBlocking) {
    const auto legacy = legacy_lane(device_);
    item.after.emplace_back(legacy, legacy->added_.load());
  } else if (kind_ == Kind::kLegacy) {
    for (auto& other : lanes()) {
      if (other->kind_ != Kind::kBlocking || other->device_ != device_) continue;
      const std::uint64_t added = other->added_.load();
      item.after.emplace_back(std::move(other), added);
    }
  }
  put(std::move(item));
}

bool Lane::is_empty() const {
  if (!is_through(added_.load())) return false;
  if (kind_ != Kind::kLegacy) return true;
  const auto all = lanes();
  return std::all_of(all.begin(), all.end(), [this](const auto& other) {
    return other->kind_ != Kind::kBlocking || other->device_ != device_ || other->is_empty();
  });
}

void Lane::close() { put({}); }

void Lane::run() {
  Whims whims(id_);
  while (true) {
    Item item;
    {
      std::unique_lock lock(mutex_);
      ready_.wait(lock, [this] { return !queue_.empty(); });
      item = std::move(queue_.front());
      queue_.pop_front();
    }
    if (!item.work) break;
    whims.hold_up();
    for (const auto& [lane, count] : item.after) {
      while (!lane->is_through(count)) pause();
    }
    item.work();
    ++ended_;
  }
  ++ended_;
  const std::lock_guard lock(known().mutex);
  std::erase(known().all, shared_from_this());
}

std::vector<std::shared_ptr<Lane>> lanes() {
  const std::lock_guard lock(known().mutex);
  return known().all;
}

std::unique_lock<std::mutex> hold_launches() { return std::unique_lock(adding()); }

std::shared_ptr<Lane> legacy_lane(int device) {
  {
    const std::lock_guard lock(known().mutex);
    const auto found = known().legacy.find(device);
    if (found != known().legacy.end()) return found->second;
  }
  auto made = Lane::start(Kind::kLegacy, device);
  const std::lock_guard lock(known().mutex);
  const auto [at, is_first] = known().legacy.emplace(device, made);
  if (!is_first) made->close();
  return at->second;
}

}  // namespace fake
