// libhocket_mpiwrapper.so: the library that MPItrampoline loads. JAX uses MPItrampoline.
//
// Its functions call those of the standard's interface, libmpi_abi.so.1. generate.py makes most of
// the functions. This file has the functions that MPI 5.0 lacks, and the functions whose callbacks
// get a status.
#include "interfaces/mpi/trampoline/trampoline.h"

#include <cstring>
#include <memory>

using namespace hocket::mpi;

namespace {

// The program's functions of a generalized request. A resource; it lives as long as the request.
struct GeneralizedRequest {
  int (*query)(void*, TrampolineStatus*);
  MPI_Grequest_free_function* release;
  MPI_Grequest_cancel_function* cancel;
  void* state;
};

int query(void* state, MPI_Status* status) {
  const auto& request = *static_cast<GeneralizedRequest*>(state);
  TrampolineStatus theirs{};
  copy_back(theirs, *status);
  const int code = request.query(request.state, &theirs);
  *status = standard_status(theirs);
  return code;
}
int release(void* state) {
  const std::unique_ptr<GeneralizedRequest> request(static_cast<GeneralizedRequest*>(state));
  return request->release == nullptr ? MPI_SUCCESS : request->release(request->state);
}
int cancel(void* state, int complete) {
  const auto& request = *static_cast<GeneralizedRequest*>(state);
  return request.cancel == nullptr ? MPI_SUCCESS : request.cancel(request.state, complete);
}

}  // namespace

#pragma GCC visibility push(default)

// The version of the binary interface. The major version must equal MPItrampoline's; the minor
// version must not be less.
extern "C" int const mpiabi_version_major = 2;
extern "C" int const mpiabi_version_minor = 10;
extern "C" int const mpiabi_version_patch = 0;
extern "C" int const mpiwrapper_version_major = HOCKET_VERSION_MAJOR;
extern "C" int const mpiwrapper_version_minor = HOCKET_VERSION_MINOR;
extern "C" int const mpiwrapper_version_patch = HOCKET_VERSION_PATCH;

extern "C" MPI_Fint* const MPIABI_F_STATUS_IGNORE = nullptr;
extern "C" MPI_Fint* const MPIABI_F_STATUSES_IGNORE = nullptr;

extern "C" {

void mpiwrapper_export_fortran_constants_() {}  // hocket's library has no Fortran interface

int MPIABI_Grequest_start(int (*query_fn)(void*, TrampolineStatus*),
                          MPI_Grequest_free_function* free_fn,
                          MPI_Grequest_cancel_function* cancel_fn,
                          void* extra_state,
                          MPI_Request* request) {
  auto made = std::make_unique<GeneralizedRequest>(
      GeneralizedRequest{query_fn, free_fn, cancel_fn, extra_state});
  const int code = PMPI_Grequest_start(query, release, cancel, made.get(), request);
  if (code == MPI_SUCCESS) made.release();
  return code;
}

// JAX finalizes MPI when Python exits, and frees its communicators afterwards.
int MPIABI_Comm_free(MPI_Comm* comm) {
  int is_finalized = 0;
  PMPI_Finalized(&is_finalized);
  if (!is_finalized) return PMPI_Comm_free(comm);
  *comm = MPI_COMM_NULL;
  return MPI_SUCCESS;
}

// A status of Fortran is an array of integers with the layout of C's.
int MPIABI_Status_c2f(const TrampolineStatus* status, MPI_Fint* fortran) {
  std::memcpy(fortran, status, sizeof(*status));
  return MPI_SUCCESS;
}
int MPIABI_Status_f2c(const MPI_Fint* fortran, TrampolineStatus* status) {
  std::memcpy(status, fortran, sizeof(*status));
  return MPI_SUCCESS;
}

// MPI's calls accept arrays in host memory only.
int MPIXABI_Query_cuda_support() { return 0; }
int MPIXABI_Query_hip_support() { return 0; }
int MPIXABI_Query_rocm_support() { return 0; }
int MPIXABI_Query_ze_support() { return 0; }

}  // extern "C"
#pragma GCC visibility pop
