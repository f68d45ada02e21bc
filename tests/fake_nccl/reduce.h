// Reductions of the data that ranks have sent.
#pragma once

#include <cstddef>
#include <vector>

#include "engines/nccl/abi.h"

namespace fake_nccl {

std::size_t size_of(hocket::engines::nccl::NcclType type);
// Reduces all of `sources`, in their order, into `out`.
void reduce(void* out,
            const std::vector<const void*>& sources,
            std::size_t count,
            hocket::engines::nccl::NcclType type,
            hocket::engines::nccl::RedOp op);

}  // namespace fake_nccl
