// Ranks of one machine that take it for several hosts.
#pragma once

#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "ranks.h"

namespace hocket::multiprocess {

// The host that a rank pretends to be on.
using Placement = int (*)(int rank);
inline int in_pairs(int rank) { return rank / 2; }
inline int in_turn(int rank) { return rank % 2; }
inline int unequal(int rank) { return rank == 0 ? 0 : 1; }
inline int each_alone(int rank) { return rank; }

// Messages between hosts need UCX.
class PretendedHosts : public testing::Test {
 protected:
  void SetUp() override {
    void* ucx = dlopen("libucp.so.0", RTLD_LAZY);
    if (ucx == nullptr) GTEST_SKIP() << "there is no UCX here (libucp.so.0)";
    dlclose(ucx);
  }
};

inline World join(const Rank& rank, Placement placement) {
  setenv("HOCKET_HOST", fmt::format("{}/", placement(rank.rank())).c_str(), 1);
  return rank.join();
}

}  // namespace hocket::multiprocess
