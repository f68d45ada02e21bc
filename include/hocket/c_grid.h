/* A part of hocket/c.h: messages of arrays whose elements do not follow each other, and ranks as a
 * grid with neighbours. */
#ifndef HOCKET_C_GRID_H_
#define HOCKET_C_GRID_H_

#include "hocket/c.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The most axes of a hocket_strided. */
#define HOCKET_MOST_AXES 8

/* A view of an array with several axes on the host, such as a column or a box of a larger one. It
 * owns nothing. `data` is the address of the element whose indices are all 0. Elements travel in
 * C order: the last index changes fastest. Both ends need the same number of elements, but not the
 * same shape. */
typedef struct hocket_strided {
  void* data;
  int32_t dtype;
  int32_t axes;
  size_t shape[HOCKET_MOST_AXES];      /* elements along each axis */
  ptrdiff_t strides[HOCKET_MOST_AXES]; /* from one index to the next, in elements */
} hocket_strided;

/* The messages of hocket/c.h, for strided arrays. Elements of `out` must not share memory.
 * `received` gets the description of the message, and may be null. */
int hocket_send_strided(hocket_comm* comm,
                        const hocket_strided* in,
                        int32_t destination,
                        int32_t tag,
                        const hocket_call_options* options);
int hocket_recv_strided(hocket_comm* comm,
                        const hocket_strided* out,
                        int32_t source,
                        int32_t tag,
                        const hocket_call_options* options,
                        hocket_received* received);
int hocket_send_recv_strided(hocket_comm* comm,
                             const hocket_strided* in,
                             int32_t destination,
                             const hocket_strided* out,
                             int32_t source,
                             int32_t tag,
                             const hocket_call_options* options,
                             hocket_received* received);

/* The ranks of a communicator as a grid. The last axis changes first from rank to rank. */
typedef struct hocket_grid hocket_grid;

/* Makes a grid of all ranks; it keeps the communicator alive. Local.
 * @param shape Number of ranks along each axis. One entry may be -1; it is computed from the
 * others.
 * @param periodic 1 for each axis whose two ends are neighbours, else 0. Null: no axis.
 * @param axes The length of `shape` and of `periodic`. */
int hocket_grid_make(hocket_comm* comm,
                     const int32_t* shape,
                     const int32_t* periodic,
                     size_t axes,
                     hocket_grid** grid);
/* Writes the number of ranks along each axis. `length` must be at least the number of axes. */
int hocket_grid_shape(const hocket_grid* grid, int32_t* shape, size_t length);
/* Writes the place of a rank. */
int hocket_grid_coordinates(const hocket_grid* grid,
                            int32_t rank,
                            int32_t* coordinates,
                            size_t length);
/* Writes the rank at a place, or HOCKET_NULL_RANK beyond an end that is not periodic. */
int hocket_grid_rank(const hocket_grid* grid,
                     const int32_t* coordinates,
                     size_t length,
                     int32_t* rank);
/* Writes the peers of this rank if every rank sends to the rank that is `distance` steps ahead
 * along an axis. This rank receives from `source` and sends to `destination`. */
int hocket_grid_shift(
    const hocket_grid* grid, int32_t axis, int32_t distance, int32_t* source, int32_t* destination);
void hocket_grid_free(hocket_grid** grid);

/* The width of a border along an axis: cells before and behind this rank's own ones. */
typedef struct hocket_halo {
  size_t before;
  size_t behind;
} hocket_halo;

/* Fills the border of this rank's part from its neighbours, including corners. All ranks make the
 * call, which is made of messages. Without a neighbour the border stays as it is.
 * @param x This rank's part with its border around it. Its first axes are the grid's.
 * @param halo The border along each axis of the grid.
 * @param axes The length of `halo`. */
int hocket_neighbour_exchange(hocket_grid* grid,
                              const hocket_strided* x,
                              const hocket_halo* halo,
                              size_t axes,
                              int32_t tag,
                              const hocket_call_options* options);

#ifdef __cplusplus
}
#endif

#endif /* HOCKET_C_GRID_H_ */
