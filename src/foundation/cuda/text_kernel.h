// Kernels that are written in the driver's own language, which it compiles where it loads them:
// hocket is built with no toolkit, too.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "foundation/cuda/context.h"

namespace hocket::cuda {

// `text` with words in place of others: one text for several types.
std::string with_words(std::string_view text,
                       std::initializer_list<std::pair<std::string_view, std::string_view>> words);

// A resource: a kernel on one GPU. Immutable, any thread whose context is the GPU's. Throws
// DeviceError.
class TextKernel {
 public:
  // `name` is the entry's in `text`.
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
