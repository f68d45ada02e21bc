// Buffers in which the ranks of a plan keep data that others read.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "hocket/communicator.h"
#include "hocket/symmetric.h"

namespace hocket::distribution {

bool on_one_host(const Communicator& comm);

// The buffers are symmetric if the ranks reach each other's memory: ranks of one host, or GPUs with
// peer access. Each rank reads the others' buffers. A resource of one plan; one thread.
class ExchangeBuffers {
 public:
  // Collective. `bytes` is the same on all ranks.
  ExchangeBuffers(Communicator& comm,
                  std::size_t bytes,
                  std::optional<Duration> deadline,
                  MemoryKind memory = MemoryKind::kHost);
  bool is_shared() const noexcept { return !symmetric_.empty(); }
  // There are two buffers, used in turn, so that no rank overwrites data that another may still
  // read. On a GPU there are none if they are not shared.
  std::byte* mine() noexcept;
  const std::byte* of(int rank) const;
  void turn() noexcept { at_ = 1 - at_; }

 private:
  std::vector<SymmetricArray> symmetric_;
  std::vector<std::byte> own_;
  std::size_t at_ = 0;
};

}  // namespace hocket::distribution
