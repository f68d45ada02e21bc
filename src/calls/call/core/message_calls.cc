#include "calls/call/core/message_calls.h"

#include "calls/call/core.h"

namespace hocket::call {

using base::Deadline;
using engine::Task;

MessageCalls::MessageCalls(Core& core, int eager_polls)
    : core_(core), eager_polls_(eager_polls), ended_(core) {}

std::shared_ptr<Operation> MessageCalls::ended() { return {core_.shared_from_this(), &ended_}; }

Duration MessageCalls::allowed(std::optional<Duration> deadline) const noexcept {
  return deadline.value_or(core_.deadline());
}

void MessageCalls::run(Task task,
                       const failure::MessageCall& call,
                       std::optional<Duration> deadline) {
  if (core_.runner().busy()) {
    core_.pending.finish(*start(std::move(task), call, deadline));
    return;
  }
  CallProgress progress{.task = std::move(task),
                        .message = nullptr,
                        .awaited = {.peer = call.envelope.peer, .message = &call},
                        .allowed = allowed(deadline),
                        .deadline = {},
                        .runs_program = false,
                        .doubt = {},
                        .shown = {}};
  core_.runner().drive({&progress, 1});
}

namespace {

CallProgress progress_of(MessageInFlight& message, Duration allowed) {
  return {.task = {},
          .message = &message,
          .awaited = {.peer = message.call.envelope.peer, .message = &message.call},
          .allowed = allowed,
          .deadline = {},
          .doubt = {},
          .shown = {}};
}

}  // namespace

void MessageCalls::run(MessageInFlight& message, std::optional<Duration> deadline) {
  if (core_.runner().busy()) return run_behind_others({&message, 1}, deadline);
  CallProgress call = progress_of(message, allowed(deadline));
  trace_during(message, [&] { core_.runner().drive({&call, 1}); });
}

void MessageCalls::run(std::span<MessageInFlight> messages, std::optional<Duration> deadline) {
  if (core_.runner().busy()) return run_behind_others(messages, deadline);
  std::vector<CallProgress> calls;
  calls.reserve(messages.size());
  for (MessageInFlight& message : messages)
    calls.push_back(progress_of(message, allowed(deadline)));
  struct Together {
    std::span<MessageInFlight> messages;
    void end(bool failed) noexcept {
      for (MessageInFlight& message : messages) message.end(failed);
    }
  } all{messages};
  trace_during(all, [&] { core_.runner().drive(calls); });
}

void MessageCalls::run_behind_others(std::span<MessageInFlight> messages,
                                     std::optional<Duration> deadline) {
  std::vector<std::shared_ptr<PendingMessage>> operations;
  operations.reserve(messages.size());
  for (MessageInFlight& message : messages) {
    operations.push_back(start(std::move(message), deadline));
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    core_.pending.finish(*operations[i]);
    messages[i].sender = operations[i]->message.sender;
  }
}

std::optional<engine::Envelope> MessageCalls::find(const failure::MessageCall& call) {
  const int peer = call.envelope.peer;
  const auto look = [&] {
    core_.messages().progress();
    return core_.messages().waiting(call.envelope);
  };
  auto found = look();
  if (!found) {
    const auto verdict = core_.inquiry().look({.peer = peer, .message = &call}, probing_[peer]);
    if (const auto* failure = std::get_if<control::Failure>(&verdict)) {
      found = look();  // the message may have come before the news of a loss
      if (!found) core_.failures.raise(*failure);
    } else if (auto returned = core_.inquiry().find_returned({.peer = peer, .message = &call})) {
      found = look();
      if (!found) core_.failures.raise(*returned);
    }
  }
  if (found) probing_.erase(peer);
  return found;
}

std::shared_ptr<PendingMessage> MessageCalls::start(Task task,
                                                    const failure::MessageCall& call,
                                                    std::optional<Duration> deadline) {
  const auto operation = make({.call = call, .owned = {}, .traced = {}, .sender = {}}, deadline);
  operation->call.task = std::move(task);
  return add(operation);
}

std::shared_ptr<PendingMessage> MessageCalls::start(MessageInFlight&& message,
                                                    std::optional<Duration> deadline) {
  const auto operation = make(std::move(message), deadline);
  operation->call.message = &operation->message;
  return add(operation);
}

std::shared_ptr<PendingMessage> MessageCalls::make(MessageInFlight&& message,
                                                   std::optional<Duration> deadline) {
  const Duration limit = allowed(deadline);
  return make_operation<PendingMessage>(
      core_.shared_from_this(), Deadline::in_about(limit), limit, std::move(message));
}

std::shared_ptr<PendingMessage> MessageCalls::add(std::shared_ptr<PendingMessage> operation) {
  core_.runner().add(operation);
  core_.pending.watch(*operation);
  return operation;
}

}  // namespace hocket::call
