// Symmetric memory of GPUs: one piece on every rank's GPU, mapped by all ranks. All ranks make it
// together. If it fails on one rank, all ranks throw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calls/device/blocks.h"
#include "calls/device/session.h"
#include "engines/nvshmem/heap.h"

namespace hocket::device {

// A part of a session. The session outlives it. The communicator's turn guards it.
class DeviceMemory {
 public:
  explicit DeviceMemory(DeviceSession& session)
      : session_(session), owner_(session.owner()), job_(session.job()) {}

  // Allocates memory on every rank's GPU, which all ranks map. Collective; `shown` is the call's
  // signature. Throws InvalidArgument on all ranks if one rank fails.
  std::shared_ptr<DeviceBlock> allocate(std::size_t bytes,
                                        const engine::Signature& shown,
                                        std::string name,
                                        std::optional<Duration> deadline);
  // Allocates the same from NVSHMEM's heap. It is collective among all PEs of NVSHMEM, which must
  // be this communicator's ranks. The first call starts NVSHMEM with them.
  std::shared_ptr<DeviceBlock> allocate_from_nvshmem(std::size_t bytes,
                                                     const engine::Signature& shown,
                                                     std::string name,
                                                     std::optional<Duration> deadline);
  // Returns NVSHMEM's team of this communicator's ranks, in their order. The first call is
  // collective.
  std::int32_t nvshmem_team(std::optional<Duration> deadline);

 private:
  static std::string text_of_refusal(int rank, const std::string& what, std::string_view why_not);
  void tell(const std::string& what,
            const std::string& why_not,
            const engine::Signature& shown,
            std::optional<Duration> allowed);
  std::vector<nvshmem::Facts> gather_nvshmem(std::shared_ptr<nvshmem::Heap>& heap,
                                             const engine::Signature& shown,
                                             std::optional<Duration> allowed);
  nvshmem::Wait wait_for_nvshmem(const engine::Signature& shown, std::optional<Duration> allowed);
  void in_nvshmem(const std::string& what,
                  const engine::Signature& shown,
                  std::optional<Duration> allowed,
                  const std::function<void(const nvshmem::Wait&)>& call);
  void start_nvshmem(nvshmem::Heap& heap,
                     const engine::Signature& shown,
                     std::optional<Duration> allowed);
  void take_back_dropped(nvshmem::Heap& heap,
                         const engine::Signature& shown,
                         std::optional<Duration> allowed);

  DeviceSession& session_;
  call::Core& owner_;
  DeviceJobContext& job_;
  std::optional<std::int32_t> nvshmem_team_;
};

}  // namespace hocket::device
