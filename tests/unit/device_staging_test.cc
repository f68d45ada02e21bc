// The words by which streams wait for calls that the host carries, on the fake driver's GPUs.
#include <gtest/gtest.h>

#include "calls/device/streams/staging.h"
#include "hocket/error.h"

namespace hocket::device {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Staging, ACallThatNeverBeganReleasesNoStream) {
  const cuda::FoundDriver found = cuda::Driver::find();
  ASSERT_TRUE(found.driver) << found.why_not;
  const auto gpu = std::make_shared<const cuda::DeviceContext>(found.driver, 0);
  const cuda::DeviceGuard current(*gpu);
  const cuda::DeviceBuffer array(gpu, sizeof(float));
  const engine::Call call{.signature = {.kind = engine::Kind::kAllReduce,
                                        .dtype = DType::kFloat32,
                                        .memory = MemoryKind::kCuda,
                                        .count = 1},
                          .in = array.data(),
                          .out = array.data()};
  const auto staging = std::make_shared<Staging>(gpu);
  const cuda::OwnedStream stream(gpu);
  auto earlier = staging->prepare(call, 0, 2);
  staging->give(*earlier, stream.get());
  staging->wait_and_copy_back(*earlier, stream.get());

  const cuda::OwnedStream other(gpu);
  auto dropped = staging->prepare(call, 0, 2);
  staging->give(*dropped, other.get());
  dropped.reset();
  EXPECT_FALSE(cuda::drain(gpu->driver(), stream.get(), base::Deadline::in(milliseconds(100))));
  earlier.reset();
  EXPECT_TRUE(cuda::drain(gpu->driver(), stream.get(), base::Deadline::in(seconds(20))));
}

}  // namespace
}  // namespace hocket::device
