// Gloo, which `hocket bench` measures over TCP on this host. Gloo has no other transport between
// processes. `hocket run` starts the ranks. They meet in a folder, which is deleted when all are
// connected.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

#include "interfaces/cli/bench/peer.h"

namespace hocket::cli::bench {
namespace {

namespace fs = std::filesystem;
using Reduction = gloo::AllreduceOptions::Func;
using Message = gloo::transport::UnboundBuffer;

std::string needed(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) throw std::runtime_error(std::string(name) + " is not set");
  return value;
}

template <typename T>
Reduction reduction_of(ReduceOp op) {
  using Pointers = void (*)(void*, const void*, const void*, std::size_t);
  switch (op) {
    case ReduceOp::kSum:
      return static_cast<Pointers>(gloo::sum<T>);
    case ReduceOp::kProduct:
      return static_cast<Pointers>(gloo::product<T>);
    case ReduceOp::kMin:
      return static_cast<Pointers>(gloo::min<T>);
    case ReduceOp::kMax:
      return static_cast<Pointers>(gloo::max<T>);
    case ReduceOp::kAvg:
    case ReduceOp::kBitAnd:
    case ReduceOp::kBitOr:
    case ReduceOp::kBitXor:
      break;
  }
  return {};
}

// Returns Gloo's function for a reduction. Empty if Gloo has none.
Reduction reduction_of(DType dtype, ReduceOp op) {
  switch (dtype) {
    case DType::kInt8:
      return reduction_of<std::int8_t>(op);
    case DType::kUInt8:
      return reduction_of<std::uint8_t>(op);
    case DType::kInt32:
      return reduction_of<std::int32_t>(op);
    case DType::kInt64:
      return reduction_of<std::int64_t>(op);
    case DType::kUInt64:
      return reduction_of<std::uint64_t>(op);
    case DType::kFloat32:
      return reduction_of<float>(op);
    case DType::kFloat64:
      return reduction_of<double>(op);
    default:
      return {};
  }
}

// Sets the arrays of options with a type of `bytes` bytes, because Gloo takes the element size from
// a type.
template <typename Options>
void set_arrays(Options& options, const Arrays& arrays, std::size_t count, std::size_t bytes) {
  const auto set = [&]<typename T>(T*) {
    if (arrays.in != nullptr) options.setInput(static_cast<T*>(arrays.in), count);
    options.setOutput(static_cast<T*>(arrays.out), count);
  };
  if (bytes == 1) set(static_cast<std::uint8_t*>(nullptr));
  if (bytes == 4) set(static_cast<std::uint32_t*>(nullptr));
  if (bytes == 8) set(static_cast<std::uint64_t*>(nullptr));
}

template <typename F>
std::function<void(long)> repeated(F call) {
  return [call](long n) {
    for (long i = 0; i < n; ++i) call();
  };
}

// A resource: a connected context. One thread beside Gloo's own. Fails with Gloo's exceptions.
class Gloo final : public Library {
 public:
  Gloo() : job_rank_{std::stoi(needed("HOCKET_RANK")), std::stoi(needed("HOCKET_SIZE"))} {
    const fs::path folder = fs::temp_directory_path() / ("hocket-bench-" + needed("HOCKET_JOB"));
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
      throw std::system_error(errno, std::generic_category(), folder);
    }
    gloo::rendezvous::FileStore store(folder);
    gloo::transport::tcp::attr address("127.0.0.1");
    std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(address);
    auto context = std::make_shared<gloo::rendezvous::Context>(job_rank_.rank, job_rank_.ranks);
    // Long enough that the --timeout of `hocket bench` always ends first.
    context->setTimeout(std::chrono::hours(1));
    context->connectFullMesh(store, device);
    context_ = std::move(context);
    barrier();
    std::error_code ignored;
    if (job_rank_.rank == 0) fs::remove_all(folder, ignored);
  }

  JobRank job_rank() const override { return job_rank_; }
  std::string name() const override { return "gloo"; }
  std::string version() const override { return "Gloo, TCP on 127.0.0.1"; }
  void barrier() override {
    gloo::BarrierOptions options(context_);
    gloo::barrier(options);
  }

  std::optional<std::string> refusal(const Case& subject) const override {
    if (subject.memory != Memory::kOrdinary) return "it has no symmetric memory";
    if (subject.collective == Collective::kReduceScatter) return "it has none between processes";
    if (subject.collective == Collective::kScan || subject.collective == Collective::kExscan) {
      return "it has no prefix reductions";
    }
    const bool moves_in_place = subject.collective == Collective::kGather ||
                                subject.collective == Collective::kScatter ||
                                subject.collective == Collective::kAllToAll;
    if (subject.in_place && moves_in_place) return "not in place";
    if (reduces(subject.collective) && !reduction_of(subject.dtype, subject.op)) {
      return "it has no such reduction";
    }
    return std::nullopt;
  }

  Bound bind(const Case& subject) override {
    Bound bound;
    bind_ordinary_arrays(bound, subject, job_rank_);
    bound.calls = calls_of(subject, bound);
    return bound;
  }

 private:
  std::function<void(long)> calls_of(const Case& subject, Bound& bound) {
    const std::size_t width = size_of(subject.dtype);
    const std::size_t bytes = subject.elements * width;
    const Arrays& arrays = bound.arrays;
    switch (subject.collective) {
      case Collective::kAllReduce: {
        auto options = std::make_shared<gloo::AllreduceOptions>(context_);
        set_arrays(*options, arrays, subject.elements, width);
        options->setReduceFunction(reduction_of(subject.dtype, subject.op));
        return repeated([options] { gloo::allreduce(*options); });
      }
      case Collective::kReduce: {
        auto options = std::make_shared<gloo::ReduceOptions>(context_);
        // Every rank needs an output array. Ranks other than the root get scratch memory.
        Arrays given = arrays;
        if (given.out == nullptr) {
          bound.owners.push_back(ordinary_memory(bytes));
          given.out = bound.owners.back().get();
        }
        set_arrays(*options, given, subject.elements, width);
        options->setReduceFunction(reduction_of(subject.dtype, subject.op));
        options->setRoot(kRoot);
        return repeated([options] { gloo::reduce(*options); });
      }
      case Collective::kBroadcast:
        return rooted<gloo::BroadcastOptions>(gloo::broadcast, arrays, 0, bytes);
      case Collective::kGather:
        return rooted<gloo::GatherOptions>(gloo::gather, arrays, bytes, all_of(bytes));
      case Collective::kAllGather:
        return plain<gloo::AllgatherOptions>(gloo::allgather,
                                             subject.in_place ? own_part(arrays, bytes) : arrays,
                                             bytes,
                                             all_of(bytes));
      case Collective::kAllToAll:
        return plain<gloo::AlltoallOptions>(gloo::alltoall, arrays, all_of(bytes), all_of(bytes));
      case Collective::kScatter:
        return scatter(arrays, bytes);
      case Collective::kBarrier: {
        auto options = std::make_shared<gloo::BarrierOptions>(context_);
        return repeated([options] { gloo::barrier(*options); });
      }
      case Collective::kSend:
      case Collective::kSendRecv:
      case Collective::kSendWindow:
      case Collective::kISendWindow:
        return message(subject, arrays, bytes);
      case Collective::kReduceScatter:
      case Collective::kScan:
      case Collective::kExscan:
        break;
    }
    throw std::runtime_error("gloo: unknown call");
  }

  std::size_t all_of(std::size_t bytes) const {
    return bytes * static_cast<std::size_t>(job_rank_.ranks);
  }

  Arrays own_part(const Arrays& arrays, std::size_t bytes) const {
    return {static_cast<std::byte*>(arrays.out) + bytes * static_cast<std::size_t>(job_rank_.rank),
            arrays.out};
  }

  template <typename Options>
  std::shared_ptr<Options> bytes_options(const Arrays& arrays, std::size_t in, std::size_t out) {
    auto options = std::make_shared<Options>(context_);
    if (arrays.in != nullptr) options->setInput(static_cast<char*>(arrays.in), in);
    if (arrays.out != nullptr) options->setOutput(static_cast<char*>(arrays.out), out);
    return options;
  }

  template <typename Options>
  std::function<void(long)> plain(void (*call)(Options&),
                                  const Arrays& arrays,
                                  std::size_t in,
                                  std::size_t out) {
    auto options = bytes_options<Options>(arrays, in, out);
    return repeated([options, call] { call(*options); });
  }

  template <typename Options>
  std::function<void(long)> rooted(void (*call)(Options&),
                                   const Arrays& arrays,
                                   std::size_t in,
                                   std::size_t out) {
    auto options = bytes_options<Options>(arrays, in, out);
    options->setRoot(kRoot);
    return repeated([options, call] { call(*options); });
  }

  std::function<void(long)> scatter(const Arrays& arrays, std::size_t bytes) {
    auto options = std::make_shared<gloo::ScatterOptions>(context_);
    if (arrays.in != nullptr) {
      std::vector<char*> parts;
      for (int rank = 0; rank < job_rank_.ranks; ++rank) {
        parts.push_back(static_cast<char*>(arrays.in) + bytes * static_cast<std::size_t>(rank));
      }
      options->setInputs(parts, bytes);
    }
    options->setOutput(static_cast<char*>(arrays.out), bytes);
    options->setRoot(kRoot);
    return repeated([options] { gloo::scatter(*options); });
  }

  std::function<void(long)> message(const Case& subject, const Arrays& arrays, std::size_t bytes) {
    if (is_of_two(subject.collective) && job_rank_.rank > 1) return [](long) {};
    if (is_window(subject.collective)) return window(subject, arrays, bytes);
    std::shared_ptr<Message> in = context_->createUnboundBuffer(arrays.in, bytes);
    std::shared_ptr<Message> out = context_->createUnboundBuffer(arrays.out, bytes);
    constexpr std::uint64_t kSlot = 7;
    if (subject.collective == Collective::kSend) {
      const auto send = [in](int peer) { in->send(peer, kSlot), in->waitSend(); };
      const auto recv = [out](int peer) { out->recv(peer, kSlot), out->waitRecv(); };
      if (job_rank_.rank == 1) return repeated([=] { recv(0), send(0); });
      return repeated([=] { send(1), recv(1); });
    }
    const int next = (job_rank_.rank + 1) % job_rank_.ranks;
    const int previous = (job_rank_.rank + job_rank_.ranks - 1) % job_rank_.ranks;
    if (next == job_rank_.rank) {
      return repeated([arrays, bytes] {
        std::copy_n(static_cast<char*>(arrays.in), bytes, static_cast<char*>(arrays.out));
      });
    }
    return repeated([=] {
      out->recv(previous, kSlot);
      in->send(next, kSlot);
      in->waitSend();
      out->waitRecv();
    });
  }

  // Rank 0 sends a window of messages. Then it waits for a message of the receiver, so that it
  // cannot run ahead.
  std::function<void(long)> window(const Case& subject, const Arrays& arrays, std::size_t bytes) {
    const bool sends = job_rank_.rank == 0;
    const int peer = 1 - job_rank_.rank;
    std::shared_ptr<Message> data =
        context_->createUnboundBuffer(sends ? arrays.in : arrays.out, bytes);
    auto word = std::make_shared<char>();
    std::shared_ptr<Message> last = context_->createUnboundBuffer(word.get(), 1);
    constexpr std::uint64_t kSlot = 8, kLast = 9;
    const int at_once = subject.collective == Collective::kISendWindow ? kWindow : 1;
    return repeated([=] {
      for (int begun = 0; begun < kWindow; begun += at_once) {
        for (int i = 0; i < at_once; ++i) sends ? data->send(peer, kSlot) : data->recv(peer, kSlot);
        for (int i = 0; i < at_once; ++i) sends ? data->waitSend() : data->waitRecv();
      }
      sends ? last->recv(peer, kLast) : last->send(peer, kLast);
      sends ? last->waitRecv() : last->waitSend();
      static_cast<void>(word);
    });
  }

  JobRank job_rank_;
  std::shared_ptr<gloo::Context> context_;
};

}  // namespace
}  // namespace hocket::cli::bench

int main() {
  try {
    hocket::cli::bench::Gloo gloo;
    return hocket::cli::bench::serve(gloo);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gloo: %s\n", error.what());
    return 1;
  }
}
