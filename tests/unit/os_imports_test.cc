// Functions that a loaded library takes from others, replaced while the program runs.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "foundation/os/imports.h"

namespace hocket::os {
namespace {

int first() { return -7; }
int second() { return -8; }

const void* address(int (*function)()) { return reinterpret_cast<const void*>(function); }

// The parameter is the library's file.
class Imports : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    void* library = ::dlopen(GetParam(), RTLD_LAZY | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << ::dlerror();
    call_ = reinterpret_cast<int (*)()>(::dlsym(library, "by_import"));
    ASSERT_NE(call_, nullptr);
  }
  int (*call_)() = nullptr;
};

TEST_P(Imports, AreReplacedForThatLibraryAlone) {
  const int parent = ::getppid();
  EXPECT_FALSE(replace_import(address(call_), "getpid", address(&first)));
  EXPECT_EQ(call_(), parent);
  EXPECT_TRUE(replace_import(address(call_), "getppid", address(&first)));
  EXPECT_EQ(call_(), -7);
  EXPECT_EQ(::getppid(), parent);
  EXPECT_TRUE(replace_import(address(call_), "getppid", address(&second)));
  EXPECT_EQ(call_(), -8);
}

TEST(NoLibrary, HasNoImports) {
  const int here = 0;
  EXPECT_FALSE(replace_import(&here, "getppid", address(&first)));
}

INSTANTIATE_TEST_SUITE_P(Each,
                         Imports,
                         testing::Values(IMPORTING_LAZY, IMPORTING_SEALED),
                         [](const auto& each) { return each.index == 0 ? "lazy" : "sealed"; });

}  // namespace
}  // namespace hocket::os
