#include "interfaces/mpi/files/view.h"

#include <algorithm>

#include "interfaces/mpi/buffers.h"
#include "interfaces/mpi/failure.h"

namespace hocket::mpi {
namespace {

std::int64_t fitting(std::optional<std::int64_t> number) {
  if (!number) fail(MPI_ERR_ARG, "offset is beyond what a file can have");
  return *number;
}

}  // namespace

void View::check() const {
  require(displacement >= 0, MPI_ERR_ARG, "disp is negative");
  require(etype->size() > 0, MPI_ERR_TYPE, "etype has no bytes");
  require(filetype->size() > 0 && filetype->size() % etype->size() == 0,
          MPI_ERR_TYPE,
          "filetype is not made of whole etypes");
  require(filetype->true_lb() >= 0, MPI_ERR_TYPE, "filetype has a negative displacement");
  require(filetype->extent() >= filetype->true_extent(),
          MPI_ERR_TYPE,
          "filetype overlaps with its next copy");
  std::int64_t last = 0;
  bool is_in_order = true;
  each_run_of_layout(filetype->map().bytes(), [&](auto place, auto length) {
    is_in_order = is_in_order && place >= last;
    last = place + length;
    return is_in_order;
  });
  require(is_in_order, MPI_ERR_TYPE, "filetype goes backwards in the file");
}

void View::each_run(std::int64_t begin, std::int64_t end, const Run& run) const {
  if (begin >= end) return;
  const std::int64_t size = filetype->size(), extent = filetype->extent();
  const auto last = checked_multiply((end - 1) / size, extent);
  const auto behind =
      last ? checked_add(*last, filetype->true_lb() + filetype->true_extent()) : last;
  fitting(behind ? checked_add(*behind, displacement) : behind);
  mpi::each_run(*filetype, displacement, begin, end, run);
}

std::int64_t View::place_of(std::int64_t byte) const {
  std::int64_t found = 0;
  each_run(byte, fitting(checked_add(byte, 1)), [&](auto place, auto) {
    found = place;
    return false;
  });
  return found;
}

std::int64_t View::end_in_etypes(std::int64_t file_size) const {
  const std::int64_t seen = std::max<std::int64_t>(file_size - displacement, 0);
  const std::int64_t copies = seen / filetype->extent();
  const std::int64_t rest = seen % filetype->extent();
  std::int64_t bytes = copies * filetype->size();
  each_run_of_layout(filetype->map().bytes(), [&](auto place, auto length) {
    bytes += std::clamp<std::int64_t>(rest - place, 0, length);
    return place < rest;
  });
  return (bytes + etype->size() - 1) / etype->size();
}

std::int64_t View::bytes_at(std::int64_t etypes) const {
  return fitting(checked_multiply(etypes, etype->size()));
}

}  // namespace hocket::mpi
