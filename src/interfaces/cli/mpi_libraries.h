// The libraries of MPI over hocket, which `hocket run --mpi` lets programs find.
#pragma once

#include <optional>
#include <string>

#include "hocket/machine.h"

namespace hocket::cli {

// The folder that has them, beside hocket's library; none if this hocket was built without them.
std::optional<std::string> mpi_folder();
// The same as `hocket doctor` tells it.
Software mpi_software();

}  // namespace hocket::cli
