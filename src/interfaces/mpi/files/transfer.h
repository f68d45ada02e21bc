// Moving bytes between memory and a rank's view of a file.
#pragma once

#include "interfaces/mpi/buffers.h"
#include "interfaces/mpi/files/file.h"

namespace hocket::mpi {

// The program's buffer of a read or a write. A value.
struct Memory {
  void* into = nullptr;  // null: the call writes the file
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

// The position at which a call begins. kOwn advances the rank's own position. kShared and kOrdered
// advance the shared one.
enum class From { kOffset, kOwn, kShared, kOrdered };

// Reads or writes, and returns the bytes that were moved: fewer than requested at the end of a
// file. `offset` counts etypes, and is used by From::kOffset alone. From::kOrdered is collective.
Outcome move(File& file, From from, MPI_Offset offset, const Memory& memory);
// The same, but collective. Ranks move their bytes together if that is quicker, and wait for each
// other at the end. A rank whose arguments are refused takes part with no bytes.
Outcome move_together(File& file, From from, MPI_Offset offset, const Memory& memory);

}  // namespace hocket::mpi
