// Device arrays by way of the host: what no engine of GPUs carries, an engine of the host does, on
// copies in page-locked memory.
#pragma once

#include <memory>
#include <vector>

#include "cuda/memory.h"
#include "cuda/stream.h"
#include "engine/engine.h"

namespace hocket::comm {

class Staging;

// A resource: one call's way. On its stream stand, in this order: copies to the host, a wait for a
// word, copies back. In between the call is carried on the host, and the word is set, also when it
// fails or is cancelled, so that the stream never hangs.
class StagedCall {
 public:
  ~StagedCall();

  // The call on the host's copies.
  const engine::Call& call() const noexcept { return call_; }
  // Carries it by `engine`, once the copies have come.
  engine::Task carry(engine::CollectiveEngine& engine, const engine::Call& call);

 private:
  friend class Staging;
  StagedCall() = default;
  void release() noexcept;  // the stream

  std::shared_ptr<Staging> staging_;
  engine::Call call_;
  std::uint32_t ticket_ = 0;
  bool released_ = false;
  // The two lie in one buffer; it is used anew once `back_` has passed.
  std::shared_ptr<cuda::HostBuffer> buffer_;
  std::shared_ptr<cuda::OwnedEvent> here_;
  std::shared_ptr<cuda::OwnedEvent> back_;
};

// A resource, one a communicator: buffers, and the word that streams wait for. One thread at a
// time, but for the word.
class Staging : public std::enable_shared_from_this<Staging> {
 public:
  explicit Staging(std::shared_ptr<const cuda::DeviceContext> device);

  // Puts the copies and the wait on the stream. `size`: of the group. The device is current.
  std::shared_ptr<StagedCall> begin(const engine::Call& call,
                                    int rank,
                                    int size,
                                    cuda::Stream stream);

 private:
  friend class StagedCall;
  struct Kept {
    std::shared_ptr<cuda::HostBuffer> buffer;
    std::shared_ptr<cuda::OwnedEvent> back;
  };
  Kept take(std::size_t bytes);
  void set(std::uint32_t ticket) noexcept;

  std::shared_ptr<const cuda::DeviceContext> device_;
  cuda::HostBuffer word_;
  std::uint32_t tickets_ = 0;
  std::vector<Kept> kept_;
};

// Bytes that a call reads of `in` and writes of `out` on this rank, from their addresses on.
struct Extents {
  std::size_t in = 0;
  std::size_t out = 0;
};
Extents extents_of(const engine::Call& call, int rank, int size);

}  // namespace hocket::comm
