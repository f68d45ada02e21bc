// PMIx, through its library, which is loaded if it is installed. The declarations cover only the
// functions that hocket uses. They have not changed since version 2.
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>

#include "foundation/base/config.h"
#include "hocket/error.h"
#include "membership/rendezvous/launchers/launcher_space.h"

namespace hocket::rendezvous {
namespace {

// The library's pmix_proc_t.
struct Proc {
  char space[256];
  std::uint32_t rank;
};
// The library's pmix_value_t. Its union has more members than hocket uses.
struct Value {
  std::uint16_t type;
  union {
    char* text;
    std::byte room[48];
  };
};
constexpr std::uint16_t kString = 3;
constexpr std::uint8_t kGlobal = 3;  // the scope: all ranks, on this host and on others

struct PmixFunctions {
  int (*init)(Proc* self, void* info, std::size_t infos);
  int (*finalize)(const void* info, std::size_t infos);
  int (*put)(std::uint8_t scope, const char* key, Value* value);
  int (*commit)();
  int (*fence)(const Proc* procs, std::size_t count, const void* info, std::size_t infos);
  int (*get)(const Proc* proc, const char* key, const void* info, std::size_t infos, Value** value);

  // Looks up the functions. Returns false if the library lacks one.
  bool fill(void* library) {
    const auto find = [library](const char* name, auto& slot) {
      slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(::dlsym(library, name));
      return slot != nullptr;
    };
    return find("PMIx_Init", init) && find("PMIx_Finalize", finalize) && find("PMIx_Put", put) &&
           find("PMIx_Commit", commit) && find("PMIx_Fence", fence) && find("PMIx_Get", get);
  }
};

// Ends PMIx when the process ends. Without this, the launcher considers the process failed. PMIx
// cannot be ended earlier: MPI may need it later, and it cannot be started twice.
class Finalizer {
 public:
  explicit Finalizer(int (*finalize)(const void*, std::size_t)) : finalize_(finalize) {}
  ~Finalizer() { static_cast<void>(finalize_(nullptr, 0)); }
  Finalizer(const Finalizer&) = delete;
  Finalizer& operator=(const Finalizer&) = delete;

 private:
  int (*finalize_)(const void*, std::size_t);
};

class PmixSpace final : public LauncherSpace {
 public:
  explicit PmixSpace(const PmixFunctions& pmix) : pmix_(pmix) {
    require(pmix_.init(&self_, nullptr, 0), "PMIx_Init");
    static const Finalizer ending(pmix_.finalize);
  }
  void put(const std::string& key, const std::string& value) override {
    std::string text = value;
    Value given{.type = kString, .text = text.data()};
    require(pmix_.put(kGlobal, key.c_str(), &given), "PMIx_Put");
  }
  void fence() override {
    require(pmix_.commit(), "PMIx_Commit");
    require(pmix_.fence(nullptr, 0, nullptr, 0), "PMIx_Fence");
  }
  std::string get(int rank, const std::string& key) override {
    Proc proc = self_;
    proc.rank = static_cast<std::uint32_t>(rank);
    Value* value = nullptr;
    require(pmix_.get(&proc, key.c_str(), nullptr, 0, &value), "PMIx_Get");
    if (value == nullptr || value->type != kString) require(-1, "PMIx_Get");
    const std::string text = value->text;
    std::free(value->text);
    std::free(value);
    return text;
  }

 private:
  static void require(int code, const char* what) {
    if (code == 0) return;
    throw RendezvousError(fmt::format(
        "{} failed with code {}; give the ranks an address instead: HOCKET_STORE=HOST:PORT and "
        "HOCKET_KEY_FILE",
        what,
        code));
  }

  PmixFunctions pmix_;
  Proc self_{};
};

}  // namespace

std::unique_ptr<LauncherSpace> open_pmix_space() {
  if (!base::environment("PMIX_NAMESPACE")) return nullptr;
  void* library = ::dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  PmixFunctions pmix{};
  if (library == nullptr || !pmix.fill(library)) return nullptr;
  return std::make_unique<PmixSpace>(pmix);
}

}  // namespace hocket::rendezvous
