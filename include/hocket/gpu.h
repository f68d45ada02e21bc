// GPUs for programs that do not use a CUDA toolkit: memory, streams, graphs, timing.
//
// The first Gpu loads the driver. Programs that use CUDA, CuPy or PyTorch do not need this header:
// hocket takes their arrays and streams directly.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "hocket/abi.h"
#include "hocket/held.h"
#include "hocket/stream.h"
#include "hocket/types.h"

namespace hocket {

namespace cuda {
class DeviceContext;
class DeviceBuffer;
class OwnedStream;
class OwnedEvent;
}  // namespace cuda

// A GPU of this process, with its primary context, which CUDA, CuPy and PyTorch share. A handle
// that is cheap to copy. Any thread may use it.
class Gpu {
 public:
  // Returns the number of GPUs. 0 if there is no driver.
  static int count();
  // @param ordinal Number of the GPU in this process.
  // @throws DeviceError if there is no such GPU, or no driver.
  explicit Gpu(int ordinal);
  // Returns the GPU that `address` belongs to.
  // @throws InvalidArgument if it belongs to no GPU.
  static Gpu holding(const void* address);

  // Makes later work of `later` wait for the current work of `earlier`. If `later` is being
  // captured into a graph that does not include `earlier`, it cannot wait. Then the call does
  // nothing.
  void order(StreamRef earlier, StreamRef later) const;

  // Returns the GPU's number in this process.
  int ordinal() const noexcept;
  std::string name() const;  // "NVIDIA H200"
  const std::shared_ptr<const cuda::DeviceContext>& context() const noexcept { return context_; }

 private:
  std::shared_ptr<const cuda::DeviceContext> context_;
};

// A resource: uninitialized memory of a GPU. Any thread may use it.
class [[nodiscard("its memory goes with it: keep it")]] GpuMemory {
 public:
  // @throws DeviceError if there is not enough memory. The message has the size and the free
  //   memory.
  GpuMemory(const Gpu& gpu, std::size_t bytes);
  ~GpuMemory();
  GpuMemory(GpuMemory&&) noexcept;

  void* data() const;
  std::size_t bytes() const;

 private:
  Held<"GpuMemory", std::unique_ptr<cuda::DeviceBuffer>> buffer_;
};

// A resource: captured work that can be launched repeatedly. One thread at a time.
class [[nodiscard("it is gone, and was never launched: keep it")]] GpuGraph {
 public:
  ~GpuGraph();
  GpuGraph(GpuGraph&& other) noexcept;
  // Enqueues the graph on `stream`.
  // @throws DeviceError if the driver refuses.
  void launch(StreamRef stream);

 private:
  friend class GpuStream;
  GpuGraph(Gpu gpu, void* executable) noexcept : gpu_(std::move(gpu)), executable_(executable) {}
  Gpu gpu_;
  void* executable_;
};

// A resource: a stream that does not synchronize with the legacy default stream. One thread at a
// time. Its methods throw DeviceError if the driver refuses.
class GpuStream {
 public:
  explicit GpuStream(const Gpu& gpu);
  ~GpuStream();
  GpuStream(GpuStream&&) noexcept;

  StreamRef ref() const;
  operator StreamRef() const { return ref(); }
  // Copies `bytes` bytes between any two addresses of the host and of GPUs, after the earlier work
  // of the stream. Returns when the copy is complete.
  void copy(void* to, const void* from, std::size_t bytes);
  // Waits until the work of the stream has ended.
  // @param deadline The time limit. Absent: HOCKET_DEADLINE.
  // @throws DeviceError if work on the stream failed.
  // @throws DeadlineExceeded if the time ran out.
  void synchronize(std::optional<Duration> deadline = {}) const;
  // Work that is enqueued between these two calls is captured, not run.
  void begin_capture();
  GpuGraph end_capture();

 private:
  Gpu gpu_;
  Held<"GpuStream", std::unique_ptr<cuda::OwnedStream>> stream_;
};

// A resource: an event that is recorded on a stream, with its time. One thread at a time. Its
// methods throw DeviceError if the driver refuses.
class GpuEvent {
 public:
  explicit GpuEvent(const Gpu& gpu);
  ~GpuEvent();
  GpuEvent(GpuEvent&&) noexcept;

  // Records the event behind the current work of `stream`.
  void record(StreamRef stream);
  // Makes later work of `stream` wait for the event.
  void hold(StreamRef stream) const;
  // Waits in this thread until the event has been reached. Parameters and errors are those of
  // GpuStream::synchronize.
  void synchronize(std::optional<Duration> deadline = {}) const;
  // Returns the time between two events that have been reached.
  double microseconds_since(const GpuEvent& earlier) const;

 private:
  Gpu gpu_;
  Held<"GpuEvent", std::unique_ptr<cuda::OwnedEvent>> event_;
};

}  // namespace hocket
