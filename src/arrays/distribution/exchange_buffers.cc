#include "arrays/distribution/exchange_buffers.h"

#include <algorithm>

#include "hocket/error.h"

namespace hocket::distribution {

bool on_one_host(const Communicator& comm) {
  const auto hosts = comm.hosts();
  return std::all_of(hosts.begin(), hosts.end(), [&](int host) { return host == hosts[0]; });
}

ExchangeBuffers::ExchangeBuffers(Communicator& comm,
                                 std::size_t bytes,
                                 std::optional<Duration> deadline,
                                 MemoryKind memory) {
  if (bytes > 0 && (memory == MemoryKind::kCuda || on_one_host(comm))) {
    const SymmetricOptions options{.memory = memory, .deadline = deadline};
    try {
      for (int i = 0; i < 2; ++i) {
        symmetric_.push_back(comm.symmetric().empty(bytes, DType::kUInt8, options));
      }
      return;
    } catch (const SystemError&) {  // out of memory; all ranks get the same error
      symmetric_.clear();
    } catch (const InvalidArgument&) {
      symmetric_.clear();
    }
  }
  if (memory == MemoryKind::kHost) own_.resize(bytes);
}

std::byte* ExchangeBuffers::mine() noexcept {
  return is_shared() ? symmetric_[at_].data<std::byte>() : own_.data();
}

const std::byte* ExchangeBuffers::of(int rank) const {
  return static_cast<const std::byte*>(symmetric_[at_].peer(rank).data());
}

}  // namespace hocket::distribution
