#include "hocket/device_pool.h"

#include "arrays/pool/halo.h"
#include "arrays/pool/moves.h"
#include "arrays/pool/pool.h"
#include "arrays/pool/reductions.h"
#include "hocket/error.h"

namespace hocket {

// --- PoolWorker ---------------------------------------------------------------------------------

int PoolWorker::index() const noexcept { return state_->index; }
int PoolWorker::size() const noexcept { return state_->size; }
int PoolWorker::device() const noexcept {
  return state_->lane != nullptr ? state_->lane->device().ordinal() : kAnyDevice;
}
StreamRef PoolWorker::stream() const {
  if (state_->lane == nullptr) throw InvalidArgument("workers of the host have no streams");
  return state_->lane->stream();
}
StreamRef PoolWorker::load_stream() const {
  if (state_->lane == nullptr) throw InvalidArgument("workers of the host have no streams");
  return state_->lane->load_stream();
}
Communicator& PoolWorker::communicator() const { return state_->world->communicator(); }
void PoolWorker::begun() const { state_->crew->begun(state_->index); }

// --- DevicePool ---------------------------------------------------------------------------------

DevicePool::DevicePool(int workers, const PoolOptions& options) {
  if (!options.devices.empty()) {
    throw InvalidArgument("give a number of workers of the host, or devices, not both");
  }
  pool_ = std::make_unique<pool::Pool>(workers, options);
}

DevicePool::DevicePool(const PoolOptions& options) {
  if (options.devices.empty()) {
    throw InvalidArgument(
        "devices is empty, expected the numbers of GPUs; workers of the host are "
        "made by their number");
  }
  pool_ = std::make_unique<pool::Pool>(static_cast<int>(options.devices.size()), options);
}

DevicePool::DevicePool(DevicePool&&) noexcept = default;
DevicePool& DevicePool::operator=(DevicePool&&) noexcept = default;
DevicePool::~DevicePool() = default;

int DevicePool::size() const { return pool_->size(); }
std::span<const int> DevicePool::devices() const { return pool_->devices(); }
StreamRef DevicePool::stream(int worker) const { return pool_->lane(worker).stream(); }
StreamRef DevicePool::load_stream(int worker) const { return pool_->lane(worker).load_stream(); }

namespace {
void require_function(const std::function<void(PoolWorker&)>& body) {
  if (!body) throw InvalidArgument("map was given no function");
}
}  // namespace

void DevicePool::map(const std::function<void(PoolWorker&)>& body, const PoolCallOptions& options) {
  require_function(body);
  pool_->run(
      [&](pool::WorkerState& state) {
        PoolWorker worker(state);
        body(worker);
      },
      options);
}

void DevicePool::map(std::span<const int> workers,
                     const std::function<void(PoolWorker&)>& body,
                     const PoolCallOptions& options) {
  require_function(body);
  pool_->run(
      workers,
      [&](pool::WorkerState& state) {
        PoolWorker worker(state);
        body(worker);
      },
      options);
}

void DevicePool::broadcast(BorrowedView in,
                           std::span<const ArrayView> out,
                           const PoolCallOptions& options) {
  const std::vector<int> from(out.size(), 0);
  const ConstArrayView one = in;
  pool::distribute(*pool_, {&one, 1}, from, out, options.streams);
}

void DevicePool::distribute(std::span<const ConstArrayView> in,
                            std::span<const int> from,
                            std::span<const ArrayView> out,
                            const PoolCallOptions& options) {
  pool::distribute(*pool_, in, from, out, options.streams);
}

void DevicePool::scatter(BorrowedView in,
                         std::span<const ArrayView> out,
                         const PoolCallOptions& options) {
  pool::scatter(*pool_, in, out, options.streams);
}

void DevicePool::gather(std::span<const ConstArrayView> in,
                        ArrayView out,
                        const PoolCallOptions& options) {
  pool::gather(*pool_, in, out, options.streams);
}

void DevicePool::all_gather(std::span<const ConstArrayView> in,
                            std::span<const ArrayView> out,
                            const PoolCallOptions& options) {
  pool::all_gather(*pool_, in, out, options.streams);
}

void DevicePool::all_reduce(std::span<const ArrayView> inout, const PoolReduceOptions& options) {
  const std::vector<ConstArrayView> in(inout.begin(), inout.end());
  pool::all_reduce(*pool_, in, inout, options);
}

void DevicePool::all_reduce(std::span<const ConstArrayView> in,
                            std::span<const ArrayView> out,
                            const PoolReduceOptions& options) {
  pool::all_reduce(*pool_, in, out, options);
}

void DevicePool::reduce(std::span<const ConstArrayView> in,
                        ArrayView out,
                        const PoolReduceOptions& options) {
  pool::reduce(*pool_, in, out, options);
}

void DevicePool::exchange_halo(std::span<const ArrayView> arrays,
                               const HaloShape& shape,
                               std::span<const std::size_t> seams,
                               std::size_t overlap,
                               const HaloOptions& options) {
  pool::exchange_halo(*pool_, arrays, shape, seams, overlap, options);
}

void DevicePool::close() { pool_->close(); }
bool DevicePool::is_closed() const { return pool_->is_closed(); }

}  // namespace hocket
