// The findings of `hocket doctor --hosts`, their table, and the problems that follow from them.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "hocket/machine.h"
#include "interfaces/cli/report.h"

namespace hocket::cli {

// A value: one host. Its JSON is unchecked, and any part may be missing.
struct HostFinding {
  std::string name;
  std::string unreachable;  // the reason; empty: hocket runs there
  nlohmann::json facts = nlohmann::json::object();
  nlohmann::json listens = nlohmann::json::object();
  nlohmann::json heard = nlohmann::json::array();
  double clock = 0;        // seconds by which its clock is ahead of the head's
  double clock_error = 0;  // the largest error of `clock`, in seconds

  bool is_heard(int host) const;
  std::string address() const { return listens.value("address", ""); }
};

// A value: the connection from one host to another, by their numbers.
struct WayFinding {
  int from = 0;
  int to = 0;
  nlohmann::json result = nlohmann::json::object();

  std::string error() const { return result.value("error", "not tried"); }
  bool works() const { return error().empty(); }
};

// A value.
struct HostsFindings {
  std::vector<HostFinding> hosts;
  std::vector<WayFinding> ways;
};

// Returns the problems, worst first, each with a way to solve it.
std::vector<Problem> find_problems(const HostsFindings& findings);

std::string text_of(const HostsFindings& findings, const Colours& colours);
std::string json_of(const HostsFindings& findings);

}  // namespace hocket::cli
