// GPUs for programs that have no CUDA toolkit of their own: memory, streams, graphs, times.
//
// The driver is found when the first Gpu is made. Programs that use CUDA, CuPy or PyTorch need none
// of this: hocket takes their arrays and streams as they are.
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

// A GPU of this process, and its primary context, which CUDA, CuPy and PyTorch use too. A handle;
// cheap to copy, any thread. Throws DeviceError where there is no such GPU, or no driver.
class Gpu {
 public:
  // How many there are; 0 where there is no driver.
  static int count();
  explicit Gpu(int ordinal);
  // The GPU whose memory that is. Throws InvalidArgument where it is none's.
  static Gpu holding(const void* address);

  // What is put on `later` from now on comes after all that is on `earlier`. Does nothing where
  // `later` is being captured into a graph that `earlier` is not part of, and cannot wait for it.
  void order(StreamRef earlier, StreamRef later) const;

  int ordinal() const noexcept;
  std::string name() const;  // "NVIDIA H200"
  const std::shared_ptr<const cuda::DeviceContext>& context() const noexcept { return context_; }

 private:
  std::shared_ptr<const cuda::DeviceContext> context_;
};

// A resource: memory of a GPU, uninitialized at first. Any thread. Throws DeviceError, which names
// the size and what is free, where there is not enough.
class [[nodiscard("its memory goes with it: keep it")]] GpuMemory {
 public:
  GpuMemory(const Gpu& gpu, std::size_t bytes);
  ~GpuMemory();
  GpuMemory(GpuMemory&&) noexcept;

  void* data() const;
  std::size_t bytes() const;

 private:
  Held<"GpuMemory", std::unique_ptr<cuda::DeviceBuffer>> buffer_;
};

// A resource: work that was captured, to be launched again and again. One thread.
class [[nodiscard("it is gone, and was never launched: keep it")]] GpuGraph {
 public:
  ~GpuGraph();
  GpuGraph(GpuGraph&& other) noexcept;
  void launch(StreamRef stream);

 private:
  friend class GpuStream;
  GpuGraph(Gpu gpu, void* executable) noexcept : gpu_(std::move(gpu)), executable_(executable) {}
  Gpu gpu_;
  void* executable_;
};

// A resource: a stream that the legacy default stream does not wait for. One thread at a time.
class GpuStream {
 public:
  explicit GpuStream(const Gpu& gpu);
  ~GpuStream();
  GpuStream(GpuStream&&) noexcept;

  StreamRef ref() const;
  operator StreamRef() const { return ref(); }
  // Copies between any two of the host's memory and GPUs', after all that is on the stream, and
  // synchronizes.
  void copy(void* to, const void* from, std::size_t bytes);
  // Waits until all of it has ended; throws DeviceError where something on it failed, and
  // DeadlineExceeded where that takes longer than `deadline`, HOCKET_DEADLINE where absent.
  void synchronize(std::optional<Duration> deadline = {}) const;
  // What is put on the stream between the two is not done, but captured.
  void begin_capture();
  GpuGraph end_capture();

 private:
  Gpu gpu_;
  Held<"GpuStream", std::unique_ptr<cuda::OwnedStream>> stream_;
};

// A resource: a mark in a stream, with its time. One thread at a time.
class GpuEvent {
 public:
  explicit GpuEvent(const Gpu& gpu);
  ~GpuEvent();
  GpuEvent(GpuEvent&&) noexcept;

  void record(StreamRef stream);
  // What is put on `stream` from now on comes after the mark.
  void hold(StreamRef stream) const;
  // Waits here until the mark has been passed, as GpuStream::synchronize does.
  void synchronize(std::optional<Duration> deadline = {}) const;
  // Between two marks that have been passed.
  double microseconds_since(const GpuEvent& earlier) const;

 private:
  Gpu gpu_;
  Held<"GpuEvent", std::unique_ptr<cuda::OwnedEvent>> event_;
};

}  // namespace hocket
