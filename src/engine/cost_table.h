// The measured times of calls on GPUs, for each engine. They decide which engine carries a call.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/call.h"
#include "engine/provider.h"

namespace hocket::engine {

// The table. A value. Its text has one measurement in each line, as `hocket bench --tune` writes
// it:
//
//   # a comment
//   peer all_reduce 4  8:3.28 4096:3.8 65536:7.47
//   |    |          |  bytes:microseconds, with rising bytes
//   |    |          number of ranks
//   |    collective
//   engine, with ".symmetric" if `out` lies in symmetric memory
//
// The bytes are those of the whole array. For all_gather, reduce_scatter, all_to_all, gather and
// scatter, it is the array with the parts of all ranks. Any other line is refused, with its number.
class CostTable {
 public:
  CostTable() = default;
  // Throws InvalidArgument for a line that is refused.
  static CostTable parse(std::string_view text);
  // Returns the times that were measured before the release; see Provider::shipped_costs.
  static CostTable shipped(const ProviderList& providers);

  // Returns the time of a call by `ranks` ranks. It interpolates linearly between the nearest
  // measured sizes, for the nearest measured number of ranks. Absent: there is no measurement.
  std::optional<double> microseconds(std::string_view engine,
                                     const Signature& signature,
                                     int ranks) const noexcept;
  // Equal tables have equal hashes.
  std::uint64_t hash() const noexcept { return hash_; }

 private:
  struct Point {
    double bytes = 0;
    double microseconds = 0;
  };
  struct Row {
    std::string engine;
    Kind kind = Kind::kNone;
    int ranks = 0;
    std::vector<Point> points;
  };
  static Row parse_row(std::string_view line, int number);
  static double on_line(const std::vector<Point>& points, double bytes) noexcept;

  std::vector<Row> rows_;
  std::uint64_t hash_ = 0;
};

}  // namespace hocket::engine
