// Where the ranks of a plan keep what others want of them.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "hocket/communicator.h"
#include "hocket/symmetric.h"

namespace hocket::distribution {

bool on_one_host(const Communicator& comm);

// Symmetric where the ranks reach each other's memory: those of one host, or GPUs that do; each
// reads the others'. A resource of one plan; one thread.
class Shelves {
 public:
  // Collective. `bytes` is the same on all ranks.
  Shelves(Communicator& comm,
          std::size_t bytes,
          std::optional<Duration> deadline,
          MemoryKind memory = MemoryKind::kHost);
  bool is_shared() const noexcept { return !symmetric_.empty(); }
  // Two, used in turn: nobody overwrites what another may still read. On a GPU nothing where they
  // are not shared.
  std::byte* mine() noexcept;
  const std::byte* of(int rank) const;
  void turn() noexcept { at_ = 1 - at_; }

 private:
  std::vector<SymmetricArray> symmetric_;
  std::vector<std::byte> own_;
  std::size_t at_ = 0;
};

}  // namespace hocket::distribution
