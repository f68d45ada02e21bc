#include "engines/ucx/library.h"

#include <fmt/format.h>

#include "engines/ucx/one_direction.h"
#include "foundation/base/config.h"
#include "foundation/base/log.h"

namespace hocket::engines::ucx {
namespace {

// The system's UCX comes first, because it supports the networks of its site. A Python package's
// UCX may not.
constexpr os::LibraryName kName{"libucp.so.0",
                                "HOCKET_UCX_LIBRARY",
                                "UCX",
                                "Debian: libucx0; pip: libucx-cu13",
                                os::LibraryName::First::kSystem};
constexpr unsigned kMajor = 1;
constexpr unsigned kOldestMinor = 12;  // the first version with these active messages

}  // namespace

FoundUcx UcxLibrary::find(const os::LibrarySearch& search) {
  FoundUcx found;
  // UCX reads these variables when it is loaded. Values that the user has set are kept. UCX's
  // signal handlers and its reports of broken connections are turned off, because hocket reports
  // dead ranks.
  base::default_environment("UCX_HANDLE_ERRORS", "none");
  base::default_environment("UCX_LOG_LEVEL", "fatal");
  base::default_environment("UCX_WARN_UNUSED_ENV_VARS", "n");
  // Without this, UCX blocks in the kernel for minutes if a host does not exist, beyond any
  // deadline.
  base::default_environment("UCX_TCP_CONN_NB", "y");
  // If the user selects shared memory (UCX_TLS), let UCX also use it for peers that may fail.
  base::default_environment("UCX_POSIX_ERROR_HANDLING", "y");
  base::default_environment("UCX_SYSV_ERROR_HANDLING", "y");
  os::LoadedLibrary library(kName, search, found.why_not);
  if (!library) return found;
  const auto made = std::make_shared<UcxLibrary>();
  found.why_not = made->fill(library);
  if (!found.why_not.empty()) return found;
  if (!handle_one_direction(reinterpret_cast<const void*>(made->status_string))) {
    base::log(base::LogLevel::kDebug,
              "this UCX may crash when both ends of a connection give it up: its order of events "
              "could not be changed");
  }
  found.library = made;
  return found;
}

std::string UcxLibrary::fill(os::LoadedLibrary& library) {
  path_ = library.path();
  if (!library.look("ucp_get_version", get_version))
    return fmt::format("{} does not say its version", path_);
  unsigned major = 0;
  unsigned minor = 0;
  unsigned patch = 0;
  get_version(&major, &minor, &patch);
  version_ = fmt::format("{}.{}.{}", major, minor, patch);
  if (major != kMajor || minor < kOldestMinor) {
    return fmt::format(
        "{} is UCX {}, and hocket needs {}.{} or newer", path_, version_, kMajor, kOldestMinor);
  }
  library.need("ucp_config_read", config_read);
  library.need("ucp_config_modify", config_modify);
  library.need("ucp_config_release", config_release);
  library.need("ucp_init_version", init_version);
  library.need("ucp_cleanup", cleanup);
  library.need("ucp_context_query", context_query);
  library.need("ucp_worker_create", worker_create);
  library.need("ucp_worker_destroy", worker_destroy);
  library.need("ucp_worker_get_address", worker_get_address);
  library.need("ucp_worker_release_address", worker_release_address);
  library.need("ucp_worker_get_efd", worker_get_efd);
  library.need("ucp_worker_arm", worker_arm);
  library.need("ucp_worker_progress", worker_progress);
  library.need("ucp_worker_flush_nbx", worker_flush_nbx);
  library.need("ucp_worker_set_am_recv_handler", worker_set_am_recv_handler);
  library.need("ucp_ep_create", ep_create);
  library.need("ucp_ep_flush_nbx", ep_flush_nbx);
  library.need("ucp_ep_close_nbx", ep_close_nbx);
  library.need("ucp_am_send_nbx", am_send_nbx);
  library.need("ucp_tag_send_nbx", tag_send_nbx);
  library.need("ucp_tag_recv_nbx", tag_recv_nbx);
  library.need("ucp_request_cancel", request_cancel);
  library.need("ucp_ep_print_info", ep_print_info);
  library.need("ucp_request_check_status", request_check_status);
  library.need("ucp_request_free", request_free);
  library.need("ucs_status_string", status_string);  // in libucs, which libucp loads
  return library.why_not_whole();
}

}  // namespace hocket::engines::ucx
