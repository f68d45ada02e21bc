// Memory on every rank's GPU, mapped by all ranks. They make it together; each of them may fail.
#include <fmt/format.h>

#include "calls/device/memory.h"
#include "foundation/base/short_text.h"
#include "foundation/cuda/exchange.h"
#include "foundation/cuda/stream.h"
#include "foundation/cuda/vmm.h"

namespace hocket::device {

std::string DeviceMemory::text_of_refusal(int rank,
                                          const std::string& what,
                                          std::string_view why_not) {
  return fmt::format("rank {} has no symmetric memory for {}: {}", rank, what, why_not);
}

// Collective: if one rank has a reason to fail, all throw it.
void DeviceMemory::tell(const std::string& what,
                        const std::string& why_not,
                        const engine::Signature& shown,
                        std::optional<Duration> allowed) {
  base::ShortSentence<160> own;
  own = why_not;
  const auto all = session_.gather_values(own, shown, allowed);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    throw InvalidArgument(text_of_refusal(static_cast<int>(rank), what, all[rank].view()));
  }
}

std::shared_ptr<DeviceBlock> DeviceMemory::allocate(std::size_t bytes,
                                                    const engine::Signature& shown,
                                                    std::string name,
                                                    std::optional<Duration> allowed) {
  const call::Membership& membership = owner_.membership();
  if (membership.spans()) {
    throw InvalidArgument(
        "the ranks are on several hosts, and GPUs' symmetric memory is of one; make it with "
        "intra_node");
  }
  std::optional<cuda::Mapping> own;
  os::Fd shared;
  std::string why_not;
  try {
    session_.require_device({});
    const cuda::OutsideCapture outside(session_.gpu()->driver());
    const call::LentTurn lent(owner_);
    own.emplace(cuda::Mapping::create(session_.gpu(), bytes));
    shared = own->share();
  } catch (const std::exception& error) {
    why_not = error.what();
  }
  tell(name, why_not, shown, allowed);

  const cuda::DeviceGuard guard(*session_.gpu());
  const auto deadline = base::Deadline::in(allowed.value_or(owner_.deadline()));
  std::vector<cuda::Mapping> pieces;
  try {
    const auto handed = cuda::exchange_descriptors(
        owner_.rank(),
        owner_.size(),
        shared,
        own->bytes(),
        [&](std::span<const std::byte> part) { return session_.gather(shown, part, allowed); },
        deadline);
    const call::LentTurn lent(owner_);
    for (int rank = 0; rank < owner_.size(); ++rank) {
      const auto& piece = handed[static_cast<std::size_t>(rank)];
      pieces.push_back(rank == owner_.rank()
                           ? std::move(*own)
                           : cuda::Mapping::import(session_.gpu(), piece.fd, piece.bytes));
    }
  } catch (const DeviceError& error) {
    why_not = error.what();
  }
  tell(name, why_not, shown, allowed);
  // All ranks have made the same calls, so the number is equal on all ranks. No other block with
  // these ranks has it.
  const std::uint64_t id = owner_.ledger().last() << 16 ^ owner_.ledger().fingerprint();
  const auto memory = std::make_shared<std::vector<cuda::Mapping>>(std::move(pieces));
  DeviceBlockParts parts{.id = id,
                         .name = std::move(name),
                         .world_ranks = membership.world_ranks,
                         .rank = owner_.rank(),
                         .bytes = (*memory)[static_cast<std::size_t>(owner_.rank())].bytes(),
                         .pieces = {},
                         .memory = memory};
  for (const cuda::Mapping& piece : *memory) {
    parts.pieces.push_back(reinterpret_cast<std::byte*>(piece.address()));
  }
  auto block = std::make_shared<DeviceBlock>(session_.gpu(), std::move(parts));
  block->wait_at_end(owner_.deadline());
  job_.device_blocks().add(block);
  return block;
}

}  // namespace hocket::device
