// Collective calls that all ranks refuse if one does, or if their arguments differ.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "interfaces/mpi/objects.h"

namespace hocket::mpi {

// Calls `act` and waits for all ranks. If `act` threw on a rank, all ranks throw an error of the
// same class, which names the rank and its reason.
void agree(Comm& comm, const std::function<void()>& act);
// Collective. Throws MPI_ERR_NOT_SAME on all ranks if their arguments differ. The text says which
// rank gave what.
void require_same(Comm& comm, std::int64_t value, const char* name);
void require_same(Comm& comm, const std::string& text, const char* name);
// Collective. Throws MPI_ERR_NOT_SAME on all ranks, with the texts of `rank` and of rank 0.
[[noreturn]] void fail_with_texts(Comm& comm, int rank, const std::string& text, const char* name);

}  // namespace hocket::mpi
