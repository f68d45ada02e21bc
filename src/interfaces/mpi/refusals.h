// Turns refusals from types/ into exceptions with MPI's error codes.
#pragma once

#include <optional>

#include "interfaces/mpi/types/result.h"

namespace hocket::mpi {

// Throws the refusal, if there is one.
void refuse_if(const std::optional<Refusal>& refusal);
template <typename T>
T taken(Result<T> result) {
  if (!result.ok()) refuse_if(result.refusal());
  return result.take();
}

}  // namespace hocket::mpi
