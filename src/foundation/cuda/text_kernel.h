// Kernels in PTX, the driver's own language. The driver compiles them when it loads them, so a
// build needs no CUDA toolkit.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "foundation/cuda/context.h"

namespace hocket::cuda {

// Returns `text` with the first text of each pair replaced by the second. So one text can serve
// several element types.
std::string with_words(std::string_view text,
                       std::initializer_list<std::pair<std::string_view, std::string_view>> words);

// A resource: a loaded kernel of one GPU. It does not change. Any thread may use it, while the
// GPU's context is current in the thread. Throws DeviceError.
class TextKernel {
 public:
  // Loads `text`. `name` is the kernel's entry point in it.
  TextKernel(std::shared_ptr<const DeviceContext> device,
             const std::string& text,
             const char* name);
  ~TextKernel();
  TextKernel(const TextKernel&) = delete;
  TextKernel& operator=(const TextKernel&) = delete;

  void launch(const LaunchConfig& config, void** arguments) const;

 private:
  const std::shared_ptr<const DeviceContext> device_;
  const char* const name_;
  Module module_ = nullptr;
  Function function_ = nullptr;
};

}  // namespace hocket::cuda
