// Views and positions of files.
#include <cstring>

#include "interfaces/mpi/collectives/agreement.h"
#include "interfaces/mpi/communicators.h"
#include "interfaces/mpi/files/choice.h"
#include "interfaces/mpi/files/file.h"
#include "interfaces/mpi/files/representations.h"
#include "interfaces/mpi/process.h"
#include "interfaces/mpi/refusals.h"
#include "mpi_calls.h"

namespace hocket::mpi {
namespace {

View made_view(const File& file,
               MPI_Offset disp,
               MPI_Datatype etype,
               MPI_Datatype filetype,
               const char* datarep) {
  View made;
  made.etype = made.given_etype = type_object(etype).type;
  made.filetype = made.given_filetype = type_object(filetype).type;
  made.etype_handle = etype;
  made.filetype_handle = filetype;
  require(datarep != nullptr, MPI_ERR_ARG, "datarep is null");
  made.representation = datarep;
  check_representation(made.representation);
  if (made.is_external()) {
    made.etype = taken(in_external32(made.given_etype));
    made.filetype = taken(in_external32(made.given_filetype));
  }
  if ((file.amode & MPI_MODE_SEQUENTIAL) != 0) {
    require(disp == MPI_DISPLACEMENT_CURRENT,
            MPI_ERR_ARG,
            "fh was opened as SEQUENTIAL, so disp must be MPI_DISPLACEMENT_CURRENT");
    made.displacement = file.view.place_of(file.view.bytes_at(file.shared_position().load()));
  } else {
    made.displacement = disp;
  }
  made.check();
  return made;
}

// Returns a handle for the program: the predefined one, or a new one that the program frees.
MPI_Datatype handle_for(MPI_Datatype kept, const DatatypePtr& type) {
  if (type->is_predefined()) return kept;
  return process().types.add(std::make_shared<Type>(Type{.type = type, .committed = true}));
}

// Returns the new position of a seek, in etypes.
std::int64_t sought(const File& file, std::int64_t now, MPI_Offset offset, int whence) {
  std::int64_t base = 0;
  if (whence == MPI_SEEK_CUR) {
    base = now;
  } else if (whence == MPI_SEEK_END) {
    base = file.view.end_in_etypes(size_of(file));
  } else {
    require(whence == MPI_SEEK_SET, MPI_ERR_ARG, "whence is none of MPI_SEEK_SET, CUR and END");
  }
  const auto found = checked_add(base, offset);
  require(found && *found >= 0, MPI_ERR_ARG, "offset leads to before the view's first byte");
  return *found;
}

}  // namespace
}  // namespace hocket::mpi

namespace hocket::mpi::call {

void File_set_view(MPI_File fh,
                   MPI_Offset disp,
                   MPI_Datatype etype,
                   MPI_Datatype filetype,
                   const char* datarep,
                   MPI_Info info) {
  const auto file = file_of(fh);
  View made;
  const Info* hints = nullptr;
  agree(*file->comm, [&] {
    hints = hints_of(info);
    made = made_view(*file, disp, etype, filetype, datarep);
  });
  require_same(*file->comm, made.etype->extent(), "an etype of the extent");
  require_same(*file->comm, made.representation, "datarep");
  {
    const std::lock_guard lock(file->mutex);
    file->view = std::move(made);
    file->position = 0;
  }
  if (hints != nullptr) take_hints(*file, *hints);
  if (file->is_first() && file->shared) file->shared_position() = 0;
  file->comm->net->barrier();
}
void File_get_view(
    MPI_File fh, MPI_Offset* disp, MPI_Datatype* etype, MPI_Datatype* filetype, char* datarep) {
  const auto file = file_of(fh);
  *disp = file->view.displacement;
  *etype = handle_for(file->view.etype_handle, file->view.given_etype);
  *filetype = handle_for(file->view.filetype_handle, file->view.given_filetype);
  std::strcpy(datarep, file->view.representation.c_str());
}
void File_get_type_extent(MPI_File fh, MPI_Datatype datatype, CountOut extent) {
  const auto file = file_of(fh);
  const DatatypePtr type = type_object(datatype).type;
  extent = (file->view.is_external() ? taken(in_external32(type)) : type)->extent();
}

void File_seek(MPI_File fh, MPI_Offset offset, int whence) {
  const auto file = file_of(fh);
  require((file->amode & MPI_MODE_SEQUENTIAL) == 0,
          MPI_ERR_UNSUPPORTED_OPERATION,
          "fh was opened as SEQUENTIAL, and cannot be sought");
  const std::lock_guard lock(file->mutex);
  file->position = sought(*file, file->position, offset, whence);
}
void File_get_position(MPI_File fh, MPI_Offset* offset) {
  const auto file = file_of(fh);
  const std::lock_guard lock(file->mutex);
  *offset = file->position;
}
void File_get_byte_offset(MPI_File fh, MPI_Offset offset, MPI_Offset* disp) {
  const auto file = file_of(fh);
  require(offset >= 0, MPI_ERR_ARG, "offset is negative");
  const std::lock_guard lock(file->mutex);
  *disp = file->view.place_of(file->view.bytes_at(offset));
}

void File_seek_shared(MPI_File fh, MPI_Offset offset, int whence) {
  const auto file = file_of(fh);
  std::int64_t place = 0;
  agree(*file->comm, [&] {
    require((file->amode & MPI_MODE_SEQUENTIAL) == 0,
            MPI_ERR_UNSUPPORTED_OPERATION,
            "fh was opened as SEQUENTIAL, and cannot be sought");
    place = sought(*file, file->shared_position().load(), offset, whence);
  });
  require_same(*file->comm, offset, "offset");
  require_same(*file->comm, whence, "whence");
  if (file->is_first()) file->shared_position() = place;
  file->comm->net->barrier();
}
void File_get_position_shared(MPI_File fh, MPI_Offset* offset) {
  *offset = file_of(fh)->shared_position().load();
}

}  // namespace hocket::mpi::call
