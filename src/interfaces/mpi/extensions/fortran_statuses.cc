// MPICH's Fortran statuses. They have the layout of C's statuses, and both consist of integers.
#include <mpi.h>

#include <cstring>

namespace {

template <typename From, typename To>
int convert(const From* from, To* to) noexcept {
  // MPI_STATUS_IGNORE cannot be converted.
  if (from == nullptr || to == nullptr) return MPI_ERR_ARG;
  std::memcpy(to, from, sizeof(MPI_Status));
  return MPI_SUCCESS;
}

MPI_F08_status ignored, several_ignored;

}  // namespace

#pragma GCC visibility push(default)
extern "C" {
// A Fortran library sets the first two variables to addresses of its own.
MPI_Fint* MPI_F_STATUS_IGNORE = nullptr;
MPI_Fint* MPI_F_STATUSES_IGNORE = nullptr;
MPI_F08_status* MPI_F08_STATUS_IGNORE = &ignored;
MPI_F08_status* MPI_F08_STATUSES_IGNORE = &several_ignored;

int MPI_Status_c2f(const MPI_Status* from, MPI_Fint* to) { return convert(from, to); }
int MPI_Status_f2c(const MPI_Fint* from, MPI_Status* to) { return convert(from, to); }
int MPI_Status_c2f08(const MPI_Status* from, MPI_F08_status* to) { return convert(from, to); }
int MPI_Status_f082c(const MPI_F08_status* from, MPI_Status* to) { return convert(from, to); }
int MPI_Status_f2f08(const MPI_Fint* from, MPI_F08_status* to) { return convert(from, to); }
int MPI_Status_f082f(const MPI_F08_status* from, MPI_Fint* to) { return convert(from, to); }
int PMPI_Status_c2f(const MPI_Status* from, MPI_Fint* to) { return convert(from, to); }
int PMPI_Status_f2c(const MPI_Fint* from, MPI_Status* to) { return convert(from, to); }
int PMPI_Status_c2f08(const MPI_Status* from, MPI_F08_status* to) { return convert(from, to); }
int PMPI_Status_f082c(const MPI_F08_status* from, MPI_Status* to) { return convert(from, to); }
int PMPI_Status_f2f08(const MPI_Fint* from, MPI_F08_status* to) { return convert(from, to); }
int PMPI_Status_f082f(const MPI_F08_status* from, MPI_Fint* to) { return convert(from, to); }
}
#pragma GCC visibility pop
