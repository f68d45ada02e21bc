// Copies of boxes within and between GPUs' memory.
#pragma once

#include "cuda/driver.h"
#include "fft/lay.h"

namespace hocket::fft {

// As work of the stream. Throws DeviceError.
void copy_on(const cuda::Driver& driver,
             const Copy& copy,
             const void* from,
             void* to,
             cuda::Stream stream);

}  // namespace hocket::fft
