// Messages that have arrived, and probing for them.
#pragma once

#include <chrono>
#include <memory>
#include <thread>

#include "interfaces/mpi/buffers.h"

namespace hocket::mpi {

inline const Outcome kFromNobody{.source = MPI_PROC_NULL, .tag = MPI_ANY_TAG};

inline Pending received_already(const Outcome& outcome) {
  Pending made;
  made.outcome = outcome;
  return made;
}
// Sets MPI_ERR_TRUNCATE in the outcome if the message is longer than `room` bytes. The buffer then
// has the first part of the message.
void note_truncation(Outcome& outcome, std::int64_t room);

// Waits until a message has arrived, and describes it. Ranks and tags are MPI's.
Outcome probe(Comm& comm, int source, int tag);
// Takes a message, so that no other receive finds it. Null if there is none and `waits` is false.
std::shared_ptr<Message> take_message(Comm& comm, int source, int tag, bool waits);

}  // namespace hocket::mpi
