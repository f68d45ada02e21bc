// From a call's arrays to the copies that MPI works on, and back.
#pragma once

#include "algorithm/partial.h"
#include "engine/call.h"
#include "engines/mpi/library.h"

namespace hocket::engines::mpi {

// A call's element type and operator as MPI gets them: see algorithm::Partial.
algorithm::Partial partial_of(const engine::Signature& signature, int ranks);

// Fills a flight with copies of what the call brings, and with what MPI is told. Throws
// InvalidArgument where a part is longer than MPI can count.
void stage_in(Flight& flight, const engine::Call& call, const engine::GroupFacts& facts);
// Puts what has come where the call wants it.
void stage_out(const Flight& flight, const engine::Call& call, const engine::GroupFacts& facts);

}  // namespace hocket::engines::mpi
