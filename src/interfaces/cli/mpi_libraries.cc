#include "interfaces/cli/mpi_libraries.h"

#include <filesystem>
#include <system_error>

namespace hocket::cli {

std::optional<std::string> mpi_folder() {
  std::error_code error;
  const auto command = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto prefix = command.parent_path().parent_path();
  for (const char* name : {"lib", HOCKET_LIBDIR}) {
    const auto folder = prefix / name / "hocket-mpi";
    if (!error && std::filesystem::exists(folder / "libmpi.so.12", error)) return folder.string();
  }
  return std::nullopt;
}

Software mpi_software() {
  const auto folder = mpi_folder();
  if (!folder) return {.name = "hocket's MPI", .note = "this hocket was built without it"};
  return {
      .name = "hocket's MPI", .version = "5.0", .where = *folder, .note = "for hocket run --mpi"};
}

}  // namespace hocket::cli
