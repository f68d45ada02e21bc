// Copies a call's arrays to the memory that MPI works on, and back.
#pragma once

#include "engine/call.h"
#include "engines/mpi/library.h"

namespace hocket::engines::mpi {

// The kinds that this engine has code for.
inline constexpr engine::KindSet kCarries =
    engine::kCommonKinds | engine::KindSet{engine::Kind::kScan, engine::Kind::kExscan};

// Fills a flight with copies of the call's input, and with the arguments of MPI's call. Throws
// InvalidArgument if a part is longer than MPI can count.
void stage_in(Flight& flight, const engine::Call& call, const engine::GroupFacts& facts);
// Copies the results to the call's output.
void stage_out(const Flight& flight, const engine::Call& call, const engine::GroupFacts& facts);

}  // namespace hocket::engines::mpi
