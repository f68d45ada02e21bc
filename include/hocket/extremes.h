// argmin and argmax: the extreme values over all ranks, and the ranks that hold them. They
// correspond to MPI's MINLOC and MAXLOC.
//
// For each element the call finds the extreme value and the lowest rank that holds it. 0.0 and -0.0
// count as equal. NaN is the extreme of both calls: if any rank holds NaN, the value is NaN and the
// rank is the lowest with NaN. A call that one rank refuses is refused on all ranks.
#pragma once

#include <optional>

#include "hocket/array_view.h"
#include "hocket/communicator.h"
#include "hocket/stream.h"
#include "hocket/types.h"
#include "hocket/work.h"

namespace hocket {

// The outputs, on every rank. Each has as many elements as `in`. They must not overlap each other
// or an input.
struct Extremes {
  ArrayView values = {};   // dtype of `in`
  ArrayView ranks = {};    // kInt32
  ArrayView indices = {};  // dtype of ExtremeOptions::index; absent without it
};

struct ExtremeOptions {
  // One integer for each element: this rank's name for it, such as its index in a larger array.
  // `indices` gets the integer of the rank that holds the extreme. Either all ranks pass an index,
  // or none does.
  std::optional<BorrowedView> index = {};
  std::optional<Duration> deadline = {};
  std::optional<StreamRef> stream = {};  // for arrays on a GPU
};

// Find the extremes of all dtypes except complex numbers. All ranks pass the same number of
// elements and the same dtype. All arrays of a call lie on the host, or all lie on this rank's GPU.
// Arrays on a GPU are copied to the host in the order of the stream, and compared there.
// @param comm The communicator.
// @param in The elements to compare.
// @param out The outputs; see Extremes.
// @param options See ExtremeOptions.
// @throws InvalidArgument on all ranks if one refuses its arguments. Throws as
//   Communicator::all_reduce.
void argmin(Communicator& comm,
            ConstArrayView in,
            const Extremes& out,
            const ExtremeOptions& options = {});
Work argmin_async(Communicator& comm,
                  BorrowedView in,
                  const Extremes& out,
                  const ExtremeOptions& options = {});
Prepared prepare_argmin(Communicator& comm,
                        BorrowedView in,
                        const Extremes& out,
                        const ExtremeOptions& options = {});
void argmax(Communicator& comm,
            ConstArrayView in,
            const Extremes& out,
            const ExtremeOptions& options = {});
Work argmax_async(Communicator& comm,
                  BorrowedView in,
                  const Extremes& out,
                  const ExtremeOptions& options = {});
Prepared prepare_argmax(Communicator& comm,
                        BorrowedView in,
                        const Extremes& out,
                        const ExtremeOptions& options = {});

}  // namespace hocket
