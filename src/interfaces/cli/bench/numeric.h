// Fourier transforms and products of matrices as `hocket bench` measures them: how they are spread,
// what goes in, and whether the result is right. All libraries spread them alike.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "interfaces/cli/bench/case.h"
#include "interfaces/cli/bench/data.h"

namespace hocket::cli::bench {

// A rank's part of an N x N matrix in blocks that are dealt out over a grid, along columns. A
// value.
struct MatrixPart {
  static constexpr std::size_t kBlock = 64;
  MatrixPart(std::size_t n, Seat seat);

  std::array<std::size_t, 2> grid;   // as square as the ranks allow; ranks go along its rows
  std::array<std::size_t, 2> place;  // of this rank in it
  std::size_t height, width;
  std::size_t count() const noexcept { return height * width; }
  // The index in the whole of what lies at `local` along an axis.
  std::size_t whole(std::size_t axis, std::size_t local) const noexcept;
};

// The shape of a rank's arrays. Of kFft and kFftTransposed slabs of the first axis, and for the
// result of the second; ranks have to divide N. Of kMatmul `in` is both factors, one after the
// other.
Shape numeric_shape(const Case& subject, Seat seat) noexcept;

// As fill and check in data.h.
void fill_numeric(const Case& subject, Seat seat, std::uint32_t seed, Arrays arrays);
std::string check_numeric(const Case& subject, Seat seat, std::uint32_t seed, Arrays arrays);

}  // namespace hocket::cli::bench
