// From a call's arrays to the copies that MPI works on, and back.
#pragma once

#include "engine/call.h"
#include "engines/mpi/library.h"

namespace hocket::engines::mpi {

// Kinds that it has code for.
inline constexpr engine::KindSet kCarries =
    engine::kCommonKinds | engine::KindSet{engine::Kind::kScan, engine::Kind::kExscan};

// Fills a flight with copies of what the call brings, and with what MPI is told. Throws
// InvalidArgument where a part is longer than MPI can count.
void stage_in(Flight& flight, const engine::Call& call, const engine::GroupFacts& facts);
// Puts what has come where the call wants it.
void stage_out(const Flight& flight, const engine::Call& call, const engine::GroupFacts& facts);

}  // namespace hocket::engines::mpi
