// Arrays that peers can reach.
#include "interfaces/capi/options.h"

using hocket::capi::guarded;
using hocket::capi::of;
using hocket::capi::place;
using hocket::capi::Refusal;

namespace {

hocket::SymmetricOptions symmetric_options(const Refusal& refuse,
                                           const hocket_symmetric_options* given) {
  const auto o = hocket::capi::read(refuse, given, "hocket_symmetric_options");
  hocket::SymmetricOptions options{
      .deadline = hocket::capi::duration(refuse, o.deadline_ns, "options->deadline_ns")};
  if (o.nvshmem != 0) options.heap = hocket::SymmetricHeap::kNvshmem;
  switch (o.memory) {
    case HOCKET_MEMORY_DEFAULT:
      break;
    case HOCKET_MEMORY_HOST:
      options.memory = hocket::MemoryKind::kHost;
      break;
    case HOCKET_MEMORY_CUDA:
      options.memory = hocket::MemoryKind::kCuda;
      break;
    default:
      refuse("options->memory is " + std::to_string(o.memory) +
             ", expected HOCKET_MEMORY_DEFAULT (0), _HOST (1) or _CUDA (2)");
  }
  return options;
}

}  // namespace

int hocket_symmetric_empty(hocket_comm* comm,
                           size_t count,
                           int32_t dtype,
                           const hocket_symmetric_options* options,
                           hocket_symmetric** made) {
  return guarded("hocket_symmetric_empty", [&] {
    hocket_comm& maker = of(comm, "comm");
    const Refusal refuse(maker.comm);
    if (made == nullptr) refuse("made is null; it takes the array");
    const auto how = symmetric_options(refuse, options);
    const auto elements = hocket::capi::dtype(refuse, dtype, "dtype");
    *made = new hocket_symmetric{.array = maker.comm.symmetric().empty(count, elements, how),
                                 .world = maker.world};
  });
}

int hocket_symmetric_local(const hocket_symmetric* symmetric, hocket_array* array) {
  return guarded("hocket_symmetric_local", [&] {
    place(array, "array") = hocket::capi::to_c(of(symmetric, "symmetric").array.local());
  });
}

int hocket_symmetric_peer(const hocket_symmetric* symmetric, int32_t rank, hocket_array* array) {
  return guarded("hocket_symmetric_peer", [&] {
    place(array, "array") = hocket::capi::to_c(of(symmetric, "symmetric").array.peer(rank));
  });
}

void hocket_symmetric_free(hocket_symmetric** symmetric) { hocket::capi::release(symmetric); }
