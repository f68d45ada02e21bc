// Names of dtypes and ops, and dispatch over them.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "foundation/core/dispatch.h"
#include "hocket/error.h"
#include "hocket/types.h"

namespace hocket {
namespace {

TEST(Names, DTypesThereAndBack) {
  std::set<std::string_view> seen;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(name_of(dtype)), dtype);
    EXPECT_TRUE(seen.insert(name_of(dtype)).second) << name_of(dtype);
  }
  EXPECT_EQ(name_of(DType::kFloat32), "float32");
  EXPECT_EQ(name_of(DType::kFloat8E4M3), "float8_e4m3");
  EXPECT_EQ(name_of(DType::kComplex128), "complex128");
  EXPECT_EQ(name_of(DType::kUInt8), "uint8");
}

TEST(Names, OpsThereAndBack) {
  for (int i = 0; i < kReduceOpCount; ++i) {
    const auto op = static_cast<ReduceOp>(i);
    EXPECT_EQ(reduce_op_from_name(name_of(op)), op);
  }
  EXPECT_EQ(reduce_op_from_name("prod"), ReduceOp::kProduct);
  EXPECT_EQ(name_of(ReduceOp::kBitXor), "bxor");
}

TEST(Names, UnknownNamesListWhatThereIs) {
  try {
    dtype_from_name("float128");
    FAIL() << "float128 was taken";
  } catch (const InvalidArgument& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("\"float128\""), std::string::npos) << message;
    EXPECT_NE(message.find("bfloat16"), std::string::npos) << message;
  }
  try {
    reduce_op_from_name("mean");
    FAIL() << "mean was taken";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("avg"), std::string::npos) << error.what();
  }
  EXPECT_THROW(dtype_from_name(""), InvalidArgument);
}

TEST(Dispatch, GivesTheTypeOfEachDType) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    core::dispatch(dtype, [&]<typename T>() {
      EXPECT_EQ(dtype_of<T>, dtype);
      EXPECT_EQ(sizeof(T), size_of(dtype));
    });
  }
  EXPECT_THROW(core::dispatch(static_cast<DType>(99), []<typename T>() {}), InvalidArgument);
}

TEST(Dispatch, GivesEachOp) {
  for (int i = 0; i < kReduceOpCount; ++i) {
    const auto op = static_cast<ReduceOp>(i);
    core::dispatch(op, [&]<ReduceOp kOp>() { EXPECT_EQ(kOp, op); });
  }
  EXPECT_THROW(core::dispatch(static_cast<ReduceOp>(99), []<ReduceOp kOp>() {}), InvalidArgument);
}

}  // namespace
}  // namespace hocket
