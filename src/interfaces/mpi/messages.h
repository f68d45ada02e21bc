// Shared by calls that look at messages.
#pragma once

#include <chrono>
#include <memory>
#include <thread>

#include "interfaces/mpi/buffers.h"

namespace hocket::mpi {

// Waits until a message is there. Ranks and tags are MPI's.
Outcome probe(Comm& comm, int source, int tag);
// Takes a message, so that no other receive finds it; null where none is there and `waits` is not.
std::shared_ptr<Message> take_message(Comm& comm, int source, int tag, bool waits);

}  // namespace hocket::mpi
