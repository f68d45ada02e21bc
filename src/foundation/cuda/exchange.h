// How ranks of one host hand each other file descriptors.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "foundation/base/deadline.h"
#include "foundation/os/fd.h"

namespace hocket::cuda {

// Tells every rank this rank's bytes and returns all ranks' bytes, by rank: as many from each.
// It travels by a way that only ranks of the job can write to (the group's shared memory, the
// authenticated store).
using GatherAll = std::function<std::vector<std::byte>(std::span<const std::byte>)>;

// What a rank receives from another. A value.
struct Handed {
  os::Fd fd;
  std::size_t bytes = 0;  // of the memory behind it, as its owner says
};

// Collective among `size` ranks of one host, processes or threads: each gives one descriptor to
// every other. Descriptors travel over AF_UNIX sockets without a name in the file system; each side
// checks the other's user, and a random token that went by `gather`. The result has one entry a
// rank, empty for this one. Throws RendezvousError at the deadline.
std::vector<Handed> exchange_descriptors(int rank,
                                         int size,
                                         const os::Fd& own,
                                         std::size_t own_bytes,
                                         const GatherAll& gather,
                                         base::Deadline deadline);

}  // namespace hocket::cuda
