#include "hocket/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "foundation/base/config.h"
#include "foundation/base/deadline.h"
#include "foundation/base/limit.h"
#include "foundation/cuda/context.h"
#include "foundation/cuda/launch_gate.h"
#include "foundation/cuda/memory.h"
#include "foundation/cuda/stream.h"
#include "hocket/error.h"

namespace hocket {
namespace {

Duration allowed(std::optional<Duration> asked) {
  base::require_limit(asked, "deadline");
  return asked ? *asked : base::Config::from_environment().deadline;
}

[[noreturn]] void give_up(const Gpu& gpu, Duration waited) {
  Status status;
  status.code = ErrorCode::kDeadlineExceeded;
  status.message = fmt::format("work on GPU {} has not ended within {}; it goes on",
                               gpu.ordinal(),
                               base::in_seconds(waited));
  throw DeadlineExceeded(std::move(status), {}, {});
}

}  // namespace

int Gpu::count() {
  const cuda::FoundDriver found = cuda::Driver::find();
  return found.driver ? found.driver->devices() : 0;
}

Gpu::Gpu(int ordinal) {
  const cuda::FoundDriver found = cuda::Driver::find();
  if (!found.driver) throw DeviceError("there is no GPU to be used: " + found.why_not);
  context_ = std::make_shared<const cuda::DeviceContext>(found.driver, ordinal);
}

Gpu Gpu::holding(const void* address) {
  const cuda::FoundDriver found = cuda::Driver::find();
  if (!found.driver) throw DeviceError("there is no GPU to be used: " + found.why_not);
  const cuda::Whereabouts where = cuda::whereabouts(*found.driver, address);
  if (where.memory != MemoryKind::kCuda) {
    throw InvalidArgument("the address is in no GPU's memory");
  }
  return Gpu(where.device);
}

void Gpu::order(StreamRef earlier, StreamRef later) const {
  const cuda::DeviceGuard guard(*context_);
  const cuda::Driver& driver = context_->driver();
  if (cuda::capture_of(driver, later.handle()) == cuda::Capture::kActive &&
      cuda::capture_of(driver, earlier.handle()) != cuda::Capture::kActive) {
    return;
  }
  cuda::OwnedEvent mark(context_);
  mark.record(earlier.handle());
  mark.hold(later.handle());
}

int Gpu::ordinal() const noexcept { return context_->ordinal(); }
std::string Gpu::name() const { return context_->name(); }

// --- Memory -------------------------------------------------------------------------------------

GpuMemory::GpuMemory(const Gpu& gpu, std::size_t bytes)
    : buffer_(
          std::make_unique<cuda::DeviceBuffer>(gpu.context(), std::max<std::size_t>(1, bytes))) {}
GpuMemory::~GpuMemory() = default;
GpuMemory::GpuMemory(GpuMemory&&) noexcept = default;

void* GpuMemory::data() const { return buffer_->data(); }
std::size_t GpuMemory::bytes() const { return buffer_->bytes(); }

// --- Streams ------------------------------------------------------------------------------------

GpuStream::GpuStream(const Gpu& gpu)
    : gpu_(gpu), stream_(std::make_unique<cuda::OwnedStream>(gpu.context())) {}
GpuStream::~GpuStream() = default;
GpuStream::GpuStream(GpuStream&&) noexcept = default;

StreamRef GpuStream::ref() const { return stream_->get(); }

void GpuStream::copy(void* to, const void* from, std::size_t bytes) {
  const cuda::DeviceGuard guard(*gpu_.context());
  cuda::copy(gpu_.context()->driver(), to, from, bytes, stream_->get());
  synchronize();
}

void GpuStream::synchronize(std::optional<Duration> deadline) const {
  const cuda::DeviceGuard guard(*gpu_.context());
  const Duration limit = allowed(deadline);
  const cuda::Driver& driver = gpu_.context()->driver();
  if (!cuda::drain(driver, stream_->get(), base::Deadline::in(limit))) give_up(gpu_, limit);
}

void GpuStream::begin_capture() {
  const cuda::DeviceGuard guard(*gpu_.context());
  const cuda::Driver& driver = gpu_.context()->driver();
  cuda::check(driver,
              driver.stream_begin_capture(stream_->get(), cuda::CaptureMode::kThreadLocal),
              "begin a capture");
}

GpuGraph GpuStream::end_capture() {
  const cuda::DeviceGuard guard(*gpu_.context());
  const cuda::Driver& driver = gpu_.context()->driver();
  cuda::Graph graph{};
  cuda::GraphExec executable{};
  cuda::check(driver, driver.stream_end_capture(stream_->get(), &graph), "end a capture");
  const cuda::LaunchPause pause(*gpu_.context());
  const cuda::Result made = driver.graph_instantiate(&executable, graph, 0);
  driver.graph_destroy(graph);
  cuda::check(driver, made, "make a graph");
  return GpuGraph(gpu_, executable);
}

GpuGraph::GpuGraph(GpuGraph&& other) noexcept
    : gpu_(other.gpu_), executable_(std::exchange(other.executable_, nullptr)) {}

GpuGraph::~GpuGraph() {
  if (executable_ == nullptr) return;
  const cuda::DeviceGuard guard(*gpu_.context());
  const cuda::LaunchPause pause(*gpu_.context());
  gpu_.context()->driver().graph_exec_destroy(static_cast<cuda::GraphExec>(executable_));
}

void GpuGraph::launch(StreamRef stream) {
  const cuda::DeviceGuard guard(*gpu_.context());
  const cuda::Driver& driver = gpu_.context()->driver();
  cuda::check(driver,
              driver.graph_launch(static_cast<cuda::GraphExec>(executable_), stream.handle()),
              "launch a graph");
}

// --- Events -------------------------------------------------------------------------------------

GpuEvent::GpuEvent(const Gpu& gpu)
    : gpu_(gpu),
      event_(std::make_unique<cuda::OwnedEvent>(gpu.context(), cuda::OwnedEvent::Timing::kOn)) {}
GpuEvent::~GpuEvent() = default;
GpuEvent::GpuEvent(GpuEvent&&) noexcept = default;

void GpuEvent::record(StreamRef stream) {
  const cuda::DeviceGuard guard(*gpu_.context());
  event_->record(stream.handle());
}

void GpuEvent::hold(StreamRef stream) const {
  const cuda::DeviceGuard guard(*gpu_.context());
  event_->hold(stream.handle());
}

void GpuEvent::synchronize(std::optional<Duration> deadline) const {
  const Duration limit = allowed(deadline);
  if (!event_->wait(base::Deadline::in(limit))) give_up(gpu_, limit);
}

double GpuEvent::microseconds_since(const GpuEvent& earlier) const {
  return 1e-3 * static_cast<double>(event_->since(*earlier.event_).count());
}

}  // namespace hocket
