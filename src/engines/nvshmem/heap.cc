#include "engines/nvshmem/heap.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <exception>

#include "foundation/base/config.h"
#include "foundation/base/hash.h"
#include "foundation/base/threads.h"
#include "foundation/cuda/stream.h"
#include "hocket/error.h"

namespace hocket::nvshmem {
namespace {

using Device = std::shared_ptr<const cuda::DeviceContext>;

constexpr auto kBetweenLooks = std::chrono::milliseconds(2);

// NVSHMEM rounds allocations up to multiples of kUnit bytes, and grows its heap by whole pages of
// the driver.
constexpr std::size_t kUnit = 512;
// Bytes of a GPU's memory that must stay free for this rounding and for NVSHMEM itself.
constexpr std::size_t kReserve = std::size_t{256} << 20;
// NVSHMEM's default limit of its heap in bytes, and the variable that changes the limit.
constexpr const char* kLimitVariable = "NVSHMEM_MAX_MEMORY_PER_GPU";
constexpr std::size_t kLimit = std::size_t{128} << 30;

std::size_t whole(std::size_t bytes) { return (bytes + kUnit - 1) / kUnit * kUnit; }

// Work in a separate thread, which may be left behind, and its result.
struct Aside {
  Device device;
  std::shared_ptr<std::mutex> turn;
  std::function<void()> work;
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::exception_ptr error;

  void run() noexcept {
    std::exception_ptr thrown;
    try {
      const std::lock_guard one_at_a_time(*turn);
      const cuda::DeviceGuard guard(*device);
      const cuda::OutsideCapture outside(device->driver());
      work();
    } catch (...) {
      thrown = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    error = thrown;
    done = true;
    changed.notify_all();
  }

  void await(const Wait& wait) {
    std::unique_lock lock(mutex);
    while (!changed.wait_for(lock, kBetweenLooks, [&] { return done; })) {
      lock.unlock();
      wait.look();
      if (wait.deadline.has_passed()) wait.late();
      lock.lock();
    }
  }
};

std::shared_ptr<Aside> begin(Device device,
                             std::shared_ptr<std::mutex> turn,
                             std::function<void()> work) {
  const auto aside = std::make_shared<Aside>();
  aside->device = std::move(device);
  aside->turn = std::move(turn);
  aside->work = std::move(work);
  try {
    base::start_thread("hocket-nvshmem", [aside] { aside->run(); }).detach();
  } catch (const SystemError& error) {
    throw DeviceError(fmt::format("no thread for NVSHMEM: {}", error.what()));
  }
  return aside;
}

// Returns a hash of the id. It is never 0, which stands for an unknown world.
std::uint64_t hash_of(const UniqueId& id) {
  return base::hash_of({id.internal, sizeof(id.internal)}) | 1;
}

void clear(const Device& device, std::byte* at, std::size_t bytes) {
  const cuda::Driver& driver = device->driver();
  const cuda::OwnedStream stream(device);
  const auto address = reinterpret_cast<cuda::DevicePtr>(at);
  check(driver, driver.memset_d8_async(address, 0, bytes, stream.get()), "clear new memory");
  check(driver, driver.stream_synchronize(stream.get()), "clear new memory");
}

}  // namespace

Heap::Heap(std::shared_ptr<const NvshmemLibrary> library, bool multicast)
    : library_(std::move(library)), multicast_(multicast) {}

Facts Heap::facts(const cuda::DeviceContext& device) const {
  Facts own;
  device.driver().device_get_uuid(&own.gpu, device.ordinal());
  own.version = library_->version();
  const std::lock_guard lock(mutex_);
  std::string why_not = lost_;
  if (why_not.empty() && ordinal_ >= 0 && ordinal_ != device.ordinal()) {
    why_not =
        fmt::format("NVSHMEM was started on GPU {} of this process, and this rank's GPU is {}",
                    ordinal_,
                    device.ordinal());
  }
  own.why_not = why_not;
  if (!why_not.empty()) return own;
  own.status = library_->init_status();
  if (own.status < NvshmemStatus::kInitialized) return own;
  own.pe = library_->my_pe();
  own.pes = library_->n_pes();
  own.world = world_;
  own.pieces = static_cast<std::int32_t>(allocations_.size());
  return own;
}

// NVSHMEM reads these variables once, when it starts. Values that the user has set are kept.
void Heap::set_environment() const {
  if (!multicast_) base::default_environment("NVSHMEM_DISABLE_NVLS", "1");
  base::default_environment("NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", "lo");
  base::default_environment("NVSHMEM_BOOTSTRAP_UID_SOCK_FAMILY", "AF_INET");
  base::default_environment("NVSHMEM_REMOTE_TRANSPORT", "none");
}

void Heap::call(Device device,
                const std::string& what,
                std::function<void()> work,
                const Wait& wait) {
  const auto aside = begin(std::move(device), turn_, std::move(work));
  try {
    aside->await(wait);
  } catch (...) {
    const std::lock_guard own(mutex_);
    lost_ = fmt::format(
        "NVSHMEM was left in the middle of {}, as other ranks failed, ended or did not come, and "
        "cannot be used in this process any more",
        what);
    throw;
  }
  if (aside->error) std::rethrow_exception(aside->error);
}

void Heap::do_alone(Device device, std::function<void()> work, const Wait& wait) {
  const auto aside = begin(std::move(device), turn_, std::move(work));
  aside->await(wait);
  if (aside->error) std::rethrow_exception(aside->error);
}

UniqueId Heap::new_id() {
  set_environment();
  UniqueId id{.version = tag<UniqueId>(1)};
  if (const int status = library_->get_uniqueid(&id); status != 0) {
    throw DeviceError(
        fmt::format("NVSHMEM {} made no unique id (status {}); NVSHMEM_DEBUG=INFO says more",
                    version_text(),
                    status));
  }
  return id;
}

void Heap::start(Device device, const UniqueId& id, int pe, int pes, const Wait& wait) {
  set_environment();
  const auto start = [library = library_, id = UniqueId(id), pe, pes]() mutable {
    InitAttributes attributes{
        .version = tag<InitAttributes>(1),
        .arguments = {
            .version = tag<InitArguments>(1),
            .unique_id = {
                .version = tag<UniqueIdArguments>(1), .id = &id, .rank = pe, .ranks = pes}}};
    const int status = library->hostlib_init_attr(kWithUniqueId, &attributes);
    // The call also returns 0 if NVSHMEM has only connected to the other PEs.
    if (status != 0 || library->init_status() < NvshmemStatus::kInitialized) {
      throw DeviceError(
          fmt::format("NVSHMEM {} did not start (status {}); NVSHMEM_DEBUG=INFO says "
                      "more",
                      library->version_text(),
                      status));
    }
    if (library->my_pe() != pe || library->n_pes() != pes) {
      throw DeviceError(fmt::format("NVSHMEM started as PE {} of {} instead of {} of {}",
                                    library->my_pe(),
                                    library->n_pes(),
                                    pe,
                                    pes));
    }
  };
  const int ordinal = device->ordinal();
  call(std::move(device), "starting", start, wait);
  const std::lock_guard lock(mutex_);
  world_ = hash_of(id);
  ordinal_ = ordinal;
}

void Heap::name_world(std::uint64_t world) {
  const std::lock_guard lock(mutex_);
  world_ = world;
}

std::string Heap::why_no_room(const cuda::DeviceContext& device, std::size_t bytes) const {
  const std::size_t wanted = whole(bytes);
  std::size_t grown = wanted;
  {
    const std::lock_guard lock(mutex_);
    if (wanted <= spare_.largest()) return "";
    for (const Allocation& each : allocations_) grown += whole(each.bytes);
  }
  std::size_t free = 0;
  std::size_t total = 0;
  const cuda::DeviceGuard guard(device);
  if (device.driver().mem_get_info(&free, &total) != cuda::Result::kSuccess) return "";
  if (wanted > free || free - wanted < kReserve) {
    return fmt::format("NVSHMEM's heap would have to grow by {} bytes, and GPU {} has {} free",
                       bytes,
                       device.ordinal(),
                       free);
  }
  if (!base::environment(kLimitVariable) && grown > kLimit - kReserve) {
    return fmt::format("NVSHMEM's heap has {} bytes at most ({} sets it), and {} would be taken",
                       kLimit,
                       kLimitVariable,
                       grown);
  }
  return "";
}

Heap::HeapBlock Heap::allocate(Device device, std::size_t bytes, const Wait& wait) {
  const auto made = std::make_shared<std::byte*>(nullptr);
  call(
      device,
      "an allocation",
      [library = library_, bytes, made] {
        *made = static_cast<std::byte*>(library->malloc(bytes));
      },
      wait);
  if (*made == nullptr) return {};
  const auto dropped = std::make_shared<std::atomic<bool>>(false);
  HeapBlock piece{*made, std::shared_ptr<void>(*made, [dropped](void*) { dropped->store(true); })};
  {
    const std::lock_guard lock(mutex_);
    allocations_.push_back({*made, bytes, dropped});
    spare_.take(*made, whole(bytes));
  }
  // If clearing the memory fails or the wait throws, the piece counts as dropped on this rank, as
  // it does on other ranks. The piece is freed only after the clearing has ended, because calls run
  // one after the other.
  const auto erase = [device, address = *made, bytes] { clear(device, address, bytes); };
  do_alone(device, erase, wait);
  return piece;
}

std::byte* Heap::peer(const std::byte* address, int pe) const {
  return static_cast<std::byte*>(library_->ptr(address, pe));
}

std::vector<std::byte> Heap::dropped() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::byte> all;
  for (const Allocation& each : allocations_) all.push_back(std::byte{each.dropped->load()});
  return all;
}

void Heap::give_back(Device device, const std::vector<std::byte>& which, const Wait& wait) {
  std::vector<std::byte*> given;
  {
    const std::lock_guard lock(mutex_);
    std::vector<Allocation> kept;
    for (std::size_t i = 0; i < allocations_.size(); ++i) {
      if (i < which.size() && which[i] != std::byte{0}) {
        given.push_back(allocations_[i].address);
        spare_.add(given.back(), whole(allocations_[i].bytes));
      } else {
        kept.push_back(std::move(allocations_[i]));
      }
    }
    allocations_ = std::move(kept);
  }
  if (given.empty()) return;
  call(
      std::move(device),
      "giving memory back",
      [library = library_, given] {
        for (std::byte* piece : given) library->free(piece);
      },
      wait);
}

TeamId Heap::new_team_id() {
  if (library_->team_get_uniqueid == nullptr || library_->team_init == nullptr) {
    throw DeviceError(fmt::format(
        "NVSHMEM {} makes no teams of any ranks; that takes 3.3, or a later one", version_text()));
  }
  TeamId id = 0;
  if (const int status = library_->team_get_uniqueid(&id); status != 0) {
    throw DeviceError(fmt::format("NVSHMEM made no id for a team (status {})", status));
  }
  return id;
}

Team Heap::make_team(Device device, TeamId id, int pe, int pes, const Wait& wait) {
  const auto made = std::make_shared<Team>(kInvalidTeam);
  call(
      std::move(device),
      "making a team",
      [library = library_, id, pe, pes, made] {
        TeamConfig config{.version = tag<TeamConfig>(2), .id = id};
        const int status = library->team_init(made.get(), &config, kMaskTeamId, pes, pe);
        if (status != 0 || *made == kInvalidTeam) {
          throw DeviceError(
              fmt::format("NVSHMEM made no team of {} PEs (status {}); it has room for "
                          "NVSHMEM_MAX_TEAMS of them",
                          pes,
                          status));
        }
      },
      wait);
  return *made;
}

}  // namespace hocket::nvshmem
