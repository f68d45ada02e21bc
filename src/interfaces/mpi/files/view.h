// A view of a file: which of its bytes a rank sees, and in which order.
//
//     file   |<- displacement ->| filetype | filetype | filetype ...
//     view                        the data bytes of all filetypes in order, counted in etypes
#pragma once

#include <string>

#include "interfaces/mpi/abi.h"
#include "interfaces/mpi/types/runs.h"

namespace hocket::mpi {

// A value. Offsets of the view are in bytes here, unless a name says etypes.
struct View {
  std::int64_t displacement = 0;
  // The types of the file's bytes. In external32 they differ from given_etype and given_filetype.
  DatatypePtr etype = predefined(Kind::kByte);
  DatatypePtr filetype = etype;
  DatatypePtr given_etype = etype, given_filetype = etype;
  MPI_Datatype etype_handle = MPI_BYTE, filetype_handle = MPI_BYTE;
  std::string representation = "native";

  bool is_external() const noexcept { return representation == "external32"; }

  // Throws unless the types fit together and never go backwards in the file.
  void check() const;

  // Walks over the pieces of the view's bytes from `begin` to `end`, in order. Calls `run` with the
  // place in the file and the length of each piece, until `run` returns false. Neighbours are
  // merged. Throws if the file cannot be that long.
  void each_run(std::int64_t begin, std::int64_t end, const Run& run) const;

  // Returns the offset in the file of a byte of the view.
  std::int64_t place_of(std::int64_t byte) const;
  // Returns the number of the view's etypes that begin before the end of a file of this size.
  std::int64_t end_in_etypes(std::int64_t file_size) const;
  // Converts etypes to bytes. Throws if the product does not fit.
  std::int64_t bytes_at(std::int64_t etypes) const;
};

}  // namespace hocket::mpi
