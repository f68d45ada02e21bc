// The kernels that hocket has in the driver's own language, done by the host. There are no others:
// compiled ones are refused.
#include <cstdint>
#include <cstring>
#include <string_view>

#include "fake.h"

using namespace hocket::cuda;

struct CUfunc_st {
  bool is_double;
};

namespace fake {
namespace {

Result module_load_data(Module* module, const void* image) {
  // A text ends with a zero; what is compiled begins with a number that is none.
  const auto* text = static_cast<const char*>(image);
  if (text[0] != '\n' || std::string_view(text).find("hocket_scale_") == std::string_view::npos) {
    return Result::kNotSupported;
  }
  *module = reinterpret_cast<Module>(const_cast<char*>(text));
  return Result::kSuccess;
}
Result module_unload(Module) { return Result::kSuccess; }

Result module_get_function(Function* function, Module, const char* name) {
  static CUfunc_st scales[] = {{false}, {true}};
  *function = &scales[std::strcmp(name, "hocket_scale_double") == 0 ? 1 : 0];
  return Result::kSuccess;
}

template <typename T>
void scale(void* data, std::size_t count, T factor) {
  for (std::size_t i = 0; i < count; ++i) static_cast<T*>(data)[i] *= factor;
}

Result launch_kernel_ex(const LaunchConfig* config, Function function, void** arguments, void**) {
  void* const data = *static_cast<void**>(arguments[0]);
  const auto count = *static_cast<std::size_t*>(arguments[1]);
  if (function->is_double) {
    const double factor = *static_cast<double*>(arguments[2]);
    return enqueue(config->stream, [=] { scale(data, count, factor); });
  }
  const float factor = *static_cast<float*>(arguments[2]);
  return enqueue(config->stream, [=] { scale(data, count, factor); });
}

}  // namespace

std::vector<Entry> kernel_functions() {
  return {entry("cuModuleLoadData", module_load_data),
          entry("cuModuleUnload", module_unload),
          entry("cuModuleGetFunction", module_get_function),
          entry("cuLaunchKernelEx", launch_kernel_ex)};
}

}  // namespace fake
