// UCX, found at run time.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "engines/ucx/abi.h"
#include "foundation/os/library.h"

namespace hocket::engines::ucx {

struct FoundUcx;

// The loaded library, and a table of its functions under UCP's names without "ucp". It does not
// change after its creation, so any thread may use it. The library is never unloaded. A resource.
class UcxLibrary {
 public:
  // Finds and loads UCX. If UCX is missing, this does not throw, and `why_not` has the reason.
  static FoundUcx find(const os::LibrarySearch& search = {});

  const std::string& version() const noexcept { return version_; }  // "1.13.1"
  const std::string& path() const noexcept { return path_; }

  void (*get_version)(unsigned*, unsigned*, unsigned*) = nullptr;
  UcsStatus (*config_read)(const char* prefix, const char* file, Config*) = nullptr;
  UcsStatus (*config_modify)(Config, const char* name, const char* value) = nullptr;
  void (*config_release)(Config) = nullptr;
  UcsStatus (*init_version)(unsigned, unsigned, const ContextParams*, Config, Context*) = nullptr;
  void (*cleanup)(Context) = nullptr;
  UcsStatus (*context_query)(Context, ContextAttributes*) = nullptr;
  UcsStatus (*worker_create)(Context, const WorkerParams*, Worker*) = nullptr;
  void (*worker_destroy)(Worker) = nullptr;
  UcsStatus (*worker_get_address)(Worker, Address**, std::size_t*) = nullptr;
  void (*worker_release_address)(Worker, Address*) = nullptr;
  UcsStatus (*worker_get_efd)(Worker, int*) = nullptr;
  UcsStatus (*worker_arm)(Worker) = nullptr;
  unsigned (*worker_progress)(Worker) = nullptr;
  StatusPointer (*worker_flush_nbx)(Worker, const RequestParam*) = nullptr;
  UcsStatus (*worker_set_am_recv_handler)(Worker, const AmHandlerParam*) = nullptr;
  UcsStatus (*ep_create)(Worker, const EndpointParams*, Endpoint*) = nullptr;
  StatusPointer (*ep_flush_nbx)(Endpoint, const RequestParam*) = nullptr;
  StatusPointer (*ep_close_nbx)(Endpoint, const RequestParam*) = nullptr;
  StatusPointer (*am_send_nbx)(Endpoint,
                               unsigned id,
                               const void* header,
                               std::size_t header_length,
                               const void* data,
                               std::size_t length,
                               const RequestParam*) = nullptr;
  StatusPointer (*tag_send_nbx)(Endpoint,
                                const void* data,
                                std::size_t length,
                                std::uint64_t tag,
                                const RequestParam*) = nullptr;
  StatusPointer (*tag_recv_nbx)(Worker,
                                void* data,
                                std::size_t length,
                                std::uint64_t tag,
                                std::uint64_t mask,
                                const RequestParam*) = nullptr;
  void (*request_cancel)(Worker, void*) = nullptr;
  void (*ep_print_info)(Endpoint, std::FILE*) = nullptr;
  UcsStatus (*request_check_status)(void*) = nullptr;
  void (*request_free)(void*) = nullptr;
  const char* (*status_string)(UcsStatus) = nullptr;

 private:
  std::string fill(os::LoadedLibrary& library);  // returns the reason of a failure, or ""

  std::string path_;
  std::string version_;
};

struct FoundUcx {
  std::shared_ptr<const UcxLibrary> library;
  std::string why_not;
};

}  // namespace hocket::engines::ucx
