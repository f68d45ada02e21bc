// The calls that read and write files: one for each kind of position and form.
#include "interfaces/mpi/entry.h"
#include "interfaces/mpi/files/transfer.h"
#include "mpi_calls.h"

namespace hocket::mpi {
namespace {

void at_once(MPI_File fh, From from, MPI_Offset offset, const Memory& memory, MPI_Status* status) {
  fill(status, move(*file_of(fh), from, offset, memory));
}
void together(MPI_File fh, From from, MPI_Offset offset, const Memory& memory, MPI_Status* status) {
  fill(status, move_together(*file_of(fh), from, offset, memory));
}
void immediate(
    MPI_File fh, From from, MPI_Offset offset, const Memory& memory, MPI_Request* request) {
  Pending done;
  done.outcome = move(*file_of(fh), from, offset, memory);
  hand_out(request, std::move(done), Scope::of(fh));
}

void begin(MPI_File fh, Split split, From from, MPI_Offset offset, const Memory& memory) {
  const auto file = file_of(fh);
  require(!file->begun, MPI_ERR_OTHER, "another call of two halves has begun and is not ended");
  file->begun = {split, move_together(*file, from, offset, memory)};
}
void end(MPI_File fh, Split split, MPI_Status* status) {
  const auto file = file_of(fh);
  require(file->begun && file->begun->first == split, MPI_ERR_OTHER, "no such call has begun");
  fill(status, file->begun->second);
  file->begun.reset();
}

}  // namespace
}  // namespace hocket::mpi

namespace hocket::mpi::call {

// --- Reads ------------------------------------------------------------

void File_read_at(MPI_File fh,
                  MPI_Offset offset,
                  void* buf,
                  MPI_Count count,
                  MPI_Datatype datatype,
                  MPI_Status* status) {
  at_once(fh, From::kOffset, offset, Memory::reading(buf, count, datatype), status);
}
void File_iread_at(MPI_File fh,
                   MPI_Offset offset,
                   void* buf,
                   MPI_Count count,
                   MPI_Datatype datatype,
                   MPI_Request* request) {
  immediate(fh, From::kOffset, offset, Memory::reading(buf, count, datatype), request);
}
void File_iread_at_all(MPI_File fh,
                       MPI_Offset offset,
                       void* buf,
                       MPI_Count count,
                       MPI_Datatype datatype,
                       MPI_Request* request) {
  immediate(fh, From::kOffset, offset, Memory::reading(buf, count, datatype), request);
}
void File_read_at_all(MPI_File fh,
                      MPI_Offset offset,
                      void* buf,
                      MPI_Count count,
                      MPI_Datatype datatype,
                      MPI_Status* status) {
  together(fh, From::kOffset, offset, Memory::reading(buf, count, datatype), status);
}
void File_read_at_all_begin(
    MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype) {
  begin(fh, Split::kReadAtAll, From::kOffset, offset, Memory::reading(buf, count, datatype));
}
void File_read_at_all_end(MPI_File fh, void*, MPI_Status* status) {
  end(fh, Split::kReadAtAll, status);
}
void File_read(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  at_once(fh, From::kOwn, 0, Memory::reading(buf, count, datatype), status);
}
void File_iread(
    MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
  immediate(fh, From::kOwn, 0, Memory::reading(buf, count, datatype), request);
}
void File_iread_all(
    MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
  immediate(fh, From::kOwn, 0, Memory::reading(buf, count, datatype), request);
}
void File_read_all(
    MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  together(fh, From::kOwn, 0, Memory::reading(buf, count, datatype), status);
}
void File_read_all_begin(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype) {
  begin(fh, Split::kReadAll, From::kOwn, 0, Memory::reading(buf, count, datatype));
}
void File_read_all_end(MPI_File fh, void*, MPI_Status* status) { end(fh, Split::kReadAll, status); }
void File_read_shared(
    MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  at_once(fh, From::kShared, 0, Memory::reading(buf, count, datatype), status);
}
void File_iread_shared(
    MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
  immediate(fh, From::kShared, 0, Memory::reading(buf, count, datatype), request);
}
void File_read_ordered(
    MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  together(fh, From::kOrdered, 0, Memory::reading(buf, count, datatype), status);
}
void File_read_ordered_begin(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype) {
  begin(fh, Split::kReadOrdered, From::kOrdered, 0, Memory::reading(buf, count, datatype));
}
void File_read_ordered_end(MPI_File fh, void*, MPI_Status* status) {
  end(fh, Split::kReadOrdered, status);
}
// --- Writes ------------------------------------------------------------

void File_write_at(MPI_File fh,
                   MPI_Offset offset,
                   const void* buf,
                   MPI_Count count,
                   MPI_Datatype datatype,
                   MPI_Status* status) {
  at_once(fh, From::kOffset, offset, Memory::writing(buf, count, datatype), status);
}
void File_iwrite_at(MPI_File fh,
                    MPI_Offset offset,
                    const void* buf,
                    MPI_Count count,
                    MPI_Datatype datatype,
                    MPI_Request* request) {
  immediate(fh, From::kOffset, offset, Memory::writing(buf, count, datatype), request);
}
void File_iwrite_at_all(MPI_File fh,
                        MPI_Offset offset,
                        const void* buf,
                        MPI_Count count,
                        MPI_Datatype datatype,
                        MPI_Request* request) {
  immediate(fh, From::kOffset, offset, Memory::writing(buf, count, datatype), request);
}
void File_write_at_all(MPI_File fh,
                       MPI_Offset offset,
                       const void* buf,
                       MPI_Count count,
                       MPI_Datatype datatype,
                       MPI_Status* status) {
  together(fh, From::kOffset, offset, Memory::writing(buf, count, datatype), status);
}
void File_write_at_all_begin(
    MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype) {
  begin(fh, Split::kWriteAtAll, From::kOffset, offset, Memory::writing(buf, count, datatype));
}
void File_write_at_all_end(MPI_File fh, const void*, MPI_Status* status) {
  end(fh, Split::kWriteAtAll, status);
}
void File_write(
    MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  at_once(fh, From::kOwn, 0, Memory::writing(buf, count, datatype), status);
}
void File_iwrite(
    MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
  immediate(fh, From::kOwn, 0, Memory::writing(buf, count, datatype), request);
}
void File_iwrite_all(
    MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
  immediate(fh, From::kOwn, 0, Memory::writing(buf, count, datatype), request);
}
void File_write_all(
    MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  together(fh, From::kOwn, 0, Memory::writing(buf, count, datatype), status);
}
void File_write_all_begin(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype) {
  begin(fh, Split::kWriteAll, From::kOwn, 0, Memory::writing(buf, count, datatype));
}
void File_write_all_end(MPI_File fh, const void*, MPI_Status* status) {
  end(fh, Split::kWriteAll, status);
}
void File_write_shared(
    MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  at_once(fh, From::kShared, 0, Memory::writing(buf, count, datatype), status);
}
void File_iwrite_shared(
    MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
  immediate(fh, From::kShared, 0, Memory::writing(buf, count, datatype), request);
}
void File_write_ordered(
    MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  together(fh, From::kOrdered, 0, Memory::writing(buf, count, datatype), status);
}
void File_write_ordered_begin(MPI_File fh,
                              const void* buf,
                              MPI_Count count,
                              MPI_Datatype datatype) {
  begin(fh, Split::kWriteOrdered, From::kOrdered, 0, Memory::writing(buf, count, datatype));
}
void File_write_ordered_end(MPI_File fh, const void*, MPI_Status* status) {
  end(fh, Split::kWriteOrdered, status);
}

}  // namespace hocket::mpi::call
