// Reductions by a function of the program, over messages. The call works in rounds. In each round
// every rank receives one part of all ranks' arrays, and combines this part. Then it sends success
// or failure to all ranks, and the result to the ranks that need it.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/kinds.h"
#include "engines/algorithm/messages.h"

namespace hocket::algorithm {

// One rank's memory for calls of one size. It serves one call at a time. A *unit* is the smallest
// group of bytes that the function combines together; `units` and UnitRange count units. A
// resource.
class ByOperator {
 public:
  // The parameters of an all_reduce, reduce, reduce_scatter, scan or exscan.
  struct What {
    engine::Kind kind = engine::Kind::kAllReduce;
    int root = 0;
    std::size_t units = 0;  // in the whole array; for reduce_scatter, in one share
    std::size_t unit_bytes = 1;
    int rank = 0;
    int size = 1;
  };
  // The rank whose function failed, and the text of its error. If several ranks failed, the lowest
  // one. -1: no rank failed.
  struct Fault {
    int rank = -1;
    std::string text;
  };
  // Replaces each of `units` units at `left` by its combination with the unit at `right`.
  using Combine = std::function<void(std::byte* left, const std::byte* right, std::size_t units)>;

  // Allocates all memory that the calls need.
  explicit ByOperator(const What& what);

  // Carries out one call. `out` may be `in`. `combine` and `fault` must outlive the task. All ranks
  // get the same `fault`. After a fault the contents of `out` are undefined.
  engine::Task carry(
      Endpoint at, const std::byte* in, std::byte* out, const Combine& combine, Fault& fault);

 private:
  struct UnitRange {
    std::size_t first = 0;
    std::size_t count = 0;
  };
  static UnitRange part_of(std::size_t total, std::size_t n, std::size_t i) noexcept;

  bool is_scattered() const noexcept;
  std::size_t length(UnitRange part) const noexcept { return part.count * what_.unit_bytes; }
  UnitRange part_of_round(UnitRange round, std::size_t i) const noexcept;
  std::span<std::byte> row(std::size_t i, UnitRange mine) noexcept {
    return {rows_.data() + i * length(mine), length(mine)};
  }
  std::span<const std::byte> given_to(std::size_t i, const std::byte* in, UnitRange round) const;
  std::span<std::byte> taken_from(std::size_t i, std::byte* out, UnitRange round) const;

  engine::Task exchange(const Endpoint& at, const std::byte* in, UnitRange round, UnitRange mine);
  std::string combined(const Combine& combine, UnitRange mine);
  void combine_prefixes(const Combine& combine, UnitRange mine);
  engine::Task hand_out(
      const Endpoint& at, std::byte* out, UnitRange round, UnitRange mine, const std::string& own);
  engine::Task hear_faults(const Endpoint& at, const std::string& own, Fault& fault);

  const What what_;
  const std::size_t n_;
  const std::size_t me_;
  std::size_t rounds_ = 1;
  std::vector<std::byte> rows_, so_far_;
  std::vector<std::uint64_t> told_;  // by rank: length of its error text in bytes; 0: no fault
};

}  // namespace hocket::algorithm
