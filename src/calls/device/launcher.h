// Puts calls and messages on a stream: checks whether the stream can be used, waits for room, and
// puts marks behind them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "calls/device/plan.h"
#include "calls/device/session.h"
#include "calls/device/streams/work.h"

namespace hocket::device {

// A part of a session. The session outlives it. The communicator's turn guards it.
class DeviceLauncher {
 public:
  explicit DeviceLauncher(DeviceSession& session)
      : session_(session), owner_(session.owner()), job_(session.job()) {}

  // The stream of a call, and its time limit. A value.
  struct Launch {
    cuda::Stream stream = nullptr;
    Duration allowed{};
    bool captured = false;
  };
  // Returns how the request is enqueued. Throws InvalidArgument if its stream cannot be used;
  // `opened` announces that as a refusal.
  Launch open(const call::Request& request);
  Launch opened(const call::Request& request);
  void require_own_stream(const Launch& how) const;
  // Returns whether the host waits inside the call, between the copies.
  bool stays_in_call(const Launch& how) const noexcept;
  // Returns whether the call's run time on the stream is recorded.
  bool is_timed(const engine::DeviceEngine& engine, const Launch& how) const noexcept;

  // Waits for room for one more call that the host carries. Otherwise a program that never waits
  // could exceed the memory and the entries of a stream.
  void make_room();
  // Waits if more work is in progress than the streams and the other ranks can hold.
  void keep_pace(std::uint64_t sequence, const Launch& how);
  // Waits on the host until `follow` returns true: then the other ranks are as far in a call.
  void await_others(std::uint64_t sequence, Duration allowed, std::function<bool()> follow);
  // True if the host waits for a word that a GPU writes. The write wakes no thread, so the host
  // polls every kGpuLook.
  bool awaits_gpu() const noexcept;

  // Puts a mark behind the current work of the stream.
  std::shared_ptr<call::Operation> mark(StreamRef stream);
  // Returns a Work's operation: the work in progress on the host, if any, and a mark on the stream.
  std::shared_ptr<call::Operation> with_work(const DevicePlan& plan,
                                             const Launch& how,
                                             std::shared_ptr<call::Operation> operation);

 private:
  std::shared_ptr<DeviceWork> mark_end(const Launch& how);

  DeviceSession& session_;
  call::Core& owner_;
  DeviceJobContext& job_;
  bool awaits_word_ = false;  // true in `await_others`, whose event may wake no thread
};

}  // namespace hocket::device
