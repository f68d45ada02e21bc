// The exchange of file descriptors between ranks of one host.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "foundation/base/deadline.h"
#include "foundation/os/fd.h"

namespace hocket::cuda {

// A function that gives every rank the bytes of all ranks, by rank, all of one length. Only ranks
// of the job can write to its channel: the group's shared memory, or the authenticated store.
using GatherAll = std::function<std::vector<std::byte>(std::span<const std::byte>)>;

// A descriptor that a rank receives from another. A value.
struct Handed {
  os::Fd fd;
  std::size_t bytes = 0;  // of the memory that it refers to, as its owner says
};

// Exchanges descriptors among `size` ranks of one host, which are processes or threads. Collective:
// each rank gives one descriptor to every other rank. They travel over AF_UNIX sockets without a
// name in the file system. Each side checks the other's user, and a random token that was exchanged
// by `gather`. The result has one entry for each rank; this rank's is empty. Throws RendezvousError
// at the deadline.
std::vector<Handed> exchange_descriptors(int rank,
                                         int size,
                                         const os::Fd& own,
                                         std::size_t own_bytes,
                                         const GatherAll& gather,
                                         base::Deadline deadline);

}  // namespace hocket::cuda
