// Arrays of the conformance cases in a GPU's memory, and the ranks that call with them.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cases.h"
#include "foundation/cuda/memory.h"
#include "foundation/cuda/stream.h"
#include "hocket/hocket.h"

namespace hocket::gpu {

// This process's GPUs; 0 and the reason where there are none.
struct Machine {
  int gpus = 0;
  bool fake = false;
  bool nccl = false;  // there may be NCCL: a fake one on fake GPUs
  std::string why_not;
};
Machine machine();
// The driver; only where there is one.
const std::shared_ptr<const cuda::Driver>& driver();

// A rank of a test: its communicator, its GPU, and its own stream there.
struct GpuRank {
  Communicator& comm;
  std::shared_ptr<const cuda::DeviceContext> device;
  cuda::OwnedStream stream;
};

// Runs `body` on ranks that are threads, rank r on GPU r modulo the number of GPUs. Returns the
// first error, or an empty string. `engines`: as in InitOptions; if empty and ranks share a GPU,
// `peer`.
std::string run(int size,
                const std::vector<std::string>& engines,
                const std::function<void(GpuRank&)>& body);

// An array on the rank's GPU.
template <typename T>
class OnGpu {
 public:
  OnGpu(const GpuRank& self, std::size_t count)
      : self_(self),
        buffer_(self.device, std::max<std::size_t>(1, count) * sizeof(T)),
        count_(count) {}
  ArrayView view() {
    return cuda_array(static_cast<T*>(buffer_.data()), count_, self_.device->ordinal());
  }
  void set(const std::vector<T>& values) {
    const auto& gpu = self_.device->driver();
    cuda::copy(gpu, buffer_.data(), values.data(), count_ * sizeof(T), self_.stream.get());
    cuda::drain(gpu, self_.stream.get(), base::Deadline::in(std::chrono::seconds(30)));
  }
  std::vector<T> get() {
    std::vector<T> values(count_);
    const auto& gpu = self_.device->driver();
    cuda::copy(gpu, values.data(), buffer_.data(), count_ * sizeof(T), self_.stream.get());
    if (!cuda::drain(gpu, self_.stream.get(), base::Deadline::in(std::chrono::seconds(30)))) {
      throw std::runtime_error("a stream did not end");
    }
    return values;
  }

 private:
  const GpuRank& self_;
  cuda::DeviceBuffer buffer_;
  std::size_t count_;
};

// A case's arrays, copied to the GPU with what surrounds them, and back to be checked.
class DeviceArrays {
 public:
  DeviceArrays(const GpuRank& self, const conformance::Case& c, std::uint64_t sequence);

  enum class Verb { kBlocking, kAsync, kGraph };
  // Makes the call on the rank's stream; kGraph: captured there, and replayed.
  void call(Verb verb);
  // Brings the result back once the stream is there; what is wrong with it, or nothing.
  std::string check();

 private:
  struct Range {
    std::byte* host = nullptr;
    std::size_t bytes = 0;
    std::unique_ptr<cuda::DeviceBuffer> copy;

    bool holds(const void* address) const;
  };
  void put(Range& range);
  const void* on_device(const void* host) const;
  void call_once(bool async);
  ConstArrayView in() const;
  ArrayView out() const;

  const GpuRank& self_;
  conformance::Case case_;
  conformance::Buffers buffers_;
  std::size_t in_bytes_ = 0, out_bytes_ = 0;
  Range in_range_, out_range_;
  std::vector<std::size_t> counts_;
};

}  // namespace hocket::gpu
