#include "device_arrays.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "calls/device/streams/staging.h"
#include "foundation/base/config.h"

namespace hocket::gpu {

using conformance::Case;
using engine::Kind;

namespace {

constexpr std::size_t kGuard = 64;  // what conformance::Buffers has on either side

const cuda::FoundDriver& found() {
  static const cuda::FoundDriver once = [] {
    // Read as the driver starts: eight ranks may share a GPU here, with streams of their own.
    base::default_environment("CUDA_DEVICE_MAX_CONNECTIONS", "32");
    return cuda::Driver::find();
  }();
  return once;
}

std::vector<std::size_t> elements(const std::size_t* bytes, int size, DType dtype) {
  std::vector<std::size_t> counts;
  for (int i = 0; bytes != nullptr && i < size; ++i) counts.push_back(bytes[i] / size_of(dtype));
  return counts;
}

}  // namespace

Machine machine() {
  if (!found().driver) return {.why_not = found().why_not};
  const bool fake = found().driver->path().find("fake_cuda") != std::string::npos;
  const char* nccl = std::getenv("HOCKET_NCCL_LIBRARY");
  return {.gpus = found().driver->devices(),
          .fake = fake,
          .nccl = nccl == nullptr ? !fake : std::string_view(nccl) != "none",
          .why_not = {}};
}

const std::shared_ptr<const cuda::Driver>& driver() { return found().driver; }

std::string run(int size,
                const std::vector<std::string>& engines,
                const std::function<void(GpuRank&)>& body) {
  // With fewer GPUs than ranks, the host carries every call for which `peer` is not requested.
  const bool shares = size > driver()->devices() && !machine().fake;
  const std::vector<std::string> asked =
      engines.empty() && shares ? std::vector<std::string>{"peer"} : engines;
  try {
    run_threads(size,
                [&](Communicator& comm) {
                  const auto device = std::make_shared<cuda::DeviceContext>(
                      driver(), comm.rank() % driver()->devices());
                  const cuda::DeviceGuard guard(*device);
                  GpuRank self{comm, device, cuda::OwnedStream(device)};
                  body(self);
                },
                {.deadline = std::chrono::seconds(60), .engines = asked});
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

bool DeviceArrays::Range::holds(const void* address) const {
  const auto* at = static_cast<const std::byte*>(address);
  return host != nullptr && at >= host && at < host + bytes;
}

DeviceArrays::DeviceArrays(const GpuRank& self, const Case& c, std::uint64_t sequence)
    : self_(self), case_(c), buffers_(c, self.comm.rank(), self.comm.size(), sequence) {
  const engine::Call& call = buffers_.call();
  const auto extents = device::extents_of(call, self.comm.rank(), self.comm.size());
  in_bytes_ = call.in == nullptr ? 0 : extents.in;
  out_bytes_ = call.out == nullptr ? 0 : extents.out;
  auto* in = static_cast<std::byte*>(const_cast<void*>(call.in));
  auto* out = static_cast<std::byte*>(call.out);
  if (out_bytes_ != 0) out_range_ = {out - kGuard, out_bytes_ + 2 * kGuard, nullptr};
  if (in_bytes_ != 0 && out_bytes_ != 0 && in < out + out_bytes_ && out < in + in_bytes_) {
    // In place: one range holds both.
    std::byte* begin = std::min(in, out) - kGuard;
    std::byte* end = std::max(in + in_bytes_, out + out_bytes_) + kGuard;
    out_range_ = {begin, static_cast<std::size_t>(end - begin), nullptr};
  } else if (in_bytes_ != 0) {
    in_range_ = {in - kGuard, in_bytes_ + 2 * kGuard, nullptr};
  }
  put(in_range_);
  put(out_range_);
}

void DeviceArrays::put(Range& range) {
  if (range.bytes == 0) return;
  range.copy = std::make_unique<cuda::DeviceBuffer>(self_.device, range.bytes);
  const auto& gpu = self_.device->driver();
  cuda::check(
      gpu,
      gpu.memcpy_htod_async(range.copy->address(), range.host, range.bytes, self_.stream.get()),
      "copy to the GPU");
}

const void* DeviceArrays::on_device(const void* host) const {
  for (const Range* range : {&in_range_, &out_range_}) {
    if (range->holds(host)) {
      return static_cast<const std::byte*>(range->copy->data()) +
             (static_cast<const std::byte*>(host) - range->host);
    }
  }
  return nullptr;
}

ConstArrayView DeviceArrays::in() const {
  return {on_device(buffers_.call().in),
          in_bytes_ / size_of(case_.dtype),
          case_.dtype,
          MemoryKind::kCuda};
}

ArrayView DeviceArrays::out() const {
  return {const_cast<void*>(on_device(buffers_.call().out)),
          out_bytes_ / size_of(case_.dtype),
          case_.dtype,
          MemoryKind::kCuda,
          self_.device->ordinal()};
}

void DeviceArrays::call(Verb verb) {
  if (verb != Verb::kGraph) return call_once(verb == Verb::kAsync);
  const auto& gpu = self_.device->driver();
  cuda::Graph graph{};
  cuda::GraphExec replay{};
  const cuda::Stream stream = self_.stream.get();
  cuda::check(gpu, gpu.stream_begin_capture(stream, cuda::CaptureMode::kThreadLocal), "capture");
  call_once(false);
  cuda::check(gpu, gpu.stream_end_capture(stream, &graph), "end a capture");
  cuda::check(gpu, gpu.graph_instantiate(&replay, graph, 0), "make a graph");
  cuda::check(gpu, gpu.graph_launch(replay, stream), "launch a graph");
  if (!cuda::drain(gpu, stream, base::Deadline::in(std::chrono::seconds(60)))) {
    throw std::runtime_error("a replay did not end in a minute");
  }
  gpu.graph_exec_destroy(replay);
  gpu.graph_destroy(graph);
}

void DeviceArrays::call_once(bool async) {
  const engine::Call& call = buffers_.call();
  Communicator& comm = self_.comm;
  const StreamRef stream(self_.stream.get());
  const int size = comm.size();
  const auto in_counts = elements(call.in_parts.bytes, size, case_.dtype);
  const auto in_places = elements(call.in_parts.offsets, size, case_.dtype);
  auto out_counts = elements(call.out_parts.bytes, size, case_.dtype);
  // If counts matter only at the root, the other ranks pass zeros.
  if (out_counts.empty()) out_counts.resize(static_cast<std::size_t>(size));
  const auto out_places = elements(call.out_parts.offsets, size, case_.dtype);
  const Parts in_parts{in_counts, in_places};
  const Parts out_parts{out_counts, out_places};
  const ReduceOptions reduce{.op = case_.op, .stream = stream};
  const RootOptions root{.root = case_.root, .stream = stream};
  const ReduceRootOptions reduce_root{.op = case_.op, .root = case_.root, .stream = stream};
  const CallOptions plain{.stream = stream};
  Work work;
  switch (case_.kind) {
    case Kind::kBarrier:
      async ? void(work = comm.barrier_async(plain)) : comm.barrier(plain);
      break;
    case Kind::kBroadcast:
      async ? void(work = comm.broadcast_async(in(), out(), root))
            : comm.broadcast(in(), out(), root);
      break;
    case Kind::kReduce:
      async ? void(work = comm.reduce_async(in(), out(), reduce_root))
            : comm.reduce(in(), out(), reduce_root);
      break;
    case Kind::kAllReduce:
      async ? void(work = comm.all_reduce_async(in(), out(), reduce))
            : comm.all_reduce(in(), out(), reduce);
      break;
    case Kind::kScan:
      async ? void(work = comm.scan_async(in(), out(), reduce)) : comm.scan(in(), out(), reduce);
      break;
    case Kind::kExscan:
      async ? void(work = comm.exscan_async(in(), out(), reduce))
            : comm.exscan(in(), out(), reduce);
      break;
    case Kind::kReduceScatter:
      async ? void(work = comm.reduce_scatter_async(in(), out(), reduce))
            : comm.reduce_scatter(in(), out(), reduce);
      break;
    case Kind::kAllGather:
      async ? void(work = comm.all_gather_async(in(), out(), plain))
            : comm.all_gather(in(), out(), plain);
      break;
    case Kind::kGather:
      async ? void(work = comm.gather_async(in(), out(), root)) : comm.gather(in(), out(), root);
      break;
    case Kind::kScatter:
      async ? void(work = comm.scatter_async(in(), out(), root)) : comm.scatter(in(), out(), root);
      break;
    case Kind::kAllToAll:
      async ? void(work = comm.all_to_all_async(in(), out(), plain))
            : comm.all_to_all(in(), out(), plain);
      break;
    case Kind::kReduceScatterV:
      async ? void(work = comm.reduce_scatter_v_async(in(), out(), in_counts, reduce))
            : comm.reduce_scatter_v(in(), out(), in_counts, reduce);
      break;
    case Kind::kAllGatherV:
      async ? void(work = comm.all_gather_v_async(in(), out(), out_parts, plain))
            : comm.all_gather_v(in(), out(), out_parts, plain);
      break;
    case Kind::kGatherV:
      async ? void(work = comm.gather_v_async(in(), out(), out_parts, root))
            : comm.gather_v(in(), out(), out_parts, root);
      break;
    case Kind::kScatterV:
      async ? void(work = comm.scatter_v_async(in(), in_parts, out(), root))
            : comm.scatter_v(in(), in_parts, out(), root);
      break;
    case Kind::kAllToAllV:
      async ? void(work = comm.all_to_all_v_async(in(), in_parts, out(), out_parts, plain))
            : comm.all_to_all_v(in(), in_parts, out(), out_parts, plain);
      break;
    default:
      throw InvalidArgument("no such case");
  }
  if (async) work.synchronize();
}

std::string DeviceArrays::check() {
  const auto& gpu = self_.device->driver();
  for (Range* range : {&in_range_, &out_range_}) {
    if (!range->copy) continue;
    cuda::check(gpu,
                gpu.memcpy_dtoh_async(
                    range->host, range->copy->address(), range->bytes, self_.stream.get()),
                "copy from the GPU");
  }
  const auto deadline = base::Deadline::in(std::chrono::seconds(60));
  if (!cuda::drain(gpu, self_.stream.get(), deadline)) return "the stream did not end in a minute";
  return buffers_.check();
}

}  // namespace hocket::gpu
