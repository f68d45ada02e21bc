#include "engines/ucx/library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include "base/config.h"

namespace hocket::engines::ucx {
namespace {

constexpr const char* kFile = "libucp.so.0";
constexpr unsigned kMajor = 1;
constexpr unsigned kOldestMinor = 12;  // active messages as they are used here
constexpr int kLoad = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;

void* open(const Search& search, std::string& why_not) {
  if (void* loaded = ::dlopen(kFile, kLoad | RTLD_NOLOAD)) return loaded;
  if (!search.file.empty()) {
    void* wanted = ::dlopen(search.file.c_str(), kLoad);
    if (wanted == nullptr) why_not = fmt::format("HOCKET_UCX_LIBRARY: {}", ::dlerror());
    return wanted;
  }
  if (void* system = ::dlopen(kFile, kLoad)) return system;
  why_not = fmt::format(
      "{} cannot be loaded: {}; install UCX (Debian: libucx0; pip: libucx-cu13), "
      "or set HOCKET_UCX_LIBRARY to it",
      kFile,
      ::dlerror());
  for (const std::string& folder : search.folders) {
    if (void* found = ::dlopen((folder + "/" + kFile).c_str(), kLoad)) return found;
  }
  return nullptr;
}

}  // namespace

Found Library::find(const Search& search) {
  Found found;
  // UCX reads these when it is loaded; what the user has set stays. Its handlers of signals and its
  // reports of broken connections are not wanted: hocket says itself who died.
  base::default_environment("UCX_HANDLE_ERRORS", "none");
  base::default_environment("UCX_LOG_LEVEL", "fatal");
  base::default_environment("UCX_WARN_UNUSED_ENV_VARS", "n");
  // Else it waits in the kernel for a host that is not there, for minutes, and no deadline helps.
  base::default_environment("UCX_TCP_CONN_NB", "y");
  // Where the user has it use shared memory (UCX_TLS), it does so for peers that may fail, too.
  base::default_environment("UCX_POSIX_ERROR_HANDLING", "y");
  base::default_environment("UCX_SYSV_ERROR_HANDLING", "y");
  void* library = open(search, found.why_not);
  if (library == nullptr) return found;
  const auto made = std::make_shared<Library>();
  found.why_not = made->fill(library);
  if (found.why_not.empty()) found.library = made;
  return found;
}

std::string Library::fill(void* library) {
  link_map* map = nullptr;
  if (::dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) path_ = map->l_name;
  const char* missing = nullptr;
  const auto find = [&]<typename F>(const char* name, F*& slot) {
    slot = reinterpret_cast<F*>(::dlsym(library, name));
    if (slot == nullptr && missing == nullptr) missing = name;
  };
  find("ucp_get_version", get_version);
  if (get_version == nullptr) return fmt::format("{} does not say its version", path_);
  unsigned major = 0;
  unsigned minor = 0;
  unsigned patch = 0;
  get_version(&major, &minor, &patch);
  version_ = fmt::format("{}.{}.{}", major, minor, patch);
  if (major != kMajor || minor < kOldestMinor) {
    return fmt::format(
        "{} is UCX {}, and hocket needs {}.{} or newer", path_, version_, kMajor, kOldestMinor);
  }
  find("ucp_config_read", config_read);
  find("ucp_config_modify", config_modify);
  find("ucp_config_release", config_release);
  find("ucp_init_version", init_version);
  find("ucp_cleanup", cleanup);
  find("ucp_context_query", context_query);
  find("ucp_worker_create", worker_create);
  find("ucp_worker_destroy", worker_destroy);
  find("ucp_worker_get_address", worker_get_address);
  find("ucp_worker_release_address", worker_release_address);
  find("ucp_worker_get_efd", worker_get_efd);
  find("ucp_worker_arm", worker_arm);
  find("ucp_worker_progress", worker_progress);
  find("ucp_worker_flush_nbx", worker_flush_nbx);
  find("ucp_worker_set_am_recv_handler", worker_set_am_recv_handler);
  find("ucp_ep_create", ep_create);
  find("ucp_ep_close_nbx", ep_close_nbx);
  find("ucp_am_send_nbx", am_send_nbx);
  find("ucp_tag_send_nbx", tag_send_nbx);
  find("ucp_tag_recv_nbx", tag_recv_nbx);
  find("ucp_request_cancel", request_cancel);
  find("ucp_ep_print_info", ep_print_info);
  find("ucp_request_check_status", request_check_status);
  find("ucp_request_free", request_free);
  find("ucs_status_string", status_string);  // of a library that libucp brings with it
  return missing == nullptr ? "" : fmt::format("{} has no {}", path_, missing);
}

}  // namespace hocket::engines::ucx
