// Fourier transforms and matrix products in `hocket bench`: distribution, inputs, and check of the
// results. All libraries distribute them alike.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "interfaces/cli/bench/case.h"
#include "interfaces/cli/bench/data.h"

namespace hocket::cli::bench {

// A rank's part of an N x N matrix in block-cyclic distribution over a grid, along columns. A
// value.
struct MatrixPart {
  static constexpr std::size_t kBlock = 64;
  MatrixPart(std::size_t n, Seat seat);

  std::array<std::size_t, 2> grid;   // as square as the ranks allow; ranks go along its rows
  std::array<std::size_t, 2> place;  // of this rank in it
  std::size_t height, width;
  std::size_t count() const noexcept { return height * width; }
  // The index in the whole of the local index `local` along an axis.
  std::size_t whole(std::size_t axis, std::size_t local) const noexcept;
};

// The shape of a rank's arrays. kFft and kFftTransposed have slabs of the first axis; the result of
// the latter is cut along the second. The ranks have to divide N. For kMatmul, `in` is both
// factors, one after the other.
Shape numeric_shape(const Case& subject, Seat seat) noexcept;

// As fill and check in data.h.
void fill_numeric(const Case& subject, Seat seat, std::uint32_t seed, Arrays arrays);
std::string check_numeric(const Case& subject, Seat seat, std::uint32_t seed, Arrays arrays);

}  // namespace hocket::cli::bench
