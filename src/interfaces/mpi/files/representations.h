// The data representations of files.
#pragma once

#include <string>

namespace hocket::mpi {

// Throws MPI_ERR_UNSUPPORTED_DATAREP unless files can have this representation. It may be native,
// internal, external32, or one that the program has registered without conversion functions.
void check_representation(const std::string& name);

}  // namespace hocket::mpi
