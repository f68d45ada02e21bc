#include "foundation/cuda/idle.h"

#include <condition_variable>
#include <mutex>

#include "foundation/base/threads.h"
#include "foundation/cuda/stream.h"
#include "hocket/error.h"

namespace hocket::cuda {
namespace {

struct Release {
  std::shared_ptr<const DeviceContext> device;
  std::shared_ptr<void> memory;
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;

  void run() noexcept {
    {
      const DeviceGuard guard(*device);
      const OutsideCapture outside(device->driver());
      device->driver().ctx_synchronize();
      memory.reset();
    }
    const std::lock_guard lock(mutex);
    done = true;
    changed.notify_all();
  }
};

}  // namespace

bool release_when_idle(std::shared_ptr<const DeviceContext> device,
                       std::shared_ptr<void> memory,
                       base::Deadline deadline) noexcept {
  const auto release = std::make_shared<Release>();
  release->device = std::move(device);
  release->memory = std::move(memory);
  try {
    base::start_thread("hocket-idle", [release] { release->run(); }).detach();
  } catch (const std::exception&) {  // no thread available: this thread waits, without a limit
    release->run();
  }
  std::unique_lock lock(release->mutex);
  const auto is_done = [&] { return release->done; };
  if (!deadline.is_never()) return release->changed.wait_until(lock, deadline.when(), is_done);
  release->changed.wait(lock, is_done);
  return true;
}

}  // namespace hocket::cuda
