#include "foundation/os/memfd.h"

#include <sys/mman.h>

#include <cerrno>

namespace hocket::os {
namespace {

constexpr unsigned int kNoExecSeal = 0x8;  // MFD_NOEXEC_SEAL, which headers may lack

}  // namespace

Fd make_memfd(const char* name) noexcept {
  constexpr unsigned int kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  // Some systems require MFD_NOEXEC_SEAL (sysctl vm.memfd_noexec). Kernels before 6.3 do not know
  // it.
  Fd made(::memfd_create(name, kFlags | kNoExecSeal));
  if (!made && errno == EINVAL) made = Fd(::memfd_create(name, kFlags));
  return made;
}

}  // namespace hocket::os
