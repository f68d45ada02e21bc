// A kernel of a program's own on symmetric memory, as docs/gpu.md has it: it is compiled, not run.
#include <hocket/hocket.h>

#include <hocket/device.cuh>

// Each rank copies its array into the next rank's, tells that rank, and waits for the rank before.
__global__ void pass_on(hocket::device::PeerArray<float> arrays,
                        hocket::device::PeerArray<std::uint64_t> words,
                        std::size_t count,
                        int* is_late) {
  const int next = (arrays.rank + 1) % arrays.size;
  hocket::device::put(arrays.peer(next), arrays.own(), count);
  hocket::device::signal(words.peer(next), 1);
  if (!hocket::device::wait(words.own(), 1, 1'000'000'000)) *is_late = 1;
}

void launch(hocket::Communicator& comm, std::size_t count, int* is_late) {
  const auto memory = hocket::SymmetricOptions{.memory = hocket::MemoryKind::kCuda};
  const auto a = comm.symmetric().empty<float>(count, memory);
  const auto s = comm.symmetric().empty<std::uint64_t>(1, memory);
  pass_on<<<1, 128>>>(hocket::device::PeerArray<float>(a, comm.rank(), comm.size()),
                      hocket::device::PeerArray<std::uint64_t>(s, comm.rank(), comm.size()),
                      count,
                      is_late);
}
