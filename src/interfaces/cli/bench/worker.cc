#include "interfaces/cli/bench/worker.h"

#include <algorithm>
#include <array>

#include "hocket/hocket.h"
#include "interfaces/cli/bench/libraries.h"
#include "interfaces/cli/bench/numeric.h"
#include "interfaces/cli/bench/peer.h"

namespace hocket::cli::bench {
namespace {

// Number of calls in a graph. They are enough to hide the cost of its launch, and few enough for
// several graphs in a batch.
constexpr long kCallsInGraph = 20;

// A resource: this process's part in the job. One thread. Fails with hocket's errors.
class Hocket final : public Library {
 public:
  explicit Hocket(const WorkerOptions& options)
      : options_(options), world_(init()), comm_(world_.communicator()) {
    if (!options.on_gpu) return;
    gpu_.emplace(comm_.rank() % std::max(1, Gpu::count()));
    stream_.emplace(*gpu_);
    // Messages between GPUs need a collective before them.
    comm_.barrier({.stream = stream_->ref()});
    stream_->synchronize();
  }

  JobRank job_rank() const override { return {comm_.rank(), comm_.size()}; }
  std::string name() const override { return options_.name; }
  std::string version() const override {
    std::string text = "hocket " HOCKET_VERSION;
    for (const std::string& engine : world_.engines()) text += " " + engine;
    if (gpu_) text += ", " + gpu_->name();
    return text;
  }
  void barrier() override { comm_.barrier(); }

  std::optional<std::string> refusal(const Case& subject) const override {
    if (gpu_ && is_window(subject.collective)) return "windows are measured in host memory";
    if (reduces(subject.collective) && !is_defined(subject.op, subject.dtype)) {
      return std::string(hocket::name_of(subject.op)) + " has no meaning on " +
             std::string(hocket::name_of(subject.dtype));
    }
    return std::nullopt;
  }

  Bound bind(const Case& subject) override {
#ifdef HOCKET_ARRAYS
    if (is_numeric(subject.collective)) return bind_numeric(subject);
#endif
    Bound bound;
    if (subject.memory == Memory::kSymmetric && !gpu_) {
      bound.arrays = symmetric_arrays(subject, MemoryKind::kHost, bound.owners);
    } else {
      bind_ordinary_arrays(bound, subject, job_rank());
    }
    const Shape shape = shape_of(subject, job_rank().rank, job_rank().ranks);
    if (gpu_) {
      bind_to_gpu(bound, subject, shape);
      return bound;
    }
    bound.calls = calls_on(subject,
                           {bound.arrays.in, shape.in, subject.dtype},
                           {bound.arrays.out, shape.out, subject.dtype});
    return bound;
  }

 private:
  using Owners = std::vector<std::shared_ptr<void>>;

#ifdef HOCKET_ARRAYS
  Bound bind_numeric(const Case& subject) {
    Bound bound;
    bind_ordinary_arrays(bound, subject, job_rank());
    const Shape shape = shape_of(subject, job_rank().rank, job_rank().ranks);
    const std::size_t n = subject.elements;
    const ArrayView out(bound.arrays.out, shape.out, subject.dtype);
    if (subject.collective == Collective::kMatmul) {
      const MatrixPart part(n, job_rank());
      const BlockCyclic blocks(ProcessGrid({part.grid[0], part.grid[1]}),
                               {MatrixPart::kBlock, MatrixPart::kBlock});
      const MatmulOperand spread{.spread = blocks, .order = MemoryOrder::kFortran};
      auto product = std::make_shared<Matmul>(comm_,
                                              MatmulSize{n, n, n},
                                              spread,
                                              spread,
                                              spread,
                                              MatmulOptions{.dtype = subject.dtype});
      auto* const second =
          static_cast<std::byte*>(bound.arrays.in) + part.count() * size_of(subject.dtype);
      const ConstArrayView a(bound.arrays.in, part.count(), subject.dtype),
          b(second, part.count(), subject.dtype);
      bound.calls = repeated([product, a, b, out] { (*product)(a, b, out); });
      return bound;
    }
    const Extents cube(3, n);
    const std::size_t axis = subject.collective == Collective::kFftTransposed ? 1 : 0;
    auto fft = std::make_shared<Fft>(
        comm_,
        cube,
        Slab{0}.box(cube, comm_.rank(), comm_.size()),
        Slab{axis}.box(cube, comm_.rank(), comm_.size()),
        FftOptions{.precision =
                       subject.dtype == DType::kComplex128 ? DType::kFloat64 : DType::kFloat32});
    const ConstArrayView in(bound.arrays.in, shape.in, subject.dtype);
    bound.calls = repeated([fft, in, out] { (*fft)(in, out); });
    return bound;
  }
#endif

  // Symmetric arrays have one size on all ranks: the largest that any rank needs.
  Arrays symmetric_arrays(const Case& subject, MemoryKind memory, Owners& owners) {
    Shape largest;
    for (int rank = 0; rank < job_rank().ranks; ++rank) {
      const Shape shape = shape_of(subject, rank, job_rank().ranks);
      largest.in = std::max(largest.in, shape.in);
      largest.out = std::max(largest.out, shape.out);
    }
    const auto make = [&](std::size_t count) -> void* {
      if (count == 0) return nullptr;
      SymmetricArray array = comm_.symmetric().empty(count, subject.dtype, {.memory = memory});
      owners.push_back(array.owner());
      return array.local().data();
    };
    return {make(largest.in), make(largest.out)};
  }
  Arrays gpu_arrays(const Case& subject, Shape shape, Owners& owners) {
    const auto make = [&](std::size_t count) -> void* {
      if (count == 0) return nullptr;
      auto memory = std::make_shared<GpuMemory>(*gpu_, count * size_of(subject.dtype));
      owners.push_back(memory);
      return memory->data();
    };
    return {make(shape.in), make(shape.out)};
  }

  std::function<void(long)> calls_on(const Case& subject, ConstArrayView in, ArrayView out) {
    const Collective made = subject.collective;
    if (is_of_two(made) || made == Collective::kSendRecv) return message(subject, in, out);
    if (made == Collective::kBarrier) {
      return repeated(
          [&comm = comm_, plain = CallOptions{.stream = stream()}] { comm.barrier(plain); });
    }
    const bool is_one = subject.in_place || made == Collective::kBroadcast;
    return is_one ? collective(subject, out) : collective(subject, in, out);
  }

  // The arrays on the GPU, and the functions that make calls on them.
  struct OnGpu {
    Arrays arrays;
    Owners owners;
    std::function<void(long)> calls;
    std::optional<GpuGraph> one, many;
  };

  void bind_to_gpu(Bound& bound, const Case& subject, Shape shape) {
    auto on_gpu = std::make_shared<OnGpu>();
    on_gpu->arrays = subject.memory == Memory::kSymmetric
                         ? symmetric_arrays(subject, MemoryKind::kCuda, on_gpu->owners)
                         : gpu_arrays(subject, shape, on_gpu->owners);
    const auto [in, out] = on_gpu->arrays;
    const int gpu = gpu_->ordinal();
    on_gpu->calls = calls_on(subject,
                             {in, shape.in, subject.dtype, MemoryKind::kCuda, gpu},
                             {out, shape.out, subject.dtype, MemoryKind::kCuda, gpu});
    const std::size_t in_bytes = shape.in * size_of(subject.dtype);
    const std::size_t out_bytes = shape.out * size_of(subject.dtype);
    bound.upload = [this, on_gpu, in_bytes, out_bytes, arrays = bound.arrays] {
      if (in_bytes > 0) stream_->copy(on_gpu->arrays.in, arrays.in, in_bytes);
      if (out_bytes > 0) stream_->copy(on_gpu->arrays.out, arrays.out, out_bytes);
    };
    bound.download = [this, on_gpu, out_bytes, arrays = bound.arrays] {
      if (out_bytes > 0) stream_->copy(arrays.out, on_gpu->arrays.out, out_bytes);
    };
    bound.calls = [this, on_gpu](long n) { run_on_gpu(*on_gpu, n); };
  }

  void run_on_gpu(OnGpu& on_gpu, long n) {
    if (!options_.by_graph) {
      on_gpu.calls(n);
      return stream_->synchronize();
    }
    const auto captured = [&](std::optional<GpuGraph>& graph, long calls) {
      if (!graph) {
        stream_->begin_capture();
        on_gpu.calls(calls);
        graph.emplace(stream_->end_capture());
      }
      graph->launch(*stream_);
    };
    for (; n >= kCallsInGraph; n -= kCallsInGraph) captured(on_gpu.many, kCallsInGraph);
    for (; n > 0; --n) captured(on_gpu.one, 1);
    stream_->synchronize();
  }

  std::optional<StreamRef> stream() const {
    return stream_ ? std::optional(stream_->ref()) : std::nullopt;
  }

  template <typename F>
  static std::function<void(long)> repeated(F call) {
    return [call](long n) {
      for (long i = 0; i < n; ++i) call();
    };
  }

  // Returns the calls of a collective. `arrays` is one array if it works in place, and otherwise
  // two.
  template <typename... Arrays>
  std::function<void(long)> collective(const Case& subject, Arrays... arrays) {
    const auto calls = [&](auto verb, const auto& options) {
      return repeated(
          [&comm = comm_, verb, options, arrays...] { verb(comm, arrays..., options); });
    };
    const ReduceOptions reduce{.op = subject.op, .stream = stream()};
    const ReduceRootOptions reduce_root{.op = subject.op, .root = kRoot, .stream = stream()};
    const RootOptions root{.root = kRoot, .stream = stream()};
    const CallOptions plain{.stream = stream()};
    switch (subject.collective) {
      case Collective::kAllReduce:
        return calls([](Communicator& c, auto... a) { c.all_reduce(a...); }, reduce);
      case Collective::kReduce:
        return calls([](Communicator& c, auto... a) { c.reduce(a...); }, reduce_root);
      case Collective::kScan:
        return calls([](Communicator& c, auto... a) { c.scan(a...); }, reduce);
      case Collective::kExscan:
        return calls([](Communicator& c, auto... a) { c.exscan(a...); }, reduce);
      case Collective::kReduceScatter:
        return calls([](Communicator& c, auto... a) { c.reduce_scatter(a...); }, reduce);
      case Collective::kBroadcast:
        return calls([](Communicator& c, auto... a) { c.broadcast(a...); }, root);
      case Collective::kAllGather:
        return calls([](Communicator& c, auto... a) { c.all_gather(a...); }, plain);
      case Collective::kGather:
        return calls([](Communicator& c, auto... a) { c.gather(a...); }, root);
      case Collective::kScatter:
        return calls([](Communicator& c, auto... a) { c.scatter(a...); }, root);
      case Collective::kAllToAll:
        return calls([](Communicator& c, auto... a) { c.all_to_all(a...); }, plain);
      case Collective::kBarrier:
      case Collective::kSend:
      case Collective::kSendRecv:
      case Collective::kSendWindow:
      case Collective::kISendWindow:
      case Collective::kFft:
      case Collective::kFftTransposed:
      case Collective::kMatmul:
        break;
    }
    throw InvalidArgument("hocket bench: this call is no collective of arrays");
  }

  std::function<void(long)> message(const Case& subject, ConstArrayView in, ArrayView out) {
    Communicator& comm = comm_;
    const MessageOptions options{.stream = stream()};
    const auto [rank, ranks] = job_rank();
    if (subject.collective == Collective::kSendRecv) {
      const int next = (rank + 1) % ranks;
      const int previous = (rank + ranks - 1) % ranks;
      return repeated([&comm, in, out, next, previous, options] {
        comm.send_recv(in, next, out, previous, options);
      });
    }
    if (rank > 1) return [](long) {};
    if (is_window(subject.collective)) return window(subject, in, out);
    if (rank == 1) {
      return repeated([&comm, in, out, options] {
        comm.recv(out, 0, options);
        comm.send(in, 0, options);
      });
    }
    return repeated([&comm, in, out, options] {
      comm.send(in, 1, options);
      comm.recv(out, 1, options);
    });
  }

  // Makes the calls of a window. The receiver's message at its end keeps the sender from running
  // ahead.
  std::function<void(long)> window(const Case& subject, ConstArrayView in, ArrayView out) {
    Communicator& comm = comm_;
    const MessageOptions options{.stream = stream()};
    const bool sends = comm.rank() == 0;
    const auto end = [&comm, sends] {
      std::byte word{};
      if (sends) {
        comm.recv(ArrayView(&word, 1, DType::kUInt8), 1);
      } else {
        comm.send(ConstArrayView(&word, 1, DType::kUInt8), 0);
      }
    };
    if (subject.collective == Collective::kSendWindow) {
      return repeated([&comm, in, out, options, sends, end] {
        for (int i = 0; i < kWindow; ++i) {
          sends ? comm.send(in, 1, options) : static_cast<void>(comm.recv(out, 0, options));
        }
        end();
      });
    }
    return repeated([&comm, in, out, options, sends, end] {
      std::array<Work, kWindow> works;
      for (Work& work : works) {
        work = sends ? comm.send_async(in, 1, options) : comm.recv_async(out, 0, options);
      }
      for (Work& work : works) work.wait();
      end();
    });
  }

  WorkerOptions options_;
  World world_;
  Communicator& comm_;
  std::optional<Gpu> gpu_;  // gpu_ and stream_ are set if arrays are on a GPU
  std::optional<GpuStream> stream_;
};

}  // namespace

int run_worker(const WorkerOptions& options) {
  Hocket hocket(options);
  return serve(hocket);
}

}  // namespace hocket::cli::bench
