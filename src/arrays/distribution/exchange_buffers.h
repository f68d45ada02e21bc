// Buffers in which the ranks of a plan keep data that others read.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "hocket/communicator.h"
#include "hocket/symmetric.h"

namespace hocket::distribution {

bool on_one_host(const Communicator& comm);

// A resource of one plan, used by one thread. Each rank reads the others' buffers. The buffers are
// symmetric if the ranks reach each other's memory: ranks of one host, or GPUs with peer access.
class ExchangeBuffers {
 public:
  // Collective. `bytes` is the same on all ranks.
  ExchangeBuffers(Communicator& comm,
                  std::size_t bytes,
                  std::optional<Duration> deadline,
                  MemoryKind memory = MemoryKind::kHost);
  bool is_shared() const noexcept { return !symmetric_.empty(); }
  // Return the current buffer of this rank, and of another rank. Two buffers are used alternately,
  // so that no rank overwrites data that another rank may still read. GPUs have no buffers if these
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
