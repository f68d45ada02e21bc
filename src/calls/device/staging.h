// Device arrays by way of the host: what no engine of GPUs carries, those of the host do, on copies
// in page-locked memory.
//
// Whoever carries them makes no call of the driver: another thread may wait in one, such as a copy
// to memory that is not page-locked, for the very stream that waits here. The two sides tell each
// other by words in the host's memory.
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

// Bytes that a call reads of `in` and writes of `out` on this rank, from their addresses on.
struct Extents {
  std::size_t in = 0;
  std::size_t out = 0;
};
Extents extents_of(const engine::Call& call, int rank, int size);

// A resource: one call's way. On its stream stand, in this order: copies to the host, a word that
// they are there, a wait for another word, copies back. In between the call is carried on the host,
// and the word is set, also when it fails or is cancelled, so that the stream never hangs.
//
// The wait is put there when the call is under way already. What comes behind it may keep whoever
// puts it waiting until no stream waits, as another thread frees memory (docs/gpu.md).
class StagedCall final : public call::Carrying {
 public:
  ~StagedCall() override;

  // The call on the host's copies.
  const engine::Call& call() const noexcept { return call_; }
  // Whether what goes in has been copied.
  bool is_here() const noexcept;
  // Carries it by `engine`, once the copies have come.
  engine::Task carry(engine::CollectiveEngine& engine,
                     const engine::Call& call,
                     std::function<void()> arrived) override;
  bool is_awaited() const noexcept override { return awaited_; }

 private:
  friend class Staging;
  StagedCall() = default;
  void release() noexcept;  // the stream

  std::shared_ptr<Staging> staging_;
  engine::Call call_;
  engine::Call on_device_;
  Extents extents_;
  std::uint32_t ticket_ = 0;
  bool released_ = false;
  bool awaited_ = false;
  // The two lie in one buffer; it is used anew once `back_` has passed.
  std::shared_ptr<cuda::HostBuffer> buffer_;
  std::shared_ptr<cuda::OwnedEvent> back_;
};

// A resource, shared by the messages of one exchange. On its stream stand, in this order: copies of
// what goes out, a word that they are there, a wait for another word, copies of what comes in. That
// word is set when the last message has ended, well or not.
class StagedExchange {
 public:
  ~StagedExchange();

  // Whether what goes out has been copied.
  bool is_here() const noexcept;
  // The host's copies, in the order of the messages.
  const std::vector<std::byte*>& outgoing() const noexcept { return outgoing_; }
  const std::vector<std::byte*>& incoming() const noexcept { return incoming_; }

  // A value: where what comes in is, also when the last message has ended.
  struct Landing {
    std::shared_ptr<cuda::HostBuffer> buffer;
    std::shared_ptr<cuda::OwnedEvent> back;
    std::vector<std::byte*> places;
  };
  Landing landing() const { return {buffer_, back_, incoming_}; }

 private:
  friend class Staging;
  StagedExchange() = default;

  std::shared_ptr<cuda::HostBuffer> buffer_;  // begins with the words
  std::shared_ptr<cuda::OwnedEvent> back_;
  std::shared_ptr<Staging> staging_;  // null: no stream waits for it
  std::vector<std::byte*> outgoing_;
  std::vector<std::byte*> incoming_;
};

// A resource, one a communicator: buffers, and the words of calls. One thread at a time, but for
// the words and the ends of what was begun. The driver may keep whoever begins waiting, until what
// was begun earlier has ended.
class Staging : public std::enable_shared_from_this<Staging> {
 public:
  explicit Staging(std::shared_ptr<const cuda::DeviceContext> device);

  // Whether as much is under way, with streams that wait for it, as there should be at once.
  bool is_full() const noexcept;

  // The device is current in all that follows. `size`: of the group. May allocate.
  std::shared_ptr<StagedCall> prepare(const engine::Call& call, int rank, int size);
  // Puts the copies to the host on the stream.
  void give(StagedCall& staged, cuda::Stream stream);
  std::shared_ptr<StagedExchange> give(std::span<const Outgoing> outgoing,
                                       std::span<const Incoming> incoming,
                                       cuda::Stream stream);
  // Puts the wait and the copies back there, once the call, or the messages, are under way.
  void land(StagedCall& staged, cuda::Stream stream);
  void land(const StagedExchange::Landing& landing,
            std::span<const Incoming> incoming,
            cuda::Stream stream);
  // The same where no stream waits: whoever calls does. `take_back` comes when the call, or the
  // messages, have ended well.
  void bring(StagedCall& staged, cuda::Stream stream);
  void take_back(StagedCall& staged, cuda::Stream stream);
  std::shared_ptr<StagedExchange> bring(std::span<const Incoming> incoming, cuda::Stream stream);
  void take_back(StagedExchange& staged, std::span<const Incoming> incoming, cuda::Stream stream);

 private:
  friend class StagedCall;
  friend class StagedExchange;
  struct Kept {
    std::shared_ptr<cuda::HostBuffer> buffer;
    std::shared_ptr<cuda::OwnedEvent> back;
  };
  Kept take(std::size_t bytes);
  void copy_in(const StagedCall& staged, cuda::Stream stream);
  void copy_out(StagedCall& staged, cuda::Stream stream);
  void copy_back(const StagedExchange::Landing& landing,
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
  std::vector<Kept> kept_;
  std::atomic<std::size_t> under_way_{0};        // calls and exchanges that streams wait for
  std::atomic<std::size_t> bytes_under_way_{0};  // of the host's memory, for these
};

}  // namespace hocket::device
