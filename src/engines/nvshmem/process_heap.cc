#include "engines/nvshmem/process_heap.h"

#include <mutex>

#include "foundation/base/config.h"

namespace hocket::nvshmem {

std::shared_ptr<Heap> heap_of_process(const std::vector<std::string>& folders,
                                      std::string& why_not) {
  // These objects are never freed, because threads of NVSHMEM may outlive the process's globals.
  static std::mutex& mutex = *new std::mutex;
  static auto& heap = *new std::shared_ptr<Heap>;
  const std::lock_guard lock(mutex);
  if (!heap) {
    const FoundNvshmem found = NvshmemLibrary::find(
        {.file = base::environment("HOCKET_NVSHMEM_LIBRARY").value_or(""), .folders = folders});
    why_not = found.why_not;
    if (found.library) {
      heap =
          std::make_shared<Heap>(found.library, base::environment_switch(base::kMulticastVariable));
    }
  }
  return heap;
}

}  // namespace hocket::nvshmem
