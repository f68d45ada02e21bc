#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "foundation/cuda/nvlink.h"

namespace hocket::cuda {
namespace {

using Ids = std::vector<std::string>;

TEST(NvLink, IsAsTheManagementLibrarySays) {
  EXPECT_EQ(why_no_nvlink("0000:01:00.0", Ids{"0000:03:00.0", "0000:01:00.0", "0000:05:00.0"}), "");
  EXPECT_EQ(why_no_nvlink("0000:03:00.0", Ids{"0000:01:00.0"}), "");
  const std::string said =
      why_no_nvlink("0000:01:00.0", Ids{"0000:03:00.0", "0000:02:00.0", "0000:05:00.0"});
  EXPECT_NE(said.find("no NVLink between the GPUs at 0000:01:00.0 and 0000:02:00.0"),
            std::string::npos)
      << said;
}

TEST(NvLink, SaysWhichGpuIsNotKnown) {
  const std::string said = why_no_nvlink("0000:01:00.0", Ids{"0000:1b:00.0"});
  EXPECT_NE(said.find("does not know the GPU at 0000:1b:00.0"), std::string::npos) << said;
}

TEST(NvLink, NeedsNoLibraryForOneGpu) {
  EXPECT_EQ(why_no_nvlink("anywhere", Ids{"anywhere", "anywhere"}), "");
}

// The library is asked, and let go.
TEST(NvLink, LetsTheLibraryGo) {
  ASSERT_EQ(why_no_nvlink("0000:01:00.0", Ids{"0000:03:00.0"}), "");
  void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  auto get_device = reinterpret_cast<int (*)(const char*, void**)>(
      ::dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2"));
  void* device = nullptr;
  EXPECT_NE(get_device("0000:01:00.0", &device), 0);  // it has been shut down
  ::dlclose(library);
}

}  // namespace
}  // namespace hocket::cuda
