// Streams as threads, events as counts of what has passed.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "fake.h"

using namespace hocket::cuda;

struct CUstream_st {
  CUstream_st() : thread([this] { run(); }) {}
  ~CUstream_st() {
    add(nullptr);
    thread.join();
  }

  void add(std::function<void()> work) {
    const std::lock_guard lock(mutex);
    queue.push_back(std::move(work));
    ++added;
    ready.notify_one();
  }
  const int device = fake::current_device();
  std::atomic<CaptureStatus> capture{CaptureStatus::kNone};  // nothing of it is kept
  CaptureMode capture_mode = CaptureMode::kGlobal;
  std::thread::id captured_by;
  bool empty() const { return ended.load(std::memory_order_acquire) == added.load(); }

  std::mutex mutex;
  std::condition_variable ready;
  std::deque<std::function<void()>> queue;  // guarded by mutex; an empty closure is the end
  std::atomic<std::uint64_t> added{0};
  std::atomic<std::uint64_t> ended{0};
  std::thread thread;  // last: it uses the rest

 private:
  void run() {
    while (true) {
      std::function<void()> work;
      {
        std::unique_lock lock(mutex);
        ready.wait(lock, [this] { return !queue.empty(); });
        work = std::move(queue.front());
        queue.pop_front();
      }
      if (!work) return;
      work();
      ended.fetch_add(1, std::memory_order_release);
    }
  }
};

struct CUevent_st {
  std::atomic<std::uint64_t> recorded{0};
  std::atomic<std::uint64_t> passed{0};
};

namespace fake {
namespace {

CUstream_st& resolve(Stream stream) {
  if (reinterpret_cast<std::uintptr_t>(stream) > 2) return *stream;
  static std::mutex& mutex = *new std::mutex;
  // By device; their threads end with the process.
  static auto& legacy = *new std::map<int, CUstream_st*>;
  const std::lock_guard lock(mutex);
  CUstream_st*& made = legacy[current_device()];
  if (made == nullptr) made = new CUstream_st;
  return *made;
}

// Threads of streams that were destroyed may outlive the process's globals: what they use stays.
struct Streams {
  std::mutex mutex;
  std::set<CUstream_st*> all;
};
Streams& streams() {
  static Streams& made = *new Streams;
  return made;
}

void pause() { std::this_thread::sleep_for(std::chrono::microseconds(20)); }

Result stream_synchronize(Stream stream) {
  while (!resolve(stream).empty()) pause();
  return Result::kSuccess;
}
Result stream_create(Stream* stream, unsigned) {
  *stream = new CUstream_st;
  const std::lock_guard lock(streams().mutex);
  streams().all.insert(*stream);
  return Result::kSuccess;
}
Result stream_destroy(Stream stream) {
  // As the driver does it: at once, and the work goes on to its end.
  std::thread([stream] {
    stream_synchronize(stream);
    {
      const std::lock_guard lock(streams().mutex);
      streams().all.erase(stream);
    }
    delete stream;
  }).detach();
  return Result::kSuccess;
}
Result stream_query(Stream stream) {
  return resolve(stream).empty() ? Result::kSuccess : Result::kNotReady;
}
Result stream_wait_event(Stream stream, Event event, unsigned) {
  const std::uint64_t mark = event->recorded.load();
  enqueue(stream, [event, mark] {
    while (event->passed.load(std::memory_order_acquire) < mark) pause();
  });
  return Result::kSuccess;
}
thread_local CaptureMode thread_mode = CaptureMode::kGlobal;

Result exchange_capture_mode(CaptureMode* mode) {
  std::swap(*mode, thread_mode);
  return Result::kSuccess;
}
Result stream_begin_capture(Stream stream, CaptureMode mode) {
  stream->capture_mode = mode;
  stream->captured_by = std::this_thread::get_id();
  stream->capture = CaptureStatus::kActive;
  return Result::kSuccess;
}
Result stream_end_capture(Stream stream, Graph* graph) {
  *graph = nullptr;
  const bool whole = stream->capture.exchange(CaptureStatus::kNone) == CaptureStatus::kActive;
  return whole ? Result::kSuccess : Result::kCaptureUnsupported;
}
Result stream_is_capturing(Stream stream, CaptureStatus* status) {
  *status =
      reinterpret_cast<std::uintptr_t>(stream) > 2 ? stream->capture.load() : CaptureStatus::kNone;
  return Result::kSuccess;
}
Result stream_get_ctx(Stream, Context* context) {
  *context = nullptr;
  return Result::kSuccess;
}

std::atomic<std::uint32_t>& word(DevicePtr at) {
  return *reinterpret_cast<std::atomic<std::uint32_t>*>(at);
}
Result stream_wait_value32(Stream stream, DevicePtr at, std::uint32_t value, unsigned flags) {
  enqueue(stream, [=] {
    const auto reached = [&](std::uint32_t found) {
      return flags == kStreamWaitEqual ? found == value
                                       : static_cast<std::int32_t>(found - value) >= 0;
    };
    while (!reached(word(at).load(std::memory_order_acquire))) pause();
  });
  return Result::kSuccess;
}
Result stream_write_value32(Stream stream, DevicePtr at, std::uint32_t value, unsigned) {
  enqueue(stream, [=] { word(at).store(value, std::memory_order_release); });
  return Result::kSuccess;
}

Result event_create(Event* event, unsigned) {
  *event = new CUevent_st;
  return Result::kSuccess;
}
Result event_destroy(Event) { return Result::kSuccess; }  // streams may still look at it
Result event_record(Event event, Stream stream) {
  const std::uint64_t mark = ++event->recorded;
  enqueue(stream, [event, mark] {
    // An event may be recorded on one stream and then on another, which passes it earlier.
    std::uint64_t passed = event->passed.load();
    while (passed < mark && !event->passed.compare_exchange_weak(passed, mark)) {
    }
  });
  return Result::kSuccess;
}
Result event_query(Event event) {
  if (!outside_captures()) return Result::kCaptureUnsupported;
  return event->passed.load(std::memory_order_acquire) >= event->recorded.load()
             ? Result::kSuccess
             : Result::kNotReady;
}
Result event_synchronize(Event event) {
  while (event_query(event) != Result::kSuccess) pause();
  return Result::kSuccess;
}

}  // namespace

// As the driver has it: calls that may wait are forbidden by captures of this thread, and by those
// of others that want it so, but to threads that have said that they mean it.
bool outside_captures() {
  if (thread_mode == CaptureMode::kRelaxed) return true;
  bool outside = true;
  const std::lock_guard lock(streams().mutex);
  for (CUstream_st* stream : streams().all) {
    if (stream->capture == CaptureStatus::kNone) continue;
    const bool own = stream->captured_by == std::this_thread::get_id();
    const bool forbids =
        own ? stream->capture_mode != CaptureMode::kRelaxed
            : stream->capture_mode == CaptureMode::kGlobal && thread_mode == CaptureMode::kGlobal;
    if (!forbids) continue;
    stream->capture = CaptureStatus::kInvalidated;
    outside = false;
  }
  return outside;
}

void quiesce() {
  while (!resolve(nullptr).empty()) pause();
  while (true) {
    {
      const std::lock_guard lock(streams().mutex);
      const auto& all = streams().all;
      const auto is_quiet = [](const CUstream_st* stream) {
        return stream->device != current_device() || stream->empty();
      };
      if (std::all_of(all.begin(), all.end(), is_quiet)) return;
    }
    pause();
  }
}

void enqueue(Stream stream, std::function<void()> work) {
  CUstream_st& to = resolve(stream);
  if (to.capture == CaptureStatus::kNone) to.add(std::move(work));
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
          entry("cuStreamGetCtx", stream_get_ctx),
          entry("cuStreamWaitValue32", stream_wait_value32),
          entry("cuStreamWriteValue32", stream_write_value32),
          entry("cuEventCreate", event_create),
          entry("cuEventDestroy", event_destroy),
          entry("cuEventRecord", event_record),
          entry("cuEventQuery", event_query),
          entry("cuEventSynchronize", event_synchronize)};
}

}  // namespace fake
