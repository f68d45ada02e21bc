// The kernels that hocket has in the driver's own language, done by the host. There are no others:
// compiled ones are refused.
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "fake.h"
#include "hocket/types.h"

using namespace hocket::cuda;

// A kernel, by its name. `launch` does the same work on the host, in the order of the stream, with
// the arguments of the launch.
struct CUfunc_st {
  std::string_view name;
  Result (*launch)(Stream stream, void** arguments);
};

namespace fake {
namespace {

template <typename T>
T argument(void** arguments, std::size_t i) {
  return *static_cast<T*>(arguments[i]);
}

template <typename T>
Result scale(Stream stream, void** arguments) {
  auto* const data = argument<T*>(arguments, 0);
  const auto count = argument<std::size_t>(arguments, 1);
  const auto factor = argument<T>(arguments, 2);
  return enqueue(stream, [=] {
    for (std::size_t i = 0; i < count; ++i) data[i] *= factor;
  });
}

struct Sixteen {
  std::uint64_t words[2];
};
template <typename T>
T same(T x) {
  return x;
}
template <typename T>
std::complex<T> conjugate(std::complex<T> x) {
  return std::conj(x);
}

template <typename T>
hocket::float16 half(T x) {
  return hocket::float16(static_cast<float>(x));
}

template <typename T, auto change>
Result copy(Stream stream, void** arguments) {
  const auto* const from = argument<const T*>(arguments, 0);
  auto* const to = argument<decltype(change(T{}))*>(arguments, 1);
  const auto* const table = argument<const std::uint32_t*>(arguments, 2);
  const auto rows = argument<std::uint32_t>(arguments, 3),
             columns = argument<std::uint32_t>(arguments, 4);
  const auto from_stride = argument<std::size_t>(arguments, 5),
             to_stride = argument<std::size_t>(arguments, 6);
  return enqueue(stream, [=] {
    const std::uint32_t* const of_columns = table + 2 * rows;
    for (std::uint32_t j = 0; j < columns; ++j) {
      for (std::uint32_t i = 0; i < rows; ++i) {
        to[table[rows + i] + of_columns[columns + j] * to_stride] =
            change(from[table[i] + of_columns[j] * from_stride]);
      }
    }
  });
}

template <std::size_t unit>
Result box(Stream stream, void** arguments) {
  const auto* const from = argument<const std::byte*>(arguments, 0);
  auto* const to = argument<std::byte*>(arguments, 1);
  const auto width = argument<std::uint32_t>(arguments, 2),
             rows = argument<std::uint32_t>(arguments, 3),
             total = argument<std::uint32_t>(arguments, 4);
  const auto from_row = argument<std::size_t>(arguments, 5),
             to_row = argument<std::size_t>(arguments, 6),
             from_plane = argument<std::size_t>(arguments, 7),
             to_plane = argument<std::size_t>(arguments, 8);
  return enqueue(stream, [=] {
    for (std::size_t i = 0; i < total; i += width) {
      const std::size_t row = i / width % rows, plane = i / width / rows;
      std::memcpy(to + row * to_row + plane * to_plane,
                  from + row * from_row + plane * from_plane,
                  width * unit);
    }
  });
}

// As the kernels for 8 bits round: what is too large becomes the largest number.
template <typename T>
T rounded(float value) {
  if constexpr (sizeof(T) == 1) {
    const float largest = std::is_same_v<T, hocket::float8_e4m3> ? 448 : 57344;
    if (std::abs(value) > largest) value = std::copysign(largest, value);
  }
  return static_cast<T>(value);
}

template <typename T, std::uint32_t together>
Result finish(Stream stream, void** arguments) {
  const auto* const sum = argument<const float*>(arguments, 0);
  const auto* const added = argument<const T*>(arguments, 1);
  auto* const target = argument<T*>(arguments, 2);
  const auto rows = together * argument<std::uint32_t>(arguments, 3),
             columns = argument<std::uint32_t>(arguments, 4);
  const auto sum_stride = argument<std::size_t>(arguments, 5),
             added_stride = argument<std::size_t>(arguments, 6),
             target_stride = argument<std::size_t>(arguments, 7);
  const auto alpha = argument<float>(arguments, 8), beta = argument<float>(arguments, 9);
  return enqueue(stream, [=] {
    for (std::uint32_t j = 0; j < columns; ++j) {
      for (std::uint32_t i = 0; i < rows; ++i) {
        float value = alpha * sum[i + j * sum_stride];
        if (added != nullptr) value += beta * static_cast<float>(added[i + j * added_stride]);
        target[i + j * target_stride] = rounded<T>(value);
      }
    }
  });
}

CUfunc_st kernels[] = {
    {"hocket_scale_float", scale<float>},
    {"hocket_scale_double", scale<double>},
    {"hocket_box_4", box<4>},
    {"hocket_box_8", box<8>},
    {"hocket_box_16", box<16>},
    {"hocket_copy_1", copy<std::uint8_t, same<std::uint8_t>>},
    {"hocket_copy_2", copy<std::uint16_t, same<std::uint16_t>>},
    {"hocket_copy_4", copy<std::uint32_t, same<std::uint32_t>>},
    {"hocket_copy_8", copy<std::uint64_t, same<std::uint64_t>>},
    {"hocket_copy_16", copy<Sixteen, same<Sixteen>>},
    {"hocket_copy_conjugate_8", copy<std::complex<float>, conjugate<float>>},
    {"hocket_copy_conjugate_16", copy<std::complex<double>, conjugate<double>>},
    {"hocket_copy_e4m3_to_float16", copy<hocket::float8_e4m3, half<hocket::float8_e4m3>>},
    {"hocket_copy_e5m2_to_float16", copy<hocket::float8_e5m2, half<hocket::float8_e5m2>>},
    {"hocket_finish_float16", finish<hocket::float16, 1>},
    {"hocket_finish_float16_by_4", finish<hocket::float16, 4>},
    {"hocket_finish_bfloat16", finish<hocket::bfloat16, 1>},
    {"hocket_finish_bfloat16_by_4", finish<hocket::bfloat16, 4>},
    {"hocket_finish_e4m3", finish<hocket::float8_e4m3, 1>},
    {"hocket_finish_e4m3_by_4", finish<hocket::float8_e4m3, 4>},
    {"hocket_finish_e5m2", finish<hocket::float8_e5m2, 1>},
    {"hocket_finish_e5m2_by_4", finish<hocket::float8_e5m2, 4>},
};

Result module_load_data(Module* module, const void* image) {
  // PTX is a text, which hocket begins with a newline. Compiled code begins with a number instead.
  const auto* text = static_cast<const char*>(image);
  if (text[0] != '\n') return Result::kNotSupported;
  for (CUfunc_st& kernel : kernels) {
    const std::string entry = ".entry " + std::string(kernel.name) + "(";
    if (std::strstr(text, entry.c_str()) == nullptr) continue;
    *module = reinterpret_cast<Module>(&kernel);
    return Result::kSuccess;
  }
  return Result::kNotSupported;
}
Result module_unload(Module) { return Result::kSuccess; }

Result module_get_function(Function* function, Module module, const char* name) {
  *function = reinterpret_cast<Function>(module);
  return (*function)->name == name ? Result::kSuccess : Result::kNotSupported;
}

Result launch_kernel_ex(const LaunchConfig* config, Function function, void** arguments, void**) {
  return function->launch(config->stream, arguments);
}

}  // namespace

std::vector<Entry> kernel_functions() {
  return {entry("cuModuleLoadData", module_load_data),
          entry("cuModuleUnload", module_unload),
          entry("cuModuleGetFunction", module_get_function),
          entry("cuLaunchKernelEx", launch_kernel_ex)};
}

}  // namespace fake
