// Collective reads and writes in two phases, as ROMIO's collective buffering (Thakur, Gropp and
// Lusk, "Data sieving and collective I/O in ROMIO", 1999).
//
// If the views of ranks are interleaved, each rank alone would make a call of the system for every
// short run. Instead the file is cut into windows, which the ranks own in turns. The owner of a
// window reads or writes its long runs, and the ranks exchange the pieces:
//
//     file      |a b a b a b|a b a b a b|a b a b a b|a b a b a b|   runs of ranks a and b
//     window of |<--- a --->|<--- b --->|<--- a --->|<--- b --->|
//               |<------- a round ----->|
//
// In a round of a write, ranks first send their pieces to the owners. Each owner puts them into its
// window, and then writes what it got: pieces that touch by one call, and no byte between pieces.
// In a round of a read the owners read first. If ranks write the same byte, the last of them wins.
//
// A round that no rank has bytes in is left out. File types never go backwards, so the bytes of a
// rank for a window are contiguous in its packed data, and need no copy there.
//
// A call takes memory for one window, for the pieces in it (8 bytes each), and for their bytes.
#pragma once

#include "interfaces/mpi/files/choice.h"

namespace hocket::mpi {

// Collective. Returns the number of bytes that were moved, which is smaller at the end of the file.
// If the system fails on one rank, all ranks throw its error.
std::int64_t move_in_two_phases(File& file, const Portion& own, const Rounds& rounds);

}  // namespace hocket::mpi
