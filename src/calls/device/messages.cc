// Messages between two ranks' GPUs. They are matched only by their order, because streams cannot
// read tags. They use the host until a collective call has connected the GPUs.
#include "calls/call/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>

#include "calls/call/operation.h"
#include "calls/call/waiter.h"
#include "calls/device/calls.h"

namespace hocket::device {

using base::Deadline;
using engine::DeviceMessage;

namespace {

constexpr std::string_view kByHost = "host";  // stands in metrics in place of an engine's name

// Engines take one message to and one from each rank at a time: first all first ones, then all
// second ones.
class Rounds {
 public:
  void add(DeviceMessage::Way way, int peer, void* data, std::size_t bytes) {
    if (bytes == 0) return;  // the other side does the same
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

std::shared_ptr<call::Operation> DeviceCalls::start_exchange(std::span<const Outgoing> outgoing,
                                                             std::span<const Incoming> incoming,
                                                             const MessageOptions& options) {
  std::vector<Incoming> from(incoming.begin(), incoming.end());
  return with_work({}, put_messages(outgoing, from, options, false), nullptr);
}

int DeviceCalls::exchange(std::span<const Outgoing> outgoing,
                          std::span<const Incoming> incoming,
                          const MessageOptions& options) {
  std::vector<Incoming> from(incoming.begin(), incoming.end());
  put_messages(outgoing, from, options, true);
  return from.empty() ? -1 : from.front().source;
}

// Matches the two ends of each message on the host. This determines the senders of messages from
// any rank.
std::vector<Incoming> DeviceCalls::tell_of_messages(std::span<const Outgoing> outgoing,
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

DeviceCalls::Launch DeviceCalls::put_messages(std::span<const Outgoing> outgoing,
                                              std::vector<Incoming>& incoming,
                                              const MessageOptions& options,
                                              bool waits) {
  if (options.tag != 0) {
    throw InvalidArgument(fmt::format(
        "tag is {}; messages between GPUs meet by their order, and have tag 0", options.tag));
  }
  for (const Outgoing& one : outgoing) require_device({.in = one.in});
  for (const Incoming& one : incoming) require_device({.out = one.out});
  {
    const call::LentTurn lent(owner_);
    for (const Outgoing& one : outgoing) check_device(one.in, "in");
    for (const Incoming& one : incoming) check_device(one.out, "out");
  }
  const cuda::DeviceGuard guard(*device_);
  const Launch how = open({.deadline = options.deadline, .stream = options.stream});
  const bool in_place = waits && stays_in_call(how) && messenger_ == nullptr;
  if (engines_ && !in_place && !incoming.empty()) require_own_stream(how);
  const auto is_open = [](const Incoming& one) { return one.source == kAnySource; };
  const bool asks = std::ranges::any_of(incoming, is_open);
  if (asks && how.captured) {
    throw InvalidArgument("source is any rank, which no graph can ask for; name it");
  }
  if (asks) incoming = tell_of_messages(outgoing, incoming, how);
  std::vector<Outgoing> out_by_host, out;
  std::vector<Incoming> in_by_host, in;
  for (const Outgoing& one : outgoing) {
    const auto before = std::ranges::count(out_by_host, one.destination, &Outgoing::destination);
    const bool by_host = messenger_ == nullptr || relay_.owed_to(one.destination) > before;
    (by_host && one.in.bytes() > 0 ? out_by_host : out).push_back(one);
  }
  for (const Incoming& one : incoming) {
    const auto before = std::ranges::count(in_by_host, one.source, &Incoming::source);
    const bool by_host = messenger_ == nullptr || relay_.owed_by(one.source) > before;
    (by_host && one.out.bytes() > 0 ? in_by_host : in).push_back(one);
  }
  const bool any_by_host = !out_by_host.empty() || !in_by_host.empty();
  if (any_by_host && how.captured) {
    throw InvalidArgument(
        messenger_ != nullptr ? "a message cannot be captured into a graph whose other end went by "
                                "the host, before a "
                                "collective call on GPUs had made the GPUs know each other"
        : engines_ != nullptr
            ? "messages cannot be captured into a graph: no engine of GPUs carries them, so the "
              "host has to"
            : "messages cannot be captured into a graph before a collective call on GPUs, such as "
              "a barrier on a stream, has made the GPUs know each other");
  }
  if (how.captured && messenger_ != nullptr && messenger_->returns_when_done()) {
    throw InvalidArgument(fmt::format(
        "messages that the engine {} carries cannot be captured into a graph", messenger_->name()));
  }
  if (!asks) tell_of_messages(outgoing, incoming, how);
  std::optional<cuda::OutsideCapture> outside;  // of other threads
  if (any_by_host || !staging_) outside.emplace(device_->driver());
  const call::Tracing& tracing = owner_.tracing();
  call::CountedTogether traced, timed;
  tracing.messages(traced, LiveTimed::kLaunch, out_by_host, in_by_host, kByHost);
  if (messenger_ != nullptr) {
    tracing.messages(traced, LiveTimed::kLaunch, out, in, messenger_->name());
    tracing.messages(timed, LiveTimed::kOnStream, out, in, messenger_->name());
  }
  try {
    call::trace_during(traced, [&] {
      require_streams();
      if (!in_by_host.empty() && !in_place) make_room();
      std::deque<cuda::ScratchMemory> copies;
      std::optional<Rounds> rounds;
      std::shared_ptr<StagedExchange> staged;
      {
        const call::LentTurn lent(owner_);
        if (!how.captured) order_->follow(how.stream);
        rounds = rounds_of(out, in, incoming, *device_, how.stream, copies);
        const auto coming = in_place ? std::span<const Incoming>() : in_by_host;
        if (any_by_host) staged = staging_->give(out_by_host, coming, how.stream);
      }
      if (in_place) {
        relay_.exchange(staged, out_by_host, {}, how.allowed);
        receive_in_place(in_by_host, how);
      } else if (staged) {
        const StagedExchange::Landing landing = staged->landing();
        relay_.exchange(std::exchange(staged, nullptr), out_by_host, in_by_host, how.allowed);
        const call::LentTurn lent(owner_);
        staging_->land(landing, in_by_host, how.stream);
      }
      enqueue_messages(rounds->get(), rounds->peers(), how, std::move(timed));
      const call::LentTurn lent(owner_);
      copies.clear();
      if (!how.captured) order_->leave_mark(how.stream);
    });
  } catch (const DeviceError& error) {
    raise(error);
  }
  if (watch_ && watch_->was_asleep()) job_.look_again();
  return how;
}

// See stays_in_call: no stream waits for these messages, only this call.
void DeviceCalls::receive_in_place(std::span<const Incoming> incoming, const Launch& how) {
  if (incoming.empty()) return;
  std::shared_ptr<StagedExchange> staged;
  {
    const call::LentTurn lent(owner_);
    staged = staging_->bring(incoming, how.stream);
  }
  relay_.exchange(staged, {}, incoming, how.allowed);
  owner_.runner().advance_until([&] { return staged.use_count() == 1; });
  owner_.require_usable();
  const call::LentTurn lent(owner_);
  staging_->take_back(*staged, incoming, how.stream);
}

void DeviceCalls::enqueue_messages(const std::vector<std::vector<DeviceMessage>>& rounds,
                                   std::uint64_t peers,
                                   const Launch& how,
                                   call::CountedTogether timed) {
  if (rounds.empty()) return;
  const bool marks = !messenger_->keeps_time(how.allowed, 0) && !how.captured;
  if (marks) keep_pace(owner_.ledger().last() + 1, how);
  std::optional<call::LentTurn> lent;  // as in `launch`
  if (messenger_->returns_when_done()) {
    finish_queue();
    finish_relayed();
  } else {
    lent.emplace(owner_);
  }
  if (marks) watch_->mark_begin(how.stream, {.peers = peers, .allowed = how.allowed});
  if (messenger_->returns_when_done() && watch_->was_asleep()) job_.look_again();
  const auto put = [&] {
    for (const auto& round : rounds) messenger_->exchange(round, how.stream);
  };
  if (is_timed(*messenger_, how)) {
    times_->take(how.stream, std::move(timed), put);
  } else {
    put();
  }
  if (marks) watch_->mark_end(how.stream);
  if (how.captured) watch_->note_captured(*messenger_);
}

// Must be called before waiting for a stream, or for all work of the GPU as the driver does when
// memory is freed. A stream may wait for messages or calls (see finish_queue) that this thread has
// to move.
void DeviceCalls::finish_relayed() {
  owner_.runner().advance_until([this] { return !relay_.holds_streams(); });
  owner_.require_usable();
}

// Exchanges the number of messages that used the host, so that both ends of each message use the
// same way.
void DeviceCalls::settle_relay(const engine::Signature& shown) {
  const std::vector<DeviceRelay::Tally>& own = relay_.tallies();
  std::vector<DeviceRelay::Tally> theirs(own.size());
  const auto view = [](auto& tallies) {
    const auto bytes = std::as_bytes(std::span(tallies));
    return ConstArrayView(bytes.data(), bytes.size() / sizeof(std::uint32_t), DType::kUInt32);
  };
  call::CallStorage storage;
  call::Plan plan =
      owner_.planner().plan({.kind = engine::Kind::kAllToAll,
                             .in = view(own),
                             .out = {theirs.data(), 2 * theirs.size(), DType::kUInt32}},
                            storage,
                            &shown);
  owner_.execute(plan, shown, std::nullopt, nullptr);
  relay_.settle(theirs);
}

void DeviceCalls::on_host(ConstArrayView in,
                          ArrayView out,
                          const std::optional<StreamRef>& stream,
                          const std::function<void(ConstArrayView, ArrayView)>& call) {
  if (in.memory() != out.memory() && in.count() != 0 && out.count() != 0) {
    throw InvalidArgument("in and out lie in different kinds of memory");
  }
  require_device({.in = in, .out = out, .stream = stream});
  check_device(in, "in");
  check_device(out, "out");
  const cuda::DeviceGuard guard(*device_);
  const Launch how = open({.stream = stream});
  if (how.captured) throw InvalidArgument("the host carries this call, which no graph captures");
  const cuda::OutsideCapture outside(device_->driver());
  const cuda::Driver& driver = device_->driver();
  const cuda::HostBuffer host_in(device_, std::max<std::size_t>(in.bytes(), 1));
  const cuda::HostBuffer host_out(device_, std::max<std::size_t>(out.bytes(), 1));
  cuda::copy(driver, host_in.data(), in.data(), in.bytes(), how.stream);
  cuda::check(driver, driver.stream_synchronize(how.stream), "wait for a stream");
  call({host_in.data(), in.count(), in.dtype()}, {host_out.data(), out.count(), out.dtype()});
  cuda::copy(driver, out.data(), host_out.data(), out.bytes(), how.stream);
  cuda::check(driver, driver.stream_synchronize(how.stream), "wait for a stream");
}

}  // namespace hocket::device
