// Kernels in the driver's own language (PTX), which the driver compiles when it loads them. So a
// build needs no toolkit.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "foundation/cuda/context.h"

namespace hocket::cuda {

// Returns `text` with some words replaced, so that one text serves several types.
std::string with_words(std::string_view text,
                       std::initializer_list<std::pair<std::string_view, std::string_view>> words);

// A resource: a kernel on one GPU. It does not change; any thread may use it in which the GPU's
// context is current. Throws DeviceError.
class TextKernel {
 public:
  // `name` is the name of the entry in `text`.
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
