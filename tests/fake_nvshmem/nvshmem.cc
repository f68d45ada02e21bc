// NVSHMEM as far as hocket uses it, between processes of one host, over memory that is none of a
// GPU's. Like the real one it waits for all PEs without an end.
//
// FAKE_NVSHMEM_VERSION: reports another version.
// FAKE_NVSHMEM_APART=1: no PE maps another's heap.
// FAKE_NVSHMEM_HANG=start or malloc: PE 1 never returns from that call.
// FAKE_NVSHMEM_DIE=malloc: the process of PE 1 dies there.
// FAKE_NVSHMEM_FAIL=start or team: the call of PE 1 returns 7, and the others wait.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "engines/nvshmem/abi.h"
#include "foundation/cuda/abi.h"

using namespace hocket;
using namespace hocket::nvshmem;

namespace {

constexpr std::size_t kHeap = std::size_t{64} << 20;
constexpr int kTeams = 8;

// Memory that the PEs of a world share. Zeroed.
struct Shared {
  std::atomic<int> arrived;  // at the barrier that is under way
  std::atomic<int> rounds;   // that have ended
  std::atomic<int> made[kTeams];
};

struct World {
  NvshmemStatus status = NvshmemStatus::kNotInitialized;
  int pe = 0;
  int pes = 0;
  Shared* shared = nullptr;
  std::vector<char*> heaps;                  // by PE; null: not mapped
  std::map<std::size_t, std::size_t> taken;  // bytes by offset
  int teams = 0;
} world;

bool says(const char* variable, const char* value) {
  const char* is = std::getenv(variable);
  return is != nullptr && std::strcmp(is, value) == 0;
}

bool fails(const char* call) { return world.pe == 1 && says("FAKE_NVSHMEM_FAIL", call); }

void end_in(const char* call) {
  if (world.pe != 1) return;
  if (says("FAKE_NVSHMEM_DIE", call)) ::kill(::getpid(), SIGKILL);
  while (says("FAKE_NVSHMEM_HANG", call)) ::pause();
}

// Memory that is gone with the processes, however these end. The PE that makes an id holds it for
// all: the control's, then a heap for each PE. An id says its process and their numbers there.
constexpr int kMostPes = 16;

int make_memory(std::size_t bytes) {
  const int fd = ::memfd_create("fake_nvshmem", MFD_CLOEXEC);
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) != 0) std::abort();
  return fd;
}

int open_memory(const char* id, int which) {
  const std::string all(id);
  std::size_t at = all.find(' ');
  const std::string process = all.substr(0, at);
  for (int i = 0; i < which; ++i) at = all.find(' ', at + 1);
  const std::string number = all.substr(at + 1, all.find(' ', at + 1) - at - 1);
  const int fd = ::open(("/proc/" + process + "/fd/" + number).c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) std::abort();
  return fd;
}

void barrier() {
  Shared& s = *world.shared;
  const int round = s.rounds.load();
  if (s.arrived.fetch_add(1) + 1 == world.pes) {
    s.arrived.store(0);
    s.rounds.store(round + 1);
    return;
  }
  while (s.rounds.load() == round) ::usleep(200);
}

// As memory of a GPU, by the driver's own functions.
char* map(int fd, int pe) {
  void* driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) std::abort();
  using Find = cuda::Result(const char*, void**, int, std::uint64_t, int*);
  auto* find = reinterpret_cast<Find*>(::dlsym(driver, "cuGetProcAddress_v2"));
  const auto get = [&]<typename F>(const char* name, F*& slot) {
    void* at = nullptr;
    find(name, &at, 12000, 0, nullptr);
    slot = reinterpret_cast<F*>(at);
  };
  cuda::Result (*current)(int*) = nullptr;
  cuda::Result (*import)(cuda::AllocationHandle*, void*, cuda::HandleType) = nullptr;
  cuda::Result (*reserve)(
      cuda::DevicePtr*, std::size_t, std::size_t, cuda::DevicePtr, unsigned long long) = nullptr;
  cuda::Result (*place)(
      cuda::DevicePtr, std::size_t, std::size_t, cuda::AllocationHandle, unsigned long long) =
      nullptr;
  cuda::Result (*allow)(cuda::DevicePtr, std::size_t, const cuda::AccessDescription*, std::size_t) =
      nullptr;
  get("cuCtxGetDevice", current);
  get("cuMemImportFromShareableHandle", import);
  get("cuMemAddressReserve", reserve);
  get("cuMemMap", place);
  get("cuMemSetAccess", allow);
  cuda::AccessDescription access{};
  cuda::AllocationHandle handle = 0;
  cuda::DevicePtr at = 0;
  current(&access.location.id);
  access.location.id += pe - world.pe;  // a GPU a PE, in their order
  import(&handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)), {});
  reserve(&at, kHeap, 0, 0, 0);
  place(at, kHeap, 0, handle, 0);
  allow(at, kHeap, &access, 1);
  return reinterpret_cast<char*>(at);
}

}  // namespace

extern "C" {

void nvshmemx_vendor_get_version_info(int* major, int* minor, int* patch) {
  const char* wanted = std::getenv("FAKE_NVSHMEM_VERSION");
  if (wanted == nullptr || std::sscanf(wanted, "%d.%d.%d", major, minor, patch) != 3) {
    *major = 3;
    *minor = 4;
    *patch = 5;
  }
}

NvshmemStatus nvshmemx_init_status() { return world.status; }
int nvshmem_my_pe() { return world.pe; }
int nvshmem_n_pes() { return world.pes; }

int nvshmemx_get_uniqueid(UniqueId* id) {
  if (id->version != tag<UniqueId>(1)) return 1;
  std::string text = std::to_string(::getpid());
  for (int i = 0; i <= kMostPes; ++i) {
    text += " " + std::to_string(make_memory(i == 0 ? sizeof(Shared) : kHeap));
  }
  if (text.size() >= sizeof id->internal) return 1;
  std::memcpy(id->internal, text.c_str(), text.size() + 1);
  return 0;
}

int nvshmemx_hostlib_init_attr(unsigned flags, InitAttributes* attributes) {
  const UniqueIdArguments& given = attributes->arguments.unique_id;
  const bool expected = flags == kWithUniqueId && attributes->version == tag<InitAttributes>(1) &&
                        attributes->arguments.version == tag<InitArguments>(1) &&
                        given.version == tag<UniqueIdArguments>(1);
  // A test must always set this.
  if (!expected || !says("NVSHMEM_DISABLE_NVLS", "1")) return 1;
  world.pe = given.rank;
  world.pes = given.ranks;
  if (world.pes > kMostPes) return 1;
  world.status = NvshmemStatus::kBootstrapped;
  end_in("start");
  if (fails("start")) return 7;
  const char* id = given.id->internal;
  const int control = open_memory(id, 0);
  void* shared = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, control, 0);
  ::close(control);
  if (shared == MAP_FAILED) return 1;
  world.shared = static_cast<Shared*>(shared);
  for (int pe = 0; pe < world.pes; ++pe) {
    const int fd = open_memory(id, 1 + pe);
    const bool mapped = pe == world.pe || !says("FAKE_NVSHMEM_APART", "1");
    world.heaps.push_back(mapped ? map(fd, pe) : nullptr);
    ::close(fd);
  }
  barrier();
  world.status = NvshmemStatus::kInitialized;
  return 0;
}

// The first place that is large enough: the same on all PEs, as their calls are.
void* nvshmem_malloc(std::size_t bytes) {
  end_in("malloc");
  barrier();
  std::size_t at = 0;
  for (const auto& [offset, size] : world.taken) {
    if (offset - at >= bytes) break;
    at = (offset + size + 511) / 512 * 512;
  }
  if (bytes > kHeap || at > kHeap - bytes) return nullptr;
  world.taken[at] = bytes;
  char* memory = world.heaps[static_cast<std::size_t>(world.pe)] + at;
  std::memset(memory, 0x5a, bytes);
  return memory;
}

void nvshmem_free(void* memory) {
  barrier();
  const auto at = static_cast<char*>(memory) - world.heaps[static_cast<std::size_t>(world.pe)];
  if (world.taken.erase(static_cast<std::size_t>(at)) != 1) std::abort();
}

void* nvshmem_ptr(const void* memory, int pe) {
  char* heap = world.heaps[static_cast<std::size_t>(pe)];
  const auto at =
      static_cast<const char*>(memory) - world.heaps[static_cast<std::size_t>(world.pe)];
  return heap == nullptr ? nullptr : heap + at;
}

int nvshmemx_team_get_uniqueid(TeamId* id) {
  *id = static_cast<TeamId>(world.pe) << 8 | static_cast<TeamId>(world.teams % kTeams);
  return 0;
}

int nvshmemx_team_init(Team* team, TeamConfig* config, long mask, int pes, int pe) {
  if (config->version != tag<TeamConfig>(2) || mask != kMaskTeamId || pe >= pes) return 1;
  if (fails("team")) return 7;
  ++world.teams;
  std::atomic<int>& made = world.shared->made[config->id % kTeams];
  made.fetch_add(1);
  while (made.load() < pes) ::usleep(200);
  *team = static_cast<Team>(16 + (config->id & 0xff) + 16 * static_cast<Team>(config->id >> 8));
  return 0;
}
}
