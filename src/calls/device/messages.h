// Messages between two ranks' GPUs. They are matched only by their order, because streams cannot
// read tags. They use the host until a collective call has connected the GPUs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "calls/device/envelopes.h"
#include "calls/device/launcher.h"
#include "calls/device/session.h"
#include "engine/device_engine.h"
#include "hocket/communicator.h"

namespace hocket::device {

// A part of a session. The session and the launcher outlive it. The communicator's turn guards it.
class DeviceMessages {
 public:
  DeviceMessages(DeviceSession& session, DeviceLauncher& launcher)
      : session_(session),
        launcher_(launcher),
        owner_(session.owner()),
        job_(session.job()),
        envelopes_(session.owner()) {}

  // Enqueues messages on the stream; they make progress together. If a source is any rank, waits on
  // the host for the first sender. Returns the source of the first of `incoming`; -1 if it is
  // empty.
  int exchange(std::span<const Outgoing> outgoing,
               std::span<const Incoming> incoming,
               const MessageOptions& options);
  std::shared_ptr<call::Operation> start_exchange(std::span<const Outgoing> outgoing,
                                                  std::span<const Incoming> incoming,
                                                  const MessageOptions& options);
  // Waits until all envelopes have arrived and have been compared, at most until the communicator's
  // deadline. Called when no more calls are made. The caller has the turn.
  void finish() noexcept;

 private:
  using Launch = DeviceLauncher::Launch;

  // The messages of a call, by their route: through the host, or by the engine. A value.
  struct Routes {
    std::vector<Outgoing> out_by_host, out;  // `out` and `in`: by the engine
    std::vector<Incoming> in_by_host, in;
    bool in_place = false;  // the call waits for the host's messages itself, and no stream does
    bool use_host() const noexcept { return !out_by_host.empty() || !in_by_host.empty(); }
  };

  void check(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming, int tag);
  Routes routes_of(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming);
  // Throws if a graph cannot capture the messages.
  void require_capturable(const Routes& routes);
  std::vector<Incoming> tell_of_messages(std::span<const Outgoing> outgoing,
                                         std::span<const Incoming> incoming,
                                         const Launch& how);
  // `waits`: the program's call blocks, so this may wait until the messages have ended.
  Launch put_messages(std::span<const Outgoing> outgoing,
                      std::vector<Incoming>& incoming,
                      const MessageOptions& options,
                      bool waits);
  // `all_incoming` has the messages of both routes, because an array that is sent on one route may
  // be received into on the other.
  void put_on_routes(const Routes& routes,
                     std::span<const Incoming> all_incoming,
                     const Launch& how,
                     call::CountedTogether timed);
  void receive_in_place(std::span<const Incoming> incoming, const Launch& how);
  void enqueue_messages(const std::vector<std::vector<engine::DeviceMessage>>& rounds,
                        std::uint64_t peers,
                        const Launch& how,
                        call::CountedTogether timed);

  DeviceSession& session_;
  DeviceLauncher& launcher_;
  call::Core& owner_;
  DeviceJobContext& job_;
  DeviceEnvelopes envelopes_;
};

}  // namespace hocket::device
