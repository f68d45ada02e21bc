// Messages between two ranks' GPUs. They need the GPUs to have been introduced by a collective, and
// meet by their order alone: streams cannot look at tags.
#include <fmt/format.h>

#include <algorithm>

#include "comm/device_calls.h"
#include "comm/operation.h"
#include "comm/world.h"

namespace hocket::comm {

using base::Deadline;
using engine::DeviceMessage;

void DeviceCalls::exchange(
    ConstArrayView in, int destination, ArrayView out, int source, const MessageOptions& options) {
  put_messages(in, destination, out, source, options);
}

std::shared_ptr<Operation> DeviceCalls::start_exchange(
    ConstArrayView in, int destination, ArrayView out, int source, const MessageOptions& options) {
  const Launch how = put_messages(in, destination, out, source, options);
  return with_work({}, how, nullptr);
}

DeviceCalls::Launch DeviceCalls::put_messages(
    ConstArrayView in, int destination, ArrayView out, int source, const MessageOptions& options) {
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
  const bool sends = destination >= 0;
  const bool receives = source >= 0;
  if (sends && receives && in.memory() != out.memory()) {
    throw InvalidArgument("in and out lie in different kinds of memory");
  }
  if (sends) check_device(in, "in");
  if (receives) check_device(out, "out");
  const cuda::DeviceGuard guard(*device_);
  const Launch how = open({.deadline = options.deadline, .stream = options.stream});
  const cuda::Driver& driver = device_->driver();
  std::optional<cuda::ScratchMemory> copy;
  const void* from = in.data();
  try {
    if (!how.captured) order_->follow(how.stream);
    // In place, what is sent goes from a copy.
    if (sends && receives && in.data() == out.data() && in.bytes() != 0) {
      copy.emplace(*device_, in.bytes(), how.stream);
      cuda::copy(driver, copy->data(), in.data(), in.bytes(), how.stream);
      from = copy->data();
    }
    std::vector<DeviceMessage> messages;
    if (sends && in.bytes() != 0) {
      messages.push_back(
          {DeviceMessage::Way::kSend, destination, const_cast<void*>(from), in.bytes()});
    }
    if (receives && out.bytes() != 0) {
      messages.push_back({DeviceMessage::Way::kReceive, source, out.data(), out.bytes()});
    }
    messenger_->keeps_time(how.allowed);
    if (!messages.empty()) messenger_->exchange(messages, how.stream);
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
