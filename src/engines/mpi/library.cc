#include "engines/mpi/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string_view>

#include "foundation/base/poll.h"
#include "foundation/core/reduce.h"
#include "foundation/cuda/stream.h"
#include "hocket/error.h"

namespace hocket::engines::mpi {
namespace {

struct ShimKind {
  const char* name;            // in the file name of the shim
  std::string_view title;      // name for users; launchers use the same name
  const char* files[2];        // names of MPI's library for the dynamic linker
  const char* debian_headers;  // Debian package with the headers for the shim
};
// The kinds of MPI, in ascending priority. If several are loaded, `find` takes the last of them: a
// library with the standard ABI may be built on another MPI, which is then also loaded.
constexpr std::array kKinds{
    ShimKind{"openmpi", "Open MPI", {"libmpi.so.40", nullptr}, "libopenmpi-dev"},
    ShimKind{"mpich", "MPICH", {"libmpich.so.12", "libmpi.so.12"}, "libmpich-dev"},
    ShimKind{
        "standard", "MPI's standard ABI", {"libmpi_abi.so.1", "libmpi_abi.so.0"}, "no headers"},
};
constexpr const ShimKind& kStandard = kKinds.back();

// Loads the library of an MPI, so that the shim finds its functions. With RTLD_NOLOAD in `flags`,
// only finds a library that is already loaded. The handle is never closed, because an MPI must not
// be unloaded while it is in use.
bool open(const ShimKind& kind, int flags) {
  for (const char* file : kind.files) {
    if (file != nullptr && ::dlopen(file, RTLD_LAZY | flags) != nullptr) return true;
  }
  return false;
}

// Returns the folder of this library. The shims lie beside it.
std::string folder_of_this_library() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&folder_of_this_library), &info) == 0) return {};
  const std::string path = info.dli_fname;
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

std::string shim_of(const ShimKind& kind) {
  return fmt::format("{}/libhocket_mpi_{}.so", folder_of_this_library(), kind.name);
}

// The memory of abandoned messages. The mutex guards both lists.
struct GivenUp {
  std::mutex mutex;
  std::vector<std::shared_ptr<void>> ended;  // of messages that have ended; freed by `sweep`
  std::vector<std::shared_ptr<void>> kept;   // never freed; see `keep`
};
GivenUp& given_up() {
  static auto* all = new GivenUp;  // the exit of the process reads it
  return *all;
}

void fold(std::int32_t dtype, std::int32_t op, void* inout, const void* in, std::size_t count) {
  const void* const sources[] = {in, inout};
  core::reduce(inout,
               sources,
               2,
               count,
               static_cast<DType>(dtype),
               static_cast<ReduceOp>(op),
               1,
               core::Stores::kCached);
}

}  // namespace

Comm::~Comm() { library_->release(handle_); }

// The right to call MPI. It holds the lock, makes the GPU's context current, and keeps MPI's work
// out of graph captures. The last two are needed because any MPI call may move any message in
// progress, and may access GPUs' memory for it.
class MpiLibrary::Turn {
 public:
  explicit Turn(const MpiLibrary& library) : lock_(library.mutex_) {
    if (!library.device_) return;
    device_.emplace(*library.device_);
    outside_.emplace(library.device_->driver());
  }

 private:
  const std::lock_guard<std::mutex> lock_;
  std::optional<cuda::DeviceGuard> device_;
  std::optional<cuda::OutsideCapture> outside_;
};

FoundMpi MpiLibrary::find(const std::string& launcher) {
  const ShimKind* chosen = nullptr;
  for (const ShimKind& kind : kKinds) {
    if (open(kind, RTLD_LOCAL | RTLD_NOLOAD)) chosen = &kind;
  }
  if (chosen == nullptr) {
    const auto own = std::ranges::find(kKinds, launcher, &ShimKind::title);
    if (own == kKinds.end()) {
      FoundMpi found;
      found.why_not =
          "no MPI is loaded in this process, and no mpirun started it; start it by the mpirun of "
          "Open MPI or MPICH, or import mpi4py first";
      return found;
    }
    // A newer launcher may come with only the library for the standard ABI.
    const bool is_standard = !open(*own, RTLD_LOCAL) && open(kStandard, RTLD_LOCAL);
    chosen = is_standard ? &kStandard : &*own;
  }
  return load(chosen->title);
}

FoundMpi MpiLibrary::load(std::string_view title) {
  const auto chosen = std::ranges::find(kKinds, title, &ShimKind::title);
  FoundMpi found;
  if (chosen == kKinds.end()) {
    found.why_not = fmt::format("hocket knows no MPI that is called {}", title);
    return found;
  }
  const std::string file = shim_of(*chosen);
  if (!std::filesystem::exists(file)) {
    found.why_not = fmt::format(
        "there is no {}, as hocket was built without {}: install its headers ({}) and build again",
        file,
        chosen->title,
        chosen->debian_headers);
    return found;
  }
  // A shim in a Python wheel is not linked with an MPI. It finds MPI's functions among the symbols
  // of globally loaded libraries.
  const bool is_open = open(*chosen, RTLD_GLOBAL);
  void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const std::string said = ::dlerror();
    found.why_not =
        is_open
            ? said
            : fmt::format("{} is not found; add the folder that it is in to LD_LIBRARY_PATH ({})",
                          chosen->files[0],
                          said);
    return found;
  }
  const auto entry = reinterpret_cast<const Shim* (*)()>(::dlsym(handle, kShimSymbol));
  if (entry == nullptr || entry()->abi != kAbi) {
    found.why_not = fmt::format("{} is of another version of hocket", file);
    return found;
  }
  // One object for each MPI, so that all worlds of the process use the same lock. These objects are
  // never freed, because their users may outlive the process's globals.
  static std::mutex& mutex = *new std::mutex;
  static auto& made = *new std::array<std::shared_ptr<MpiLibrary>, kKinds.size()>;
  const std::lock_guard lock(mutex);
  auto& library = made[static_cast<std::size_t>(chosen - kKinds.begin())];
  if (!library) {
    auto fresh = std::make_shared<MpiLibrary>();
    fresh->shim_ = entry();
    std::array<char, 256> text{};
    fresh->shim_->version(text.data(), text.size());
    fresh->name_ = text.data();
    library = std::move(fresh);
  }
  found.library = library;
  return found;
}

std::vector<std::string> MpiLibrary::built_for() {
  std::vector<std::string> names;
  for (const ShimKind& kind : kKinds) {
    if (std::filesystem::exists(shim_of(kind))) names.emplace_back(kind.title);
  }
  return names;
}

void MpiLibrary::require(int code, const char* what) const {
  if (code == 0) return;
  std::array<char, 512> text{};
  shim_->error_text(code, text.data(), text.size());
  throw SystemError(fmt::format("{} of {} failed: {}", what, name_, text.data()), EIO);
}

void MpiLibrary::start() {
  const std::lock_guard lock(mutex_);
  if (shim_->is_finalized()) {
    throw InvalidArgument("engine mpi: MPI_Finalize was called before hocket::init");
  }
  Threads threads{};
  // The shim may call at_end when the process exits. `used_` still exists then, because this object
  // is never freed.
  require(shim_->start(&fold, {.run = &MpiLibrary::at_end, .self = &used_}, &threads),
          "MPI_Init_thread");
  if (threads == Threads::kOne) {
    throw InvalidArgument(
        "engine mpi: MPI was initialised for one thread alone, and hocket's progress thread needs "
        "it, too; call MPI_Init_thread with MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE instead "
        "of MPI_Init, or leave it to hocket");
  }
}

std::shared_ptr<Comm> MpiLibrary::world() {
  const std::lock_guard lock(mutex_);
  void* made = nullptr;
  require(shim_->world(&made), "MPI_COMM_WORLD");
  return std::make_shared<Comm>(shared_from_this(), made);
}

void MpiLibrary::place(const Comm& comm, int& rank, int& size) {
  const std::lock_guard lock(mutex_);
  require(shim_->place(comm.handle(), &rank, &size), "MPI_Comm_rank");
}

std::shared_ptr<Comm> MpiLibrary::create(const Comm& parent, std::span<const int> ranks, int tag) {
  const Turn turn(*this);
  void* made = nullptr;
  require(shim_->create(
              parent.handle(), static_cast<std::int32_t>(ranks.size()), ranks.data(), tag, &made),
          "MPI_Comm_create_group");
  return std::make_shared<Comm>(shared_from_this(), made);
}

void MpiLibrary::begin(const Comm& comm, Flight& flight) {
  const Turn turn(*this);
  require(shim_->begin(comm.handle(), &flight.call, &flight.request), "a collective");
}

bool MpiLibrary::test(Flight& flight) {
  const Turn turn(*this);
  bool done = false;
  const int code = shim_->test(flight.request, &done);
  if (done) flight.request = nullptr;
  flight.failed = code != 0;
  require(code, "a collective");
  return done;
}

void MpiLibrary::abandon(std::unique_ptr<Flight> flight) noexcept {
  const std::lock_guard lock(mutex_);
  Flight* left = flight.release();  // MPI may write to it until it is done
  shim_->give_up(left->request, [](void* memory) { delete static_cast<Flight*>(memory); }, left);
}

void MpiLibrary::forsake() noexcept {
  const std::lock_guard lock(mutex_);
  shim_->forsake();
}

void MpiLibrary::release(void* comm) noexcept {
  const Turn turn(*this);
  shim_->release(comm);
}

void* MpiLibrary::post(const Comm& comm, const ShimMessage& message) {
  const Turn turn(*this);
  void* request = nullptr;
  require(shim_->post(comm.handle(), &message, &request), "a message");
  return request;
}

bool MpiLibrary::test(void*& request) {
  const Turn turn(*this);
  bool done = false;
  const int code = shim_->test(request, &done);
  if (done) request = nullptr;
  require(code, "a message");
  return done;
}

std::optional<int> MpiLibrary::probe(const Comm& comm, int tag) {
  const Turn turn(*this);
  std::int32_t source = -1;
  require(shim_->probe(comm.handle(), tag, &source), "MPI_Iprobe");
  return source < 0 ? std::nullopt : std::optional<int>(source);
}

void MpiLibrary::abandon(void* request, std::shared_ptr<void> memory) noexcept {
  using Held = std::shared_ptr<void>;
  const std::lock_guard lock(mutex_);
  const auto release = [](void* held) {
    const std::unique_ptr<Held> owned(static_cast<Held*>(held));
    const std::lock_guard list_lock(given_up().mutex);
    given_up().ended.push_back(std::move(*owned));
  };
  shim_->give_up(request, release, new Held(std::move(memory)));
}

void MpiLibrary::withdraw(void* request) noexcept {
  const Turn turn(*this);
  shim_->withdraw(request);
}

void MpiLibrary::sweep() noexcept {
  std::vector<std::shared_ptr<void>> memory;
  const std::lock_guard lock(given_up().mutex);
  memory.swap(given_up().ended);
}

void MpiLibrary::keep(std::shared_ptr<void> memory) noexcept {
  const std::lock_guard lock(given_up().mutex);
  given_up().kept.push_back(std::move(memory));
}

Gpus MpiLibrary::gpus() const {
  const std::lock_guard lock(mutex_);
  return shim_->gpus();
}

void MpiLibrary::use(std::shared_ptr<const cuda::DeviceContext> device) {
  const std::lock_guard lock(mutex_);
  if (device_ && device_->ordinal() != device->ordinal()) {
    throw DeviceError(
        fmt::format("MPI has moved memory of GPU {} in this process, and can then not of GPU {}",
                    device_->ordinal(),
                    device->ordinal()));
  }
  if (!device_) device_ = std::move(device);
  used_.store(device_.get(), std::memory_order_release);
}

// Does not take the lock, because a thread that holds it may never continue when the process exits.
void MpiLibrary::at_end(void* used, const LastSteps& last) {
  const auto* device = static_cast<const UsedDevice*>(used)->load(std::memory_order_acquire);
  if (device == nullptr) return finish(last);
  const cuda::DeviceGuard guard(*device);
  const cuda::OutsideCapture outside(device->driver());
  if (guard.is_current() || !last.has_left()) finish(last);
}

// Waits for abandoned requests, because other ranks may do their parts soon. After one second it
// cancels the receives. If the requests do not end within five seconds, the process ends without
// MPI_Finalize.
void MpiLibrary::finish(const LastSteps& last) {
  std::optional<base::Deadline> until_withdrawn = base::Deadline::in(std::chrono::seconds(1));
  const auto have_all_ended = [&] {
    const bool withdraws = until_withdrawn && until_withdrawn->has_passed();
    if (withdraws) until_withdrawn.reset();
    return last.test(withdraws);
  };
  const auto deadline = base::Deadline::in(std::chrono::seconds(5));
  if (base::poll_until(have_all_ended, deadline, std::chrono::milliseconds(1))) last.finalize();
}

void MpiLibrary::end() noexcept {
  const Turn turn(*this);
  shim_->end();
}

}  // namespace hocket::engines::mpi
