// hocket's MPI libraries, which `hocket run --mpi` lets programs find.
#pragma once

#include <optional>
#include <string>

#include "hocket/machine.h"

namespace hocket::cli {

// Returns the folder of the MPI libraries, beside hocket's library. Absent: this hocket was built
// without them.
std::optional<std::string> mpi_folder();
// Returns the MPI libraries in the form in which `hocket doctor` reports software.
Software mpi_software();

}  // namespace hocket::cli
