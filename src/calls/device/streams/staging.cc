#include "calls/device/streams/staging.h"

#include <algorithm>
#include <atomic>
#include <bit>

namespace hocket::device {

using engine::Call;
using engine::Kind;
using engine::Task;

namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kSmallest = std::size_t{1} << 16;

// Limits of calls in progress. A stream's queue holds about a thousand entries, and a call takes at
// most nine. Page-locked memory is not available to other programs. Two calls are always allowed.
constexpr std::size_t kMostUnderWay = 64;
constexpr std::size_t kMostBytesUnderWay = std::size_t{256} << 20;

// Offsets of two words. The stream waits for kRelease, which the host writes. The stream writes
// kHere when the copies are on the host.
constexpr std::size_t kRelease = 0;
constexpr std::size_t kHere = 4;

std::atomic_ref<std::uint32_t> word_of(const cuda::HostBuffer& buffer, std::size_t at) {
  return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(buffer.data() + at));
}
void put_write(const cuda::Driver& driver,
               const cuda::HostBuffer& words,
               std::uint32_t value,
               cuda::Stream stream) {
  cuda::check(driver,
              driver.stream_write_value32(stream, words.device_address() + kHere, value, 0),
              "put a word on the stream");
}
void put_wait(const cuda::Driver& driver,
              const cuda::HostBuffer& words,
              std::uint32_t value,
              cuda::Stream stream) {
  cuda::check(
      driver,
      driver.stream_wait_value32(
          stream, words.device_address() + kRelease, value, cuda::kStreamWaitGreaterOrEqual),
      "have a stream wait for the host");
}

std::size_t round_up(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// Returns the offset of the output in a call's buffer. It differs from the offset of the input even
// if that is empty. Two arrays at one address would count as in place.
std::size_t place_of_out(const Extents& extents) { return std::max(kLine, round_up(extents.in)); }

std::size_t end_of(const engine::PartsView& parts, int size) {
  std::size_t end = 0;
  for (std::size_t i = 0; parts.bytes != nullptr && i < static_cast<std::size_t>(size); ++i) {
    end = std::max(end, parts.offsets[i] + parts.bytes[i]);
  }
  return end;
}

}  // namespace

Extents extents_of(const Call& call, int rank, int size) {
  const engine::Kind kind = call.signature.kind;
  const bool at_root = rank == call.signature.root;
  const auto bytes = [&](engine::Has has, const engine::PartsView& parts) -> std::size_t {
    switch (has) {
      case engine::Has::kNothing:
        return 0;
      case engine::Has::kCount:
      case engine::Has::kShare:
        return own_bytes(call);
      case engine::Has::kAll:
        return is_listed(kind) ? end_of(parts, size)
                               : bytes_of(call.signature) * static_cast<std::size_t>(size);
    }
    return 0;
  };
  return {bytes(engine::given(kind, at_root), call.in_parts),
          bytes(engine::taken(kind, at_root), call.out_parts)};
}

Staging::Staging(std::shared_ptr<const cuda::DeviceContext> device)
    : device_(std::move(device)), words_(device_, kLine) {}

bool Staging::is_full() const noexcept {
  const std::size_t under_way = under_way_.load(std::memory_order_relaxed);
  return under_way >= kMostUnderWay ||
         (under_way >= 2 && bytes_under_way_.load(std::memory_order_relaxed) >= kMostBytesUnderWay);
}

void Staging::note_begin(std::size_t bytes) noexcept {
  under_way_.fetch_add(1, std::memory_order_relaxed);
  bytes_under_way_.fetch_add(bytes, std::memory_order_relaxed);
}

void Staging::note_end(std::size_t bytes) noexcept {
  under_way_.fetch_sub(1, std::memory_order_relaxed);
  bytes_under_way_.fetch_sub(bytes, std::memory_order_relaxed);
}

Staging::CachedBuffer Staging::take(std::size_t bytes) {
  for (CachedBuffer& kept : kept_) {
    // Takes a buffer that has no other owner and whose last copies have ended.
    if (kept.buffer->bytes() >= bytes && kept.buffer.use_count() == 1 && kept.back->passed()) {
      return kept;
    }
  }
  const std::size_t size = std::bit_ceil(std::max(bytes, kSmallest));
  kept_.push_back({std::make_shared<cuda::HostBuffer>(device_, size),
                   std::make_shared<cuda::OwnedEvent>(device_)});
  return kept_.back();
}

std::shared_ptr<StagedCall> Staging::prepare(const Call& call, int rank, int size) {
  const Extents extents = extents_of(call, rank, size);
  const CachedBuffer kept = take(place_of_out(extents) + extents.out);
  std::shared_ptr<StagedCall> staged(new StagedCall);
  staged->staging_ = shared_from_this();
  staged->call_ = staged->on_device_ = call;
  staged->extents_ = extents;
  staged->buffer_ = kept.buffer;
  staged->back_ = kept.back;
  staged->ticket_ = ++tickets_;
  note_begin(kept.buffer->bytes());
  std::byte* in = kept.buffer->data();
  staged->call_.signature.memory = MemoryKind::kHost;
  staged->call_.signature.symmetric = 0;  // the arrays are symmetric, but peers do not reach the
                                          // copies
  staged->call_.in = call.in == nullptr ? nullptr : in;
  staged->call_.out = call.out == nullptr ? nullptr : in + place_of_out(extents);
  return staged;
}

void Staging::copy_in(const StagedCall& staged, cuda::Stream stream) {
  const cuda::Driver& driver = device_->driver();
  const Extents& extents = staged.extents_;
  const Call& call = staged.on_device_;
  std::byte* in = staged.buffer_->data();
  cuda::copy(driver, in, call.in, extents.in, stream);
  // Copies `out` to the host, too, so that data in gaps between its parts stays unchanged.
  if (call.out_parts.bytes != nullptr) {
    cuda::copy(driver, in + place_of_out(extents), call.out, extents.out, stream);
  }
  put_write(driver, words_, staged.ticket_, stream);
}

void Staging::copy_out(StagedCall& staged, cuda::Stream stream) {
  const Extents& extents = staged.extents_;
  const std::byte* out = staged.buffer_->data() + place_of_out(extents);
  cuda::copy(device_->driver(), staged.on_device_.out, out, extents.out, stream);
  staged.back_->record(stream);
}

void Staging::give(StagedCall& staged, cuda::Stream stream) {
  copy_in(staged, stream);
  staged.back_->record(stream);  // needed if the call ends before these copies
}

void Staging::wait_and_copy_back(StagedCall& staged, cuda::Stream stream) {
  staged.has_wait_ = true;
  put_wait(device_->driver(), words_, staged.ticket_, stream);
  copy_out(staged, stream);
}

void Staging::bring(StagedCall& staged, cuda::Stream stream) {
  staged.awaited_ = true;
  give(staged, stream);
}

void Staging::take_back(StagedCall& staged, cuda::Stream stream) { copy_out(staged, stream); }

// Makes the buffer, with space for all outgoing and incoming data.
std::shared_ptr<StagedExchange> Staging::lay_out(std::span<const Outgoing> outgoing,
                                                 std::span<const Incoming> incoming) {
  std::size_t bytes = kLine;
  for (const Outgoing& one : outgoing) bytes += round_up(one.in.bytes());
  for (const Incoming& one : incoming) bytes += round_up(one.out.bytes());
  const CachedBuffer kept = take(bytes);
  std::shared_ptr<StagedExchange> staged(new StagedExchange);
  staged->buffer_ = kept.buffer;
  staged->back_ = kept.back;
  word_of(*kept.buffer, kRelease).store(0);
  word_of(*kept.buffer, kHere).store(0);
  std::byte* at = kept.buffer->data() + kLine;
  for (const Outgoing& one : outgoing) {
    staged->outgoing_.push_back(at);
    at += round_up(one.in.bytes());
  }
  for (const Incoming& one : incoming) {
    staged->incoming_.push_back(at);
    at += round_up(one.out.bytes());
  }
  return staged;
}

std::shared_ptr<StagedExchange> Staging::give(std::span<const Outgoing> outgoing,
                                              std::span<const Incoming> incoming,
                                              cuda::Stream stream) {
  const cuda::Driver& driver = device_->driver();
  auto staged = lay_out(outgoing, incoming);
  if (!incoming.empty()) {
    staged->staging_ = shared_from_this();
    note_begin(staged->buffer_->bytes());
  }
  for (std::size_t i = 0; i < outgoing.size(); ++i) {
    cuda::copy(driver, staged->outgoing_[i], outgoing[i].in.data(), outgoing[i].in.bytes(), stream);
  }
  put_write(driver, *staged->buffer_, 1, stream);
  staged->back_->record(stream);
  return staged;
}

void Staging::wait_and_copy_back(const StagedExchange::ReceiveBuffers& received,
                                 std::span<const Incoming> incoming,
                                 cuda::Stream stream) {
  if (incoming.empty()) return;
  put_wait(device_->driver(), *received.buffer, 1, stream);
  copy_back(received, incoming, stream);
}

std::shared_ptr<StagedExchange> Staging::bring(std::span<const Incoming> incoming,
                                               cuda::Stream stream) {
  auto staged = lay_out({}, incoming);
  put_write(device_->driver(), *staged->buffer_, 1, stream);
  staged->back_->record(stream);
  return staged;
}

void Staging::take_back(StagedExchange& staged,
                        std::span<const Incoming> incoming,
                        cuda::Stream stream) {
  copy_back(staged.receive_buffers(), incoming, stream);
}

void Staging::copy_back(const StagedExchange::ReceiveBuffers& received,
                        std::span<const Incoming> incoming,
                        cuda::Stream stream) {
  for (std::size_t i = 0; i < incoming.size(); ++i) {
    const ArrayView& out = incoming[i].out;
    cuda::copy(device_->driver(), out.data(), received.places[i], out.bytes(), stream);
  }
  received.back->record(stream);
}

StagedExchange::~StagedExchange() {
  word_of(*buffer_, kRelease).store(1, std::memory_order_release);
  if (staging_) staging_->note_end(buffer_->bytes());
}

bool StagedExchange::is_here() const noexcept {
  return word_of(*buffer_, kHere).load(std::memory_order_acquire) != 0;
}

bool Staging::is_here(std::uint32_t ticket) const noexcept {
  const std::uint32_t come = word_of(words_, kHere).load(std::memory_order_acquire);
  return static_cast<std::int32_t>(come - ticket) >= 0;
}

void Staging::set(std::uint32_t ticket) noexcept {
  const std::atomic_ref word = word_of(words_, kRelease);
  // Calls end in their order; cancelled calls end in any order.
  std::uint32_t seen = word.load(std::memory_order_relaxed);
  while (static_cast<std::int32_t>(ticket - seen) > 0 &&
         !word.compare_exchange_weak(seen, ticket, std::memory_order_release)) {
  }
}

bool StagedCall::is_here() const noexcept { return staging_->is_here(ticket_); }

// A call that never began has no wait. It must not release the streams of earlier calls.
StagedCall::~StagedCall() {
  if (has_wait_) release();
  staging_->note_end(buffer_->bytes());
}

void StagedCall::release() noexcept { staging_->set(ticket_); }

Task StagedCall::carry(engine::CollectiveEngine& engine,
                       const Call& call,
                       std::function<void()> arrived) {
  struct Releases {
    StagedCall& call;
    ~Releases() { call.release(); }
  } const releases{*this};
  co_await engine::until([this] { return is_here(); });
  arrived();
  co_await engine.start(call);
}

}  // namespace hocket::device
