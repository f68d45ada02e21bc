// Streams and events: handles. The driver reuses a handle after its object is destroyed.
#include <execinfo.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <map>
#include <set>

#include "lane.h"

using namespace hocket::cuda;

// Null: destroyed.
struct CUstream_st {
  std::shared_ptr<fake::Lane> lane;
};

// One time that an event was recorded.
struct Mark {
  std::chrono::steady_clock::time_point at;  // once it has passed
  std::atomic<bool> has_passed = false;
};
struct CUevent_st {
  std::shared_ptr<Mark> last;  // null: never
  bool exists = false;
  bool has_time = false;
};

namespace fake {
namespace {

// Handles of one kind. As with the driver, the last one to be freed is the first to be used again.
template <typename T>
class Handles {
 public:
  static Handles& all() {
    static Handles& made = *new Handles;
    return made;
  }
  T* take() {
    if (free_.empty()) return new T;
    T* last = free_.back();
    free_.pop_back();
    return last;
  }
  void give_back(T* handle) { free_.push_back(handle); }

  std::mutex mutex;  // guards what handles stand for, too

 private:
  std::vector<T*> free_;
};
using Streams = Handles<CUstream_st>;
using Events = Handles<CUevent_st>;

constexpr std::uintptr_t kPerThread = 2;

// Null: no stream.
std::shared_ptr<Lane> resolve(Stream stream) {
  const auto handle = reinterpret_cast<std::uintptr_t>(stream);
  if (handle < kPerThread) return legacy_lane(current_device());
  if (handle == kPerThread) {
    // Their threads stay, as the program's may end at any time.
    thread_local constinit std::map<int, std::shared_ptr<Lane>>* own = nullptr;
    if (own == nullptr) own = new std::map<int, std::shared_ptr<Lane>>;
    auto& lane = (*own)[current_device()];
    if (!lane) lane = Lane::start(Kind::kBlocking, current_device());
    return lane;
  }
  const std::lock_guard lock(Streams::all().mutex);
  return stream->lane;
}

Result stream_synchronize(Stream stream) {
  const auto lane = resolve(stream);
  if (!lane) return Result::kInvalidHandle;
  while (!lane->is_empty()) pause();
  return Result::kSuccess;
}
Result stream_create(Stream* stream, unsigned flags) {
  const Kind kind = (flags & kStreamNonBlocking) != 0 ? Kind::kNonBlocking : Kind::kBlocking;
  auto lane = Lane::start(kind, current_device());
  const std::lock_guard lock(Streams::all().mutex);
  *stream = Streams::all().take();
  (*stream)->lane = std::move(lane);
  return Result::kSuccess;
}
// As the driver does it: at once, and the work goes on to its end.
Result stream_destroy(Stream stream) {
  const std::lock_guard lock(Streams::all().mutex);
  if (!stream->lane) return Result::kInvalidHandle;
  std::exchange(stream->lane, nullptr)->close();
  Streams::all().give_back(stream);
  return Result::kSuccess;
}
Result stream_query(Stream stream) {
  const auto lane = resolve(stream);
  if (!lane) return Result::kInvalidHandle;
  return lane->is_empty() ? Result::kSuccess : Result::kNotReady;
}
Result stream_get_id(Stream stream, unsigned long long* id) {
  const auto lane = resolve(stream);
  if (!lane) return Result::kInvalidHandle;
  *id = lane->id();
  return Result::kSuccess;
}

std::atomic<std::uint32_t>& word(DevicePtr at) {
  return *reinterpret_cast<std::atomic<std::uint32_t>*>(at);
}
Result stream_wait_value32(Stream stream, DevicePtr at, std::uint32_t value, unsigned flags) {
  return enqueue(stream, [=] {
    const auto reached = [&](std::uint32_t found) {
      return flags == kStreamWaitEqual ? found == value
                                       : static_cast<std::int32_t>(found - value) >= 0;
    };
    while (!reached(word(at).load(std::memory_order_acquire))) pause();
  });
}
Result stream_write_value32(Stream stream, DevicePtr at, std::uint32_t value, unsigned) {
  return enqueue(stream, [=] { word(at).store(value, std::memory_order_release); });
}
Result launch_host_func(Stream stream, void (*call)(void*), void* argument) {
  return enqueue(stream, [=] { call(argument); });
}

// --- Events -------------------------------------------------------------------------------------

Result event_create(Event* event, unsigned flags) {
  const std::lock_guard lock(Events::all().mutex);
  *event = Events::all().take();
  (*event)->exists = true;
  (*event)->has_time = (flags & kEventDisableTiming) == 0;
  return Result::kSuccess;
}
Result event_destroy(Event event) {
  const std::lock_guard lock(Events::all().mutex);
  if (!event->exists) return Result::kInvalidHandle;
  *event = {};
  Events::all().give_back(event);
  return Result::kSuccess;
}
Result event_record(Event event, Stream stream) {
  const auto lane = resolve(stream);
  if (!lane) return Result::kInvalidHandle;
  if (lane->capture != CaptureStatus::kNone) return Result::kSuccess;  // it is the graph's
  const auto mark = std::make_shared<Mark>();
  {
    const std::lock_guard lock(Events::all().mutex);
    if (!event->exists) return Result::kInvalidHandle;
    event->last = mark;
  }
  return enqueue(stream, [mark] {
    mark->at = std::chrono::steady_clock::now();
    mark->has_passed.store(true, std::memory_order_release);
  });
}
// The current mark of the event; null: there is nothing to wait for.
Result look_up(Event event, std::shared_ptr<Mark>& mark) {
  const std::lock_guard lock(Events::all().mutex);
  if (!event->exists) return Result::kInvalidHandle;
  mark = event->last;
  return Result::kSuccess;
}
Result stream_wait_event(Stream stream, Event event, unsigned) {
  std::shared_ptr<Mark> mark;
  const Result found = look_up(event, mark);
  if (found != Result::kSuccess || mark == nullptr) return found;
  return enqueue(stream, [mark] {
    while (!mark->has_passed.load(std::memory_order_acquire)) pause();
  });
}
Result event_query(Event event) {
  if (!outside_captures(__func__)) return Result::kCaptureUnsupported;
  std::shared_ptr<Mark> mark;
  const Result found = look_up(event, mark);
  if (found != Result::kSuccess) return found;
  const bool passed = mark == nullptr || mark->has_passed.load(std::memory_order_acquire);
  return passed ? Result::kSuccess : Result::kNotReady;
}
Result event_elapsed_time(float* milliseconds, Event start, Event end) {
  std::array<std::shared_ptr<Mark>, 2> marks;
  const std::lock_guard lock(Events::all().mutex);
  for (const auto& [event, mark] : {std::pair(start, &marks[0]), std::pair(end, &marks[1])}) {
    if (!event->exists || !event->has_time || event->last == nullptr) return Result::kInvalidHandle;
    if (!event->last->has_passed.load(std::memory_order_acquire)) return Result::kNotReady;
    *mark = event->last;
  }
  *milliseconds = std::chrono::duration<float, std::milli>(marks[1]->at - marks[0]->at).count();
  return Result::kSuccess;
}

// --- Captures -----------------------------------------------------------------------------------

thread_local CaptureMode thread_mode = CaptureMode::kGlobal;

Result exchange_capture_mode(CaptureMode* mode) {
  std::swap(*mode, thread_mode);
  return Result::kSuccess;
}
Result stream_begin_capture(Stream stream, CaptureMode mode) {
  const auto lane = resolve(stream);
  if (!lane) return Result::kInvalidHandle;
  lane->capture_mode = mode;
  lane->captured_by = std::this_thread::get_id();
  lane->captured.clear();
  lane->capture = CaptureStatus::kActive;
  return Result::kSuccess;
}
Result stream_end_capture(Stream stream, Graph* graph) {
  *graph = nullptr;
  const auto lane = resolve(stream);
  if (!lane) return Result::kInvalidHandle;
  const bool whole = lane->capture.exchange(CaptureStatus::kNone) == CaptureStatus::kActive;
  if (!whole) return Result::kCaptureUnsupported;
  *graph = make_graph(std::exchange(lane->captured, {}));
  return Result::kSuccess;
}
Result stream_is_capturing(Stream stream, CaptureStatus* status) {
  const auto lane = resolve(stream);
  if (!lane) return Result::kInvalidHandle;
  *status = lane->capture.load();
  return Result::kSuccess;
}

// The addresses identify the call; addr2line decodes them.
void tell_who_broke_it(const char* function, bool own) {
  std::fprintf(stderr,
               "pretended CUDA: %s broke a capture of %s thread, called from\n",
               function,
               own ? "this" : "another");
  void* frames[16];
  ::backtrace_symbols_fd(frames, ::backtrace(frames, 16), STDERR_FILENO);
}

}  // namespace

// Like the driver: captures of this thread forbid calls that may wait, and so do captures of other
// threads in global mode. Threads in relaxed mode are exempt.
bool outside_captures(const char* function) {
  if (thread_mode == CaptureMode::kRelaxed) return true;
  bool outside = true;
  for (const auto& lane : lanes()) {
    if (lane->capture == CaptureStatus::kNone) continue;
    const bool own = lane->captured_by == std::this_thread::get_id();
    const bool forbids =
        own ? lane->capture_mode != CaptureMode::kRelaxed
            : lane->capture_mode == CaptureMode::kGlobal && thread_mode == CaptureMode::kGlobal;
    if (!forbids) continue;
    lane->capture = CaptureStatus::kInvalidated;
    outside = false;
    tell_who_broke_it(function, own);
  }
  return outside;
}

void quiesce() {
  for (const auto& lane : lanes()) {
    while (lane->device() == current_device() && !lane->is_empty()) pause();
  }
}

Result enqueue(Stream stream, std::function<void()> work) {
  const auto lane = resolve(stream);
  if (!lane) return Result::kInvalidHandle;
  if (lane->capture == CaptureStatus::kNone) {
    lane->add(std::move(work));
  } else {
    lane->captured.push_back(std::move(work));
  }
  return Result::kSuccess;
}

std::vector<Entry> stream_functions() {
  return {entry("cuStreamCreate", stream_create),
          entry("cuStreamDestroy", stream_destroy),
          entry("cuStreamQuery", stream_query),
          entry("cuStreamSynchronize", stream_synchronize),
          entry("cuStreamWaitEvent", stream_wait_event),
          entry("cuStreamIsCapturing", stream_is_capturing),
          entry("cuStreamBeginCapture", stream_begin_capture),
          entry("cuStreamEndCapture", stream_end_capture),
          entry("cuThreadExchangeStreamCaptureMode", exchange_capture_mode),
          entry("cuStreamGetId", stream_get_id),
          entry("cuStreamWaitValue32", stream_wait_value32),
          entry("cuStreamWriteValue32", stream_write_value32),
          entry("cuLaunchHostFunc", launch_host_func),
          entry("cuEventCreate", event_create),
          entry("cuEventDestroy", event_destroy),
          entry("cuEventRecord", event_record),
          entry("cuEventQuery", event_query),
          entry("cuEventElapsedTime", event_elapsed_time)};
}

}  // namespace fake
