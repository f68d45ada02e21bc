// Exchanges file descriptors between ranks of one host.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "foundation/base/deadline.h"
#include "foundation/os/fd.h"

namespace hocket::cuda {

// A collective function: every rank passes bytes, and gets the bytes of all ranks, by rank. All
// have the same length. Only ranks of the job can write to its channel: the group's shared memory,
// or the authenticated store.
using GatherAll = std::function<std::vector<std::byte>(std::span<const std::byte>)>;

// A descriptor that another rank has sent, which this rank now owns. A value.
struct Handed {
  os::Fd fd;
  std::size_t bytes = 0;  // size of its memory, as the sender says
};

// Collective among `size` ranks of one host, which are processes or threads. Each rank sends the
// descriptor `own` to every other rank. The result has one entry for each rank; this rank's own
// entry is empty. Descriptors travel over AF_UNIX sockets that have no name in the file system.
// Each side checks the other's user, and a random token that `gather` has exchanged. If it fails on
// one rank, for example at the deadline, all ranks throw DeviceError with that rank's reason.
std::vector<Handed> exchange_descriptors(int rank,
                                         int size,
                                         const os::Fd& own,
                                         std::size_t own_bytes,
                                         const GatherAll& gather,
                                         base::Deadline deadline);

}  // namespace hocket::cuda
