// The messages of one rank in a group.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>

#include "calls/call/messages.h"
#include "calls/call/operation.h"
#include "engine/task.h"
#include "membership/failure/inquiry.h"

namespace hocket::call {

class Core;

// A part of a communicator's Core. The caller has the turn.
class MessageCalls {
 public:
  MessageCalls(Core& core, int eager_polls);
  MessageCalls(const MessageCalls&) = delete;
  MessageCalls& operator=(const MessageCalls&) = delete;

  void run(MessageInFlight& message, std::optional<Duration> deadline);
  void run(std::span<MessageInFlight> messages, std::optional<Duration> deadline);
  std::shared_ptr<PendingMessage> start(MessageInFlight&& message,
                                        std::optional<Duration> deadline);
  // Run or start a task that is no plain message: a probe, or messages on GPUs.
  void run(engine::Task task, const failure::MessageCall& call, std::optional<Duration> deadline);
  std::shared_ptr<PendingMessage> start(engine::Task task,
                                        const failure::MessageCall& call,
                                        std::optional<Duration> deadline);
  // Finds a message that has arrived and that no receive has taken. Returns nothing if there is
  // none yet, while its sender still lives.
  std::optional<engine::Envelope> find(const failure::MessageCall& call);
  // Returns the operation for the Work of a message that has already ended.
  std::shared_ptr<Operation> ended();
  // Number of cheap looks for a message before more expensive checks.
  int eager_polls() const noexcept { return eager_polls_; }

 private:
  void run_behind_others(std::span<MessageInFlight> messages, std::optional<Duration> deadline);
  std::shared_ptr<PendingMessage> make(MessageInFlight&& message, std::optional<Duration> deadline);
  std::shared_ptr<PendingMessage> add(std::shared_ptr<PendingMessage> operation);
  Duration allowed(std::optional<Duration> deadline) const noexcept;

  Core& core_;
  const int eager_polls_;
  Operation ended_;
  std::map<int, failure::Doubt> probing_;  // the state of repeated probes, by peer
};

}  // namespace hocket::call
