#include "calls/device/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>

#include "calls/call/messages.h"
#include "calls/call/operation.h"
#include "calls/call/waiter.h"

namespace hocket::device {

using base::Deadline;
using engine::DeviceMessage;

namespace {

constexpr std::string_view kByHost = "host";  // stands in metrics in place of an engine's name

// Groups messages into rounds, because an engine takes at most one message to and one from each
// rank at a time. Round k has the k-th message in each direction with each rank.
class Rounds {
 public:
  void add(DeviceMessage::Way way, int peer, void* data, std::size_t bytes) {
    if (bytes == 0) return;  // the other end skips it, too
    peers_ |= DeviceWatch::peer_bit(peer);
    const std::size_t round = seen_[{way, peer}]++;
    if (round >= rounds_.size()) rounds_.emplace_back();
    rounds_[round].push_back({way, peer, data, bytes});
  }
  const std::vector<std::vector<DeviceMessage>>& get() const noexcept { return rounds_; }
  std::uint64_t peers() const noexcept { return peers_; }

 private:
  std::map<std::pair<DeviceMessage::Way, int>, std::size_t> seen_;
  std::vector<std::vector<DeviceMessage>> rounds_;
  std::uint64_t peers_ = 0;
};

// Returns the messages for an engine. An array that is also received into is sent from a copy.
Rounds rounds_of(std::span<const Outgoing> outgoing,
                 std::span<const Incoming> incoming,
                 std::span<const Incoming> all_incoming,
                 const cuda::DeviceContext& device,
                 cuda::Stream stream,
                 std::deque<cuda::ScratchMemory>& copies) {
  Rounds rounds;
  for (const Outgoing& one : outgoing) {
    void* data = const_cast<void*>(one.in.data());
    if (call::is_received_into(one.in, all_incoming)) {
      data = copies.emplace_back(device, one.in.bytes(), stream).data();
      cuda::copy(device.driver(), data, one.in.data(), one.in.bytes(), stream);
    }
    rounds.add(DeviceMessage::Way::kSend, one.destination, data, one.in.bytes());
  }
  for (const Incoming& one : incoming) {
    rounds.add(DeviceMessage::Way::kReceive, one.source, one.out.data(), one.out.bytes());
  }
  return rounds;
}

}  // namespace

std::shared_ptr<call::Operation> DeviceMessages::start_exchange(std::span<const Outgoing> outgoing,
                                                                std::span<const Incoming> incoming,
                                                                const MessageOptions& options) {
  std::vector<Incoming> from(incoming.begin(), incoming.end());
  return launcher_.with_work({}, put_messages(outgoing, from, options, false), nullptr);
}

int DeviceMessages::exchange(std::span<const Outgoing> outgoing,
                             std::span<const Incoming> incoming,
                             const MessageOptions& options) {
  std::vector<Incoming> from(incoming.begin(), incoming.end());
  put_messages(outgoing, from, options, true);
  return from.empty() ? -1 : from.front().source;
}

// Matches the two ends of each message on the host. This determines the senders of messages from
// any rank.
std::vector<Incoming> DeviceMessages::tell_of_messages(std::span<const Outgoing> outgoing,
                                                       std::span<const Incoming> incoming,
                                                       const Launch& how) {
  for (const Outgoing& one : outgoing) envelopes_.announce(one);
  std::vector<Incoming> from(incoming.begin(), incoming.end());
  for (Incoming& one : from) {
    if (one.source != kAnySource) {
      envelopes_.expect(one);
    } else {
      one.source = envelopes_.await_any(one, how.allowed);
    }
  }
  return from;
}

void DeviceMessages::check(std::span<const Outgoing> outgoing,
                           std::span<const Incoming> incoming,
                           int tag) {
  if (tag != 0) {
    throw InvalidArgument(
        fmt::format("tag is {}; messages between GPUs meet by their order, and have tag 0", tag));
  }
  for (const Outgoing& one : outgoing) session_.require_device({.in = one.in});
  for (const Incoming& one : incoming) session_.require_device({.out = one.out});
  const call::LentTurn lent(owner_);
  for (const Outgoing& one : outgoing) session_.check_device(one.in, "in");
  for (const Incoming& one : incoming) session_.check_device(one.out, "out");
}

DeviceMessages::Routes DeviceMessages::routes_of(std::span<const Outgoing> outgoing,
                                                 std::span<const Incoming> incoming) {
  const bool host_only = session_.messenger() == nullptr;
  Routes routes;
  for (const Outgoing& one : outgoing) {
    const auto before =
        std::ranges::count(routes.out_by_host, one.destination, &Outgoing::destination);
    const bool by_host = host_only || session_.relay().owed_to(one.destination) > before;
    (by_host && one.in.bytes() > 0 ? routes.out_by_host : routes.out).push_back(one);
  }
  for (const Incoming& one : incoming) {
    const auto before = std::ranges::count(routes.in_by_host, one.source, &Incoming::source);
    const bool by_host = host_only || session_.relay().owed_by(one.source) > before;
    (by_host && one.out.bytes() > 0 ? routes.in_by_host : routes.in).push_back(one);
  }
  return routes;
}

void DeviceMessages::require_capturable(const Routes& routes) {
  const engine::DeviceEngine* const messenger = session_.messenger();
  if (routes.use_host()) {
    throw InvalidArgument(
        messenger != nullptr ? "a message cannot be captured into a graph whose other end went by "
                               "the host, before a "
                               "collective call on GPUs had made the GPUs know each other"
        : session_.has_engines()
            ? "messages cannot be captured into a graph: no engine of GPUs carries them, so the "
              "host has to"
            : "messages cannot be captured into a graph before a collective call on GPUs, such as "
              "a barrier on a stream, has made the GPUs know each other");
  }
  if (messenger != nullptr && messenger->returns_when_done()) {
    throw InvalidArgument(fmt::format(
        "messages that the engine {} carries cannot be captured into a graph", messenger->name()));
  }
}

DeviceMessages::Launch DeviceMessages::put_messages(std::span<const Outgoing> outgoing,
                                                    std::vector<Incoming>& incoming,
                                                    const MessageOptions& options,
                                                    bool waits) {
  check(outgoing, incoming, options.tag);
  const cuda::DeviceGuard guard(*session_.gpu());
  const Launch how = launcher_.open({.deadline = options.deadline, .stream = options.stream});
  engine::DeviceEngine* const messenger = session_.messenger();
  const bool in_place = waits && launcher_.stays_in_call(how) && messenger == nullptr;
  if (session_.has_engines() && !in_place && !incoming.empty()) launcher_.require_own_stream(how);
  const auto is_open = [](const Incoming& one) { return one.source == kAnySource; };
  const bool asks = std::ranges::any_of(incoming, is_open);
  if (asks && how.captured) {
    throw InvalidArgument("source is any rank, which no graph can ask for; name it");
  }
  if (asks) incoming = tell_of_messages(outgoing, incoming, how);
  Routes routes = routes_of(outgoing, incoming);
  routes.in_place = in_place;
  if (how.captured) require_capturable(routes);
  if (!asks) tell_of_messages(outgoing, incoming, how);
  std::optional<cuda::OutsideCapture> outside;  // keeps allocations out of other threads' captures
  if (routes.use_host() || !session_.has_streams()) outside.emplace(session_.gpu()->driver());
  const call::Tracing& tracing = owner_.tracing();
  call::CountedTogether traced, timed;
  tracing.messages(traced, LiveTimed::kLaunch, routes.out_by_host, routes.in_by_host, kByHost);
  if (messenger != nullptr) {
    tracing.messages(traced, LiveTimed::kLaunch, routes.out, routes.in, messenger->name());
    tracing.messages(timed, LiveTimed::kOnStream, routes.out, routes.in, messenger->name());
  }
  try {
    call::trace_during(traced, [&] { put_on_routes(routes, incoming, how, std::move(timed)); });
  } catch (const DeviceError& error) {
    session_.raise(error);
  }
  if (session_.has_engines() && session_.watch().was_asleep()) job_.look_again();
  return how;
}

void DeviceMessages::put_on_routes(const Routes& routes,
                                   std::span<const Incoming> all_incoming,
                                   const Launch& how,
                                   call::CountedTogether timed) {
  const auto& [out_by_host, out, in_by_host, in, in_place] = routes;
  session_.require_streams();
  if (!in_by_host.empty() && !in_place) launcher_.make_room();
  std::deque<cuda::ScratchMemory> copies;
  std::optional<Rounds> rounds;
  std::shared_ptr<StagedExchange> staged;
  {
    const call::LentTurn lent(owner_);
    if (!how.captured) session_.streams().order.follow(how.stream);
    rounds = rounds_of(out, in, all_incoming, *session_.gpu(), how.stream, copies);
    const auto coming = in_place ? std::span<const Incoming>() : in_by_host;
    if (routes.use_host()) {
      staged = session_.streams().staging->give(out_by_host, coming, how.stream);
    }
  }
  if (in_place) {
    session_.relay().exchange(staged, out_by_host, {}, how.allowed);
    receive_in_place(in_by_host, how);
  } else if (staged) {
    const StagedExchange::ReceiveBuffers received = staged->receive_buffers();
    session_.relay().exchange(std::exchange(staged, nullptr), out_by_host, in_by_host, how.allowed);
    const call::LentTurn lent(owner_);
    session_.streams().staging->wait_and_copy_back(received, in_by_host, how.stream);
  }
  enqueue_messages(rounds->get(), rounds->peers(), how, std::move(timed));
  const call::LentTurn lent(owner_);
  copies.clear();
  if (!how.captured) session_.streams().order.leave_mark(how.stream);
}

// Receives messages and waits for them here, so that no stream waits; see stays_in_call.
void DeviceMessages::receive_in_place(std::span<const Incoming> incoming, const Launch& how) {
  if (incoming.empty()) return;
  std::shared_ptr<StagedExchange> staged;
  {
    const call::LentTurn lent(owner_);
    staged = session_.streams().staging->bring(incoming, how.stream);
  }
  session_.relay().exchange(staged, {}, incoming, how.allowed);
  owner_.runner().advance_until([&] { return staged.use_count() == 1; });
  owner_.require_usable();
  const call::LentTurn lent(owner_);
  session_.streams().staging->take_back(*staged, incoming, how.stream);
}

void DeviceMessages::enqueue_messages(const std::vector<std::vector<DeviceMessage>>& rounds,
                                      std::uint64_t peers,
                                      const Launch& how,
                                      call::CountedTogether timed) {
  if (rounds.empty()) return;
  engine::DeviceEngine& messenger = *session_.messenger();
  const bool marks = !messenger.keeps_time(how.allowed, 0) && !how.captured;
  if (marks) launcher_.keep_pace(owner_.ledger().last() + 1, how);
  std::optional<call::LentTurn> lent;  // as in DeviceCollectives::put_on_stream
  if (messenger.returns_when_done()) {
    session_.finish_queue();
    session_.finish_relayed();
  } else {
    lent.emplace(owner_);
  }
  if (marks) session_.watch().mark_begin(how.stream, {.peers = peers, .allowed = how.allowed});
  if (messenger.returns_when_done() && session_.watch().was_asleep()) job_.look_again();
  const auto put = [&] {
    for (const auto& round : rounds) messenger.exchange(round, how.stream);
  };
  if (launcher_.is_timed(messenger, how)) {
    session_.streams().times->take(how.stream, std::move(timed), put);
  } else {
    put();
  }
  if (marks) session_.watch().mark_end(how.stream);
  if (how.captured) session_.watch().note_captured(messenger);
}

// Waits for the envelopes that are still on their way from the other ends of messages.
void DeviceMessages::finish() noexcept {
  if (!session_.has_streams()) return;
  owner_.runner().advance_until([this] { return envelopes_.is_idle(); },
                                Deadline::in(owner_.deadline()));
}

}  // namespace hocket::device
