#include "interfaces/mpi/files/representations.h"

#include <cstring>
#include <map>
#include <mutex>

#include "interfaces/mpi/failure.h"
#include "mpi_calls.h"

namespace hocket::mpi {
namespace {

struct Registered {
  std::mutex mutex;
  std::map<std::string, bool> converts;  // by name
};
Registered& registered() {
  static Registered& made = *new Registered();  // NOLINT: it outlives the program's objects
  return made;
}

bool is_predefined(const std::string& name) {
  return name == "native" || name == "internal" || name == "external32";
}

}  // namespace

void check_representation(const std::string& name) {
  if (is_predefined(name)) return;
  const std::lock_guard lock(registered().mutex);
  const auto found = registered().converts.find(name);
  require(found != registered().converts.end(),
          MPI_ERR_UNSUPPORTED_DATAREP,
          "datarep is none of native, internal and external32, and was not registered");
  require(!found->second,
          MPI_ERR_UNSUPPORTED_DATAREP,
          "hocket calls no functions of the program that convert data of files");
}

}  // namespace hocket::mpi

namespace hocket::mpi::call {

void Register_datarep(const char* datarep,
                      ConversionFunction read,
                      ConversionFunction write,
                      MPI_Datarep_extent_function*,
                      void*) {
  require(datarep != nullptr && std::strlen(datarep) < MPI_MAX_DATAREP_STRING,
          MPI_ERR_ARG,
          "datarep is null or too long");
  const std::lock_guard lock(registered().mutex);
  const bool is_new =
      !is_predefined(datarep) &&
      registered().converts.emplace(datarep, !read.is_null() || !write.is_null()).second;
  require(is_new, MPI_ERR_DUP_DATAREP, "datarep is registered already");
}

}  // namespace hocket::mpi::call
