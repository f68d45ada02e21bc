// Moving bytes between memory and what a rank sees of a file.
#pragma once

#include "interfaces/mpi/buffers.h"
#include "interfaces/mpi/files/file.h"

namespace hocket::mpi {

// A program's memory that is to be read into or written from. A value.
struct Memory {
  void* into = nullptr;  // null: it is written
  const void* from = nullptr;
  MPI_Count count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  bool is_write = false;

  static Memory reading(void* buf, MPI_Count count, MPI_Datatype type) noexcept {
    return {.into = buf, .count = count, .type = type};
  }
  static Memory writing(const void* buf, MPI_Count count, MPI_Datatype type) noexcept {
    return {.from = buf, .count = count, .type = type, .is_write = true};
  }
};

// The position from which a call moves data, and which it advances.
enum class From { kOffset, kOwn, kShared, kOrdered };

// Reads or writes, and returns the bytes that were moved: fewer than asked for at the end of a
// file. `offset` is that of From::kOffset, in etypes. From::kOrdered is collective.
Outcome move(File& file, From from, MPI_Offset offset, const Memory& memory);

}  // namespace hocket::mpi
