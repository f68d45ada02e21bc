// How long calls on GPUs take with each engine, as measured: what the choice between them is made
// by.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/call.h"
#include "engine/provider.h"

namespace hocket::engine {

// A value. Made of text, a measurement a line, which `hocket bench --tune` writes:
//
//   # anything
//   peer all_reduce 4  8:3.28 4096:3.8 65536:7.47
//
// is engine (with ".symmetric" where out lies in symmetric memory), collective, number of ranks,
// then bytes:microseconds, bytes rising. Bytes are those of the whole array: of all ranks together
// for all_gather, reduce_scatter, all_to_all, gather and scatter. What is not a line like that is
// refused with its number.
class CostTable {
 public:
  CostTable() = default;
  // Throws InvalidArgument.
  static CostTable parse(std::string_view text);
  // Of what engines were measured to take; see Provider::shipped_costs.
  static CostTable shipped(const ProviderList& providers);

  // Of a call by `ranks` ranks: on a line between the sizes measured next to it, for the number of
  // ranks measured that is nearest. Absent: nothing was measured of that.
  std::optional<double> microseconds(std::string_view engine,
                                     const Signature& signature,
                                     int ranks) const noexcept;
  // Equal for equal tables.
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
