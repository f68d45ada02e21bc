// argmin and argmax: the extremes over all ranks, and who has them. MPI's MINLOC and MAXLOC.
//
// Of each element the extreme value, and the rank that brings it. Where several bring it, it is the
// lowest of them, also of 0.0 and -0.0, which are equal here. A NaN is the extreme of both:
// whatever is compared with one, the value is NaN, and the rank is the lowest that brings one. What
// is refused on one rank is refused on all.
#pragma once

#include <optional>

#include "hocket/array_view.h"
#include "hocket/communicator.h"
#include "hocket/stream.h"
#include "hocket/types.h"
#include "hocket/work.h"

namespace hocket {

// Where the results go, on every rank: as many elements as `in` each, and apart from each other and
// from what is read.
struct Extremes {
  ArrayView values = {};   // of the dtype of `in`
  ArrayView ranks = {};    // int32
  ArrayView indices = {};  // of the dtype of ExtremeOptions::index, which it goes with
};

struct ExtremeOptions {
  // Integers, one an element: what this rank knows each by, such as its place in a larger array.
  // `indices` gets that of the rank that has the extreme. All ranks give one, or none does.
  std::optional<BorrowedView> index = {};
  std::optional<Duration> deadline = {};
  std::optional<StreamRef> stream = {};  // of arrays on a GPU
};

// Of every dtype that has an order: all but complex numbers. The ranks bring as many elements, of
// one dtype. All arrays of a call lie on the host, or all on this rank's GPU: these the host
// carries on copies, in the order of the stream, as soon as the call is there.
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
