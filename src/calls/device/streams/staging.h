// Calls on GPUs' arrays through the host, if no engine for GPUs carries them. The host's engines
// carry them on copies in page-locked memory.
//
// The threads that carry such a call never call the driver. Another thread may be in the driver and
// wait there for the same stream, for example in a copy to pageable memory. A call of the driver
// could block behind that thread. The stream, which waits for the carrying thread, would then never
// go on. So the host and the stream communicate by words in the host's memory.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "calls/call/operation.h"
#include "engine/engine.h"
#include "foundation/cuda/memory.h"
#include "foundation/cuda/stream.h"
#include "hocket/communicator.h"

namespace hocket::device {

class Staging;

// The bytes that a call reads from `in` and writes to `out` on this rank.
struct Extents {
  std::size_t in = 0;
  std::size_t out = 0;
};
Extents extents_of(const engine::Call& call, int rank, int size);

// A resource: one call through the host. Its stream contains, in order:
//
//   copies to the host | write the word "here" | wait for the word "release" | copies back
//
// In between the host carries the call. It sets "release" in any case, also after a failure or
// cancellation, so the stream never hangs. That also releases the streams of earlier calls.
//
// The wait is enqueued when the call is already in progress. A thread that enqueues work behind it
// may block until no stream waits, if another thread frees memory (docs/gpu.md).
class StagedCall final : public call::Carrying {
 public:
  ~StagedCall() override;

  // Returns the call on the host's copies.
  const engine::Call& call() const noexcept { return call_; }
  // Returns whether the inputs have been copied.
  bool is_here() const noexcept;
  // Carries the call by `engine`, after the copies have arrived.
  engine::Task carry(engine::CollectiveEngine& engine,
                     const engine::Call& call,
                     std::function<void()> arrived) override;
  bool is_awaited() const noexcept override { return awaited_; }

 private:
  friend class Staging;
  StagedCall() = default;
  void release() noexcept;  // lets the stream go on, also if called before the wait is enqueued

  std::shared_ptr<Staging> staging_;
  engine::Call call_;
  engine::Call on_device_;
  Extents extents_;
  std::uint32_t ticket_ = 0;
  bool has_wait_ = false;  // a stream waits for "release"
  bool awaited_ = false;
  // Both copies lie in one buffer, which is reused when `back_` has passed.
  std::shared_ptr<cuda::HostBuffer> buffer_;
  std::shared_ptr<cuda::OwnedEvent> back_;
};

// A resource that the messages of one exchange share. Its stream contains, in order:
//
//   copies of outgoing data | write "here" | wait for "release" | copies of incoming data
//
// "release" is set when the last message has ended, with or without error.
class StagedExchange {
 public:
  ~StagedExchange();

  // Returns whether the outgoing data has been copied.
  bool is_here() const noexcept;
  // Return the host's copies, in the order of the messages.
  const std::vector<std::byte*>& outgoing() const noexcept { return outgoing_; }
  const std::vector<std::byte*>& incoming() const noexcept { return incoming_; }

  // The position of incoming data, valid also after the last message has ended. A value.
  struct ReceiveBuffers {
    std::shared_ptr<cuda::HostBuffer> buffer;
    std::shared_ptr<cuda::OwnedEvent> back;
    std::vector<std::byte*> places;
  };
  ReceiveBuffers receive_buffers() const { return {buffer_, back_, incoming_}; }

 private:
  friend class Staging;
  StagedExchange() = default;

  std::shared_ptr<cuda::HostBuffer> buffer_;  // begins with two words, see StagedCall
  std::shared_ptr<cuda::OwnedEvent> back_;
  std::shared_ptr<Staging> staging_;  // null: no stream waits for it
  std::vector<std::byte*> outgoing_;
  std::vector<std::byte*> incoming_;
};

// A resource, one for each communicator: buffers, and the words of calls. One thread at a time uses
// it, except for the words and the ends of calls. The driver may block a thread that begins a call
// until earlier calls have ended.
class Staging : public std::enable_shared_from_this<Staging> {
 public:
  explicit Staging(std::shared_ptr<const cuda::DeviceContext> device);

  // True if the limit of calls in progress that streams wait for is reached.
  bool is_full() const noexcept;

  // The GPU must be current in the functions below, and they may allocate memory. `size` is the
  // size of the group.
  std::shared_ptr<StagedCall> prepare(const engine::Call& call, int rank, int size);
  // Enqueues the copies to the host.
  void give(StagedCall& staged, cuda::Stream stream);
  std::shared_ptr<StagedExchange> give(std::span<const Outgoing> outgoing,
                                       std::span<const Incoming> incoming,
                                       cuda::Stream stream);
  // Enqueues the wait and the copies back. The call, or the messages, must be in progress.
  void wait_and_copy_back(StagedCall& staged, cuda::Stream stream);
  void wait_and_copy_back(const StagedExchange::ReceiveBuffers& received,
                          std::span<const Incoming> incoming,
                          cuda::Stream stream);
  // `bring` and `take_back` do the same without a wait on the stream, because the caller waits.
  // Call `take_back` when the call, or the messages, have succeeded.
  void bring(StagedCall& staged, cuda::Stream stream);
  void take_back(StagedCall& staged, cuda::Stream stream);
  std::shared_ptr<StagedExchange> bring(std::span<const Incoming> incoming, cuda::Stream stream);
  void take_back(StagedExchange& staged, std::span<const Incoming> incoming, cuda::Stream stream);

 private:
  friend class StagedCall;
  friend class StagedExchange;
  struct CachedBuffer {
    std::shared_ptr<cuda::HostBuffer> buffer;
    std::shared_ptr<cuda::OwnedEvent> back;
  };
  CachedBuffer take(std::size_t bytes);
  void copy_in(const StagedCall& staged, cuda::Stream stream);
  void copy_out(StagedCall& staged, cuda::Stream stream);
  void copy_back(const StagedExchange::ReceiveBuffers& received,
                 std::span<const Incoming> incoming,
                 cuda::Stream stream);
  std::shared_ptr<StagedExchange> lay_out(std::span<const Outgoing> outgoing,
                                          std::span<const Incoming> incoming);
  void note_begin(std::size_t bytes) noexcept;
  void note_end(std::size_t bytes) noexcept;
  bool is_here(std::uint32_t ticket) const noexcept;
  void set(std::uint32_t ticket) noexcept;

  std::shared_ptr<const cuda::DeviceContext> device_;
  cuda::HostBuffer words_;
  std::uint32_t tickets_ = 0;
  std::vector<CachedBuffer> kept_;
  std::atomic<std::size_t> under_way_{0};        // calls and exchanges that streams wait for
  std::atomic<std::size_t> bytes_under_way_{0};  // host memory of these, in bytes
};

}  // namespace hocket::device
