// The NVSHMEM heap of this process, shared by all its jobs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engines/nvshmem/heap.h"

namespace hocket::nvshmem {

// Returns the heap of this process. If NVSHMEM is not found, returns null and sets `why_not` to the
// reason. Reads HOCKET_NVSHMEM_LIBRARY and HOCKET_NVLINK_MULTICAST. `folders` are the library
// folders of Python packages. Any thread may call it.
std::shared_ptr<Heap> heap_of_process(const std::vector<std::string>& folders,
                                      std::string& why_not);

}  // namespace hocket::nvshmem
