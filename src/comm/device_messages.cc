// Messages between two ranks' GPUs. They need the GPUs to have been introduced by a collective, and
// meet by their order alone: streams cannot look at tags.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>

#include "comm/device_calls.h"
#include "comm/messages.h"
#include "comm/operation.h"
#include "comm/world.h"

namespace hocket::comm {

using base::Deadline;
using engine::DeviceMessage;

namespace {

// Engines take one message to, and one from, each rank at a time: the first ones, the second ones.
class Rounds {
 public:
  void add(DeviceMessage::Way way, int peer, void* data, std::size_t bytes) {
    if (bytes == 0) return;  // nor does the other side
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

}  // namespace

std::shared_ptr<Operation> DeviceCalls::start_exchange(std::span<const Outgoing> outgoing,
                                                       std::span<const Incoming> incoming,
                                                       const MessageOptions& options) {
  return with_work({}, put_messages(outgoing, incoming, options), nullptr);
}

DeviceCalls::Launch DeviceCalls::put_messages(std::span<const Outgoing> outgoing,
                                              std::span<const Incoming> incoming,
                                              const MessageOptions& options) {
  if (messenger_ == nullptr) {
    const std::string& name = owner_.membership().name;
    throw InvalidArgument(
        engines_ != nullptr
            ? fmt::format("no engine of communicator {} carries messages between GPUs; copy them "
                          "to the host",
                          name)
            : fmt::format("the GPUs of communicator {} do not know each other so far; make a "
                          "collective call on GPUs first, such as a barrier on a stream",
                          name));
  }
  if (options.tag != 0) {
    throw InvalidArgument(fmt::format(
        "tag is {}; messages between GPUs meet by their order, and have tag 0", options.tag));
  }
  for (const Outgoing& one : outgoing) check_device(one.in, "in");
  for (const Incoming& one : incoming) check_device(one.out, "out");
  const cuda::DeviceGuard guard(*device_);
  const Launch how = open({.deadline = options.deadline, .stream = options.stream});
  const cuda::Driver& driver = device_->driver();
  std::deque<cuda::ScratchMemory> copies;
  try {
    if (!how.captured) order_->follow(how.stream);
    Rounds rounds;
    for (const Outgoing& one : outgoing) {
      void* data = const_cast<void*>(one.in.data());
      // What is received into is sent from a copy.
      if (is_received_into(one.in, incoming)) {
        data = copies.emplace_back(*device_, one.in.bytes(), how.stream).data();
        cuda::copy(driver, data, one.in.data(), one.in.bytes(), how.stream);
      }
      rounds.add(DeviceMessage::Way::kSend, one.destination, data, one.in.bytes());
    }
    for (const Incoming& one : incoming) {
      rounds.add(DeviceMessage::Way::kReceive, one.source, one.out.data(), one.out.bytes());
    }
    const bool marks =
        !messenger_->keeps_time(how.allowed) && !how.captured && !rounds.get().empty();
    if (marks) {
      watch_->mark_begin(how.stream, {.peers = rounds.peers(), .allowed = how.allowed});
    }
    for (const auto& round : rounds.get()) messenger_->exchange(round, how.stream);
    if (marks) watch_->mark_end(how.stream);
    if (!how.captured) order_->leave_mark(how.stream);
  } catch (const DeviceError& error) {
    owner_.raise({.code = ErrorCode::kDevice,
                  .reporter = owner_.rank(),
                  .culprit = owner_.rank(),
                  .text = error.what()});
  }
  if (watch_->was_asleep()) owner_.world()->look_again();
  return how;
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
  const cuda::Driver& driver = device_->driver();
  const cuda::HostBuffer host_in(device_, std::max<std::size_t>(in.bytes(), 1));
  const cuda::HostBuffer host_out(device_, std::max<std::size_t>(out.bytes(), 1));
  cuda::copy(driver, host_in.data(), in.data(), in.bytes(), how.stream);
  cuda::check(driver, driver.stream_synchronize(how.stream), "wait for a stream");
  call({host_in.data(), in.count(), in.dtype()}, {host_out.data(), out.count(), out.dtype()});
  cuda::copy(driver, out.data(), host_out.data(), out.bytes(), how.stream);
  cuda::check(driver, driver.stream_synchronize(how.stream), "wait for a stream");
}

}  // namespace hocket::comm
