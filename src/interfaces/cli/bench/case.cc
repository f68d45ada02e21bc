#include "interfaces/cli/bench/case.h"

#include <algorithm>
#include <cmath>

#include "interfaces/cli/bench/numeric.h"

namespace hocket::cli::bench {

std::string_view name_of(Collective collective) noexcept {
  switch (collective) {
    case Collective::kAllReduce:
      return "all_reduce";
    case Collective::kReduce:
      return "reduce";
    case Collective::kScan:
      return "scan";
    case Collective::kExscan:
      return "exscan";
    case Collective::kReduceScatter:
      return "reduce_scatter";
    case Collective::kBroadcast:
      return "broadcast";
    case Collective::kAllGather:
      return "all_gather";
    case Collective::kGather:
      return "gather";
    case Collective::kScatter:
      return "scatter";
    case Collective::kAllToAll:
      return "all_to_all";
    case Collective::kSend:
      return "send";
    case Collective::kSendRecv:
      return "send_recv";
    case Collective::kSendWindow:
      return "send_window";
    case Collective::kISendWindow:
      return "isend_window";
    case Collective::kBarrier:
      return "barrier";
    case Collective::kFft:
      return "fft";
    case Collective::kFftTransposed:
      return "fft_transposed";
    case Collective::kMatmul:
      return "matmul";
  }
  return "";
}

std::string_view name_of(Memory memory) noexcept {
  if (memory == Memory::kCuda) return "cuda";
  return memory == Memory::kSymmetric ? "symmetric" : "ordinary";
}

std::size_t elements_for(Collective collective,
                         std::size_t bytes,
                         DType dtype,
                         int ranks) noexcept {
  if (collective == Collective::kBarrier) return 0;
  if (is_numeric(collective)) return bytes;
  const std::size_t parts = has_shares(collective) ? static_cast<std::size_t>(ranks) : 1;
  return std::max<std::size_t>(1, bytes / (size_of(dtype) * parts));
}

std::size_t bytes_of(const Case& subject, int ranks) noexcept {
  if (is_numeric(subject.collective)) {
    const std::size_t n = subject.elements;
    return n * n * (subject.collective == Collective::kMatmul ? 1 : n) * size_of(subject.dtype);
  }
  const std::size_t parts = has_shares(subject.collective) ? static_cast<std::size_t>(ranks) : 1;
  return subject.elements * size_of(subject.dtype) * parts;
}

Shape shape_of(const Case& subject, int rank, int ranks) noexcept {
  const std::size_t one = subject.elements;
  const std::size_t all = one * static_cast<std::size_t>(ranks);
  const bool is_root = rank == kRoot;
  Shape shape;
  switch (subject.collective) {
    case Collective::kAllReduce:
    case Collective::kScan:
    case Collective::kExscan:
    case Collective::kSendRecv:
      shape = {one, one};
      break;
    case Collective::kReduce:
      shape = {one, is_root ? one : 0};
      break;
    case Collective::kReduceScatter:
      shape = {all, one};
      break;
    case Collective::kBroadcast:
      shape = {0, one};
      break;
    case Collective::kAllGather:
      shape = {one, all};
      break;
    case Collective::kGather:
      shape = {one, is_root ? all : 0};
      break;
    case Collective::kScatter:
      shape = {is_root ? all : 0, one};
      break;
    case Collective::kAllToAll:
      shape = {all, all};
      break;
    case Collective::kSend:
      if (rank < 2) shape = {one, one};
      break;
    case Collective::kSendWindow:
    case Collective::kISendWindow:
      if (rank < 2) shape = rank == 0 ? Shape{one, 0} : Shape{0, one};
      break;
    case Collective::kBarrier:
      break;
    case Collective::kFft:
    case Collective::kFftTransposed:
    case Collective::kMatmul:
      return numeric_shape(subject, {rank, ranks});
  }
  if (subject.in_place) return {0, std::max(shape.in, shape.out)};
  return shape;
}

double bus_factor(Collective collective, int ranks) noexcept {
  const double n = ranks;
  switch (collective) {
    case Collective::kAllReduce:
      return 2 * (n - 1) / n;
    case Collective::kReduceScatter:
    case Collective::kAllGather:
    case Collective::kAllToAll:
    case Collective::kGather:
    case Collective::kScatter:
      return (n - 1) / n;
    case Collective::kReduce:
    case Collective::kScan:
    case Collective::kExscan:
    case Collective::kBroadcast:
    case Collective::kSend:
    case Collective::kSendRecv:
    case Collective::kSendWindow:
    case Collective::kISendWindow:
    case Collective::kBarrier:
    case Collective::kFft:
    case Collective::kFftTransposed:
    case Collective::kMatmul:
      return 1;
  }
  return 1;
}

double operations_of(const Case& subject) noexcept {
  if (!is_numeric(subject.collective)) return 0;
  const double n = static_cast<double>(subject.elements), points = n * n * n;
  return subject.collective == Collective::kMatmul ? 2 * points : 5 * points * std::log2(points);
}

}  // namespace hocket::cli::bench
