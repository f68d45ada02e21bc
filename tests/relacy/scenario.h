// A GoogleTest face for the simulator: a program passes as it is, and fails with any mistake.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "simulator.h"

namespace hocket::relacy {

// HOCKET_RELACY_EXECUTIONS: for tools/check/relacy.sh, which has minutes.
inline int executions(int usual) {
  const char* asked = std::getenv("HOCKET_RELACY_EXECUTIONS");
  return asked == nullptr ? usual : std::atoi(asked);
}

// Why a weakened operation, or a dropped one, may go unnoticed by a program: by a part of the
// site's name.
using Harmless = std::map<std::string, std::string>;

inline const char* reason_of(const Harmless& harmless, const std::string& site) {
  for (const auto& [part, reason] : harmless) {
    if (site.find(part) != std::string::npos) return reason.c_str();
  }
  return nullptr;
}

// Asserts two things. The program holds in every order that is tried. And it needs every operation
// that orders others: if one is relaxed, or a store is left out, some order breaks the program. The
// second part shows that the program can fail.
template <typename P>
void holds_and_needs_all(const Harmless& weak_enough, const Harmless& may_be_left_out, int usual) {
  const Factory make = [] { return std::make_unique<P>(); };
  const Outcome outcome = simulate(P::kThreads, make, {.executions = executions(usual)});
  if (!outcome.passed) {
    const Outcome shown =
        simulate(P::kThreads, make, {.executions = executions(usual), .show = true});
    FAIL() << outcome.text << "\n" << shown.text;
  }
  EXPECT_FALSE(outcome.ordering.empty());
  const auto is_found = [&](Mistake::Kind kind, const std::string& site) {
    return !simulate(
                P::kThreads, make, {.executions = executions(4 * usual), .mistake = {kind, site}})
                .passed;
  };
  for (const std::string& site : outcome.ordering) {
    if (reason_of(weak_enough, site) != nullptr) continue;
    EXPECT_TRUE(is_found(Mistake::Kind::kRelaxed, site)) << "relaxed, unnoticed: " << site;
  }
  for (const std::string& site : outcome.storing) {
    if (reason_of(may_be_left_out, site) != nullptr) continue;
    EXPECT_TRUE(is_found(Mistake::Kind::kDropped, site)) << "left out, unnoticed: " << site;
  }
}

}  // namespace hocket::relacy

#define HOCKET_CHECK(condition) \
  ::hocket::relacy::check(condition, #condition, std::source_location::current())
