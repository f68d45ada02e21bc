#include "call_streams.h"

#include <vector>

namespace {

constexpr std::size_t kSmall = 2, kMedium = 16 << 10, kLarge = 1 << 20;  // floats

int next_of(const hocket::Communicator& comm) { return (comm.rank() + 1) % comm.size(); }
int before(const hocket::Communicator& comm) {
  return (comm.rank() + comm.size() - 1) % comm.size();
}

// Repeats `call` until it throws. The first call and a barrier come before `started` is counted up.
template <typename Call>
void repeat(hocket::Communicator& comm, std::atomic<int>& started, const Call& call) {
  call();
  comm.barrier();
  ++started;
  while (true) call();
}

}  // namespace

void call_on_hosts(hocket::Communicator& comm, CallStream kind, std::atomic<int>& started) {
  std::vector<float> small(kSmall);
  std::vector<float> medium(kMedium);
  std::vector<float> received(kMedium);
  std::vector<float> large(kLarge);
  repeat(comm, started, [&] {
    switch (kind) {
      case CallStream::kSmall:
        return comm.all_reduce(small);
      case CallStream::kLarge:
        return comm.all_reduce(large);
      case CallStream::kBarrier:
        return comm.barrier();
      case CallStream::kMessages:
        comm.send_recv(medium, next_of(comm), received, before(comm));
        return;
      case CallStream::kAsync:
        return comm.all_reduce_async(medium).wait();
    }
  });
}

void call_on_gpus(hocket::Communicator& comm, CallStream kind, std::atomic<int>& started) {
  const hocket::Gpu gpu(comm.rank() % hocket::Gpu::count());
  const hocket::GpuStream stream(gpu);
  const hocket::GpuMemory data(gpu, kLarge * sizeof(float));
  const hocket::GpuMemory other(gpu, kLarge * sizeof(float));
  const auto array = [](const hocket::GpuMemory& memory, std::size_t count) {
    return hocket::cuda_array(static_cast<float*>(memory.data()), count);
  };
  const auto settle = [&] { comm.stream_mark(stream).synchronize(); };
  comm.barrier({.stream = stream});
  repeat(comm, started, [&] {
    switch (kind) {
      case CallStream::kSmall:
        comm.all_reduce(array(data, kSmall), {.stream = stream});
        return settle();
      case CallStream::kLarge:
        comm.all_reduce(array(data, kLarge), {.stream = stream});
        return settle();
      case CallStream::kBarrier:
        comm.barrier({.stream = stream});
        return settle();
      case CallStream::kMessages:
        comm.send_recv(array(data, kMedium),
                       next_of(comm),
                       array(other, kMedium),
                       before(comm),
                       {.stream = stream});
        return settle();
      case CallStream::kAsync:
        for (int i = 0; i < 100; ++i) {
          comm.all_reduce(array(data, kMedium), {.stream = stream});
        }
        return settle();
    }
  });
}
