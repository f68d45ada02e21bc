// The first cut once more, for arrays in a GPU's memory: work is put on a stream, and goes on there
// by itself.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "cuda/abi.h"
#include "engine/call.h"
#include "engine/engine.h"

namespace hocket::engine {

// One message of a group that is put on a stream at once. A value.
struct DeviceMessage {
  enum class Way : std::uint8_t { kSend, kReceive };
  Way way = Way::kSend;
  int peer = 0;
  void* data = nullptr;
  std::size_t bytes = 0;
};

// What an engine needs of the others, once, when it is first wanted. `gather` is collective: it
// tells every rank these bytes and returns all ranks' bytes, by rank, by a way that only ranks of
// the job can write to. A value; its views last as long as the call.
struct Introduction {
  std::function<std::vector<std::byte>(std::span<const std::byte>)> gather;
  base::Deadline deadline;
};

// A resource, one a rank and group, used by one thread at a time but for `problem` and `abort`. The
// device's context is current in every call. Nothing waits for the device, but `connect`. Failures
// are DeviceErrors.
class DeviceEngine {
 public:
  virtual ~DeviceEngine() = default;
  virtual std::string_view name() const noexcept = 0;

  // As CollectiveEngine::score; signature.memory is kCuda.
  virtual std::optional<Score> score(const Signature& signature) const noexcept = 0;

  // Before the first call that it carries: on all ranks, in the same call.
  virtual void connect(const Introduction& introduction) = 0;

  // Puts the call on the stream. Calls of a group follow each other in one order on all ranks, also
  // on the device: whoever changes streams orders them.
  virtual void enqueue(const Call& call, cuda::Stream stream) = 0;

  // Whether it carries messages; then `exchange` puts them on the stream, to progress together.
  virtual bool has_messages() const noexcept { return false; }
  virtual void exchange(std::span<const DeviceMessage> messages, cuda::Stream stream) {
    static_cast<void>(messages);
    static_cast<void>(stream);
  }

  // What has gone wrong by itself since; absent: nothing. Cheap; asked now and then by any thread.
  virtual std::optional<std::string> problem() noexcept { return std::nullopt; }

  // Ends what is under way on the device, soon, and without anybody's cooperation. Any thread.
  virtual void abort() noexcept = 0;
};

}  // namespace hocket::engine
