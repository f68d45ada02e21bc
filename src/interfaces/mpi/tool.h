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
// The next functions accept MPI_T_PVAR_ALL_HANDLES, because there are no handles. They refuse a
// single handle.
int pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle);
int pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle);
int pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle);

// Answers a query for the number of objects of some kind: stores 0 in `count`.
int give_none(int* count);
// Returns `code`, because the object that the call names cannot exist. Before MPI_T_init_thread it
// returns MPI_T_ERR_NOT_INITIALIZED.
int refuse(int code);
// Also refuses a `session` that does not exist.
int refuse_in(MPI_T_pvar_session session, int code);

}  // namespace hocket::mpi::tool
