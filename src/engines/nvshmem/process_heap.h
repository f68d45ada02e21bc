// NVSHMEM in this process, whatever jobs come and go.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engines/nvshmem/heap.h"

namespace hocket::nvshmem {

// The process's heap, as NVSHMEM is one a process. Null: it has not been found so far, and why.
// Reads HOCKET_NVSHMEM_LIBRARY and HOCKET_NVLINK_MULTICAST. `folders`: where Python's packages have
// their libraries. Any thread.
std::shared_ptr<Heap> heap_of_process(const std::vector<std::string>& folders,
                                      std::string& why_not);

}  // namespace hocket::nvshmem
