#include "foundation/cuda/text_kernel.h"

#include <fmt/format.h>

#include "foundation/cuda/launch_gate.h"
#include "foundation/cuda/stream.h"

namespace hocket::cuda {

std::string with_words(std::string_view text,
                       std::initializer_list<std::pair<std::string_view, std::string_view>> words) {
  std::string made(text);
  for (const auto& [word, by] : words) {
    for (std::size_t at = 0; (at = made.find(word, at)) != std::string::npos; at += by.size()) {
      made.replace(at, word.size(), by);
    }
  }
  return made;
}

TextKernel::TextKernel(std::shared_ptr<const DeviceContext> device,
                       const std::string& text,
                       const char* name)
    : device_(std::move(device)), name_(name) {
  const Driver& driver = device_->driver();
  const OutsideCapture outside(driver);
  const LaunchPause pause(*device_);
  check(driver,
        driver.module_load_data(&module_, text.c_str()),
        fmt::format("load the kernel {}", name));
  const Result found = driver.module_get_function(&function_, module_, name);
  if (found != Result::kSuccess) driver.module_unload(module_);
  check(driver, found, fmt::format("find the kernel {}", name));
}

TextKernel::~TextKernel() {
  const DeviceGuard guard(*device_);
  const LaunchPause pause(*device_);
  if (guard.is_current()) device_->driver().module_unload(module_);
}

void TextKernel::launch(const LaunchConfig& config, void** arguments) const {
  const Driver& driver = device_->driver();
  check(driver,
        driver.launch_kernel_ex(&config, function_, arguments, nullptr),
        fmt::format("launch the kernel {}", name_));
}

}  // namespace hocket::cuda
