// Messages of strided arrays, and ranks as a grid.
#include "hocket/grid.h"

#include <algorithm>
#include <string>
#include <vector>

#include "interfaces/capi/options.h"

using hocket::InvalidArgument;
using hocket::StridedView;
using hocket::capi::as_c;
using hocket::capi::call_options;
using hocket::capi::guarded;
using hocket::capi::of;
using hocket::capi::place;
using hocket::capi::receive_options;
using hocket::capi::Refusal;
using hocket::capi::with_tag;

namespace {

StridedView strided_view(const hocket_strided* array, const std::string& name) {
  const Refusal refuse;
  if (array == nullptr) refuse(name + " is null");
  if (array->axes < 0 || array->axes > HOCKET_MOST_AXES) {
    refuse(name + "->axes is " + std::to_string(array->axes) +
           ", expected 0 to HOCKET_MOST_AXES, " + std::to_string(HOCKET_MOST_AXES));
  }
  return {.data = array->data,
          .dtype = hocket::capi::dtype(refuse, array->dtype, name.c_str(), "->dtype"),
          .shape = {array->shape, array->shape + array->axes},
          .strides = {array->strides, array->strides + array->axes}};
}

// Throws if a list of `length` numbers has no room for `needed`.
void check_length(std::size_t length, std::size_t needed) {
  if (length >= needed) return;
  throw InvalidArgument("length is " + std::to_string(length) + ", and there are " +
                        std::to_string(needed) + " axes");
}

}  // namespace

int hocket_send_strided(hocket_comm* comm,
                        const hocket_strided* in,
                        int32_t destination,
                        int32_t tag,
                        const hocket_call_options* options) {
  return guarded("hocket_send_strided", [&] {
    send_strided(of(comm, "comm").comm,
                 strided_view(in, "in"),
                 destination,
                 with_tag(call_options(Refusal(), options), tag));
  });
}

int hocket_recv_strided(hocket_comm* comm,
                        const hocket_strided* out,
                        int32_t source,
                        int32_t tag,
                        const hocket_call_options* options,
                        hocket_received* received) {
  return guarded("hocket_recv_strided", [&] {
    const auto came = recv_strided(of(comm, "comm").comm,
                                   strided_view(out, "out"),
                                   source,
                                   receive_options(Refusal(), options, tag));
    if (received != nullptr) *received = as_c(came);
  });
}

int hocket_send_recv_strided(hocket_comm* comm,
                             const hocket_strided* in,
                             int32_t destination,
                             const hocket_strided* out,
                             int32_t source,
                             int32_t tag,
                             const hocket_call_options* options,
                             hocket_received* received) {
  return guarded("hocket_send_recv_strided", [&] {
    const auto came = send_recv_strided(of(comm, "comm").comm,
                                        strided_view(in, "in"),
                                        destination,
                                        strided_view(out, "out"),
                                        source,
                                        receive_options(Refusal(), options, tag));
    if (received != nullptr) *received = as_c(came);
  });
}

int hocket_grid_make(hocket_comm* comm,
                     const int32_t* shape,
                     const int32_t* periodic,
                     size_t axes,
                     hocket_grid** grid) {
  return guarded("hocket_grid_make", [&] {
    hocket_comm& of_ranks = of(comm, "comm");
    hocket_grid*& made = place(grid, "grid");
    check_list(Refusal(), shape, axes, sizeof *shape, "shape", "axes");
    std::vector<bool> ends(axes);
    for (std::size_t i = 0; periodic != nullptr && i < axes; ++i) ends[i] = periodic[i] != 0;
    made = new hocket_grid{.grid = hocket::Grid(of_ranks.comm, {shape, shape + axes}, ends),
                           .world = of_ranks.world};
  });
}

int hocket_grid_shape(const hocket_grid* grid, int32_t* shape, size_t length) {
  return guarded("hocket_grid_shape", [&] {
    const std::vector<int>& extents = of(grid, "grid").grid.shape();
    check_length(length, extents.size());
    std::ranges::copy(extents, &place(shape, "shape"));
  });
}

int hocket_grid_coordinates(const hocket_grid* grid,
                            int32_t rank,
                            int32_t* coordinates,
                            size_t length) {
  return guarded("hocket_grid_coordinates", [&] {
    const std::vector<int> found = of(grid, "grid").grid.coordinates_of(rank);
    check_length(length, found.size());
    std::ranges::copy(found, &place(coordinates, "coordinates"));
  });
}

int hocket_grid_rank(const hocket_grid* grid,
                     const int32_t* coordinates,
                     size_t length,
                     int32_t* rank) {
  return guarded("hocket_grid_rank", [&] {
    const hocket::Grid& ranks = of(grid, "grid").grid;
    check_list(Refusal(), coordinates, length, sizeof *coordinates, "coordinates");
    place(rank, "rank") = ranks.rank_of({coordinates, length});
  });
}

int hocket_grid_shift(const hocket_grid* grid,
                      int32_t axis,
                      int32_t distance,
                      int32_t* source,
                      int32_t* destination) {
  return guarded("hocket_grid_shift", [&] {
    const hocket::Shift shift = of(grid, "grid").grid.shift(axis, distance);
    int32_t& from = place(source, "source");
    place(destination, "destination") = shift.destination;
    from = shift.source;
  });
}

void hocket_grid_free(hocket_grid** grid) { hocket::capi::release(grid); }

int hocket_neighbour_exchange(hocket_grid* grid,
                              const hocket_strided* x,
                              const hocket_halo* halo,
                              size_t axes,
                              int32_t tag,
                              const hocket_call_options* options) {
  return guarded("hocket_neighbour_exchange", [&] {
    hocket::Grid& ranks = of(grid, "grid").grid;
    check_list(Refusal(), halo, axes, sizeof *halo, "halo", "axes");
    std::vector<hocket::Halo> borders;
    for (std::size_t i = 0; i < axes; ++i) borders.push_back({halo[i].before, halo[i].behind});
    ranks.neighbour_exchange(
        strided_view(x, "x"), borders, with_tag(call_options(Refusal(), options), tag));
  });
}
