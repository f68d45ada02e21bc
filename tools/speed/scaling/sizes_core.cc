// Implements foundation/core/reduce.h for simulations in which only sizes matter. The functions
// touch no memory. They charge the time of the computation to the rank that calls them. Linked
// instead of the layer `core`.
#include "foundation/core/averages.h"
#include "foundation/core/reduce.h"
#include "simulation.h"

namespace hocket::core {
namespace {

template <std::size_t kBytes>
void fold(void* const*, int, const void* const*, int n_sources, std::size_t count, int) {
  const auto sources = static_cast<std::size_t>(n_sources > 1 ? n_sources - 1 : 1);
  scaling::Simulation::charge(sources * count * kBytes);
}

}  // namespace

ReduceKernel reduce_kernel(DType dtype, ReduceOp, Stores) {
  switch (size_of(dtype)) {
    case 1:
      return &fold<1>;
    case 2:
      return &fold<2>;
    case 4:
      return &fold<4>;
    case 8:
      return &fold<8>;
    default:
      return &fold<16>;
  }
}

void copy(void*, const void*, std::size_t bytes, Stores) { scaling::Simulation::charge(bytes); }

void widen(void*, const void*, std::size_t count, DType from) {
  scaling::Simulation::charge(count * size_of(accumulation_type(from)));
}

void widen(void*, const void*, std::size_t count, DType from, ReduceOp op) {
  scaling::Simulation::charge(count * size_of(accumulation_type(from, op)));
}

void narrow(void*, const void*, std::size_t count, DType to, ReduceOp op, int) {
  scaling::Simulation::charge(count * size_of(accumulation_type(to, op)));
}

}  // namespace hocket::core
