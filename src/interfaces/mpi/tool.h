// MPI's tool interface. It has no variables, events, sources and categories here, so that tools
// find none and go on. Any thread may call it, before MPI_Init as well. Functions return MPI's
// codes.
#pragma once

#include "interfaces/mpi/abi.h"

namespace hocket::mpi::tool {

int init_thread(int required, int* provided);
int finalize();
int category_changed(int* update_number);
int pvar_session_create(MPI_T_pvar_session* session);
int pvar_session_free(MPI_T_pvar_session* session);
// These take MPI_T_PVAR_ALL_HANDLES, which are none.
int pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle);
int pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle);
int pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle);

// Says that there are none of a kind.
int give_none(int* count);
// Returns `code`, as what a call names cannot exist, unless the interface is not initialized ...
int refuse(int code);
// ... or `session` is none.
int refuse_in(MPI_T_pvar_session session, int code);

}  // namespace hocket::mpi::tool
