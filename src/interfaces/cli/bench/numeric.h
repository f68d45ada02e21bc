// Fourier transforms and matrix products in `hocket bench`: distribution, inputs, and check of the
// results. All libraries use the same distribution.
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
  MatrixPart(std::size_t n, JobRank self);

  // As square as the ranks allow; ranks are numbered along its rows.
  std::array<std::size_t, 2> grid;
  std::array<std::size_t, 2> place;  // of this rank in it
  std::size_t height, width;
  std::size_t count() const noexcept { return height * width; }
  // Returns the index in the whole matrix of the local index `local` along an axis.
  std::size_t whole(std::size_t axis, std::size_t local) const noexcept;
};

// Returns the shape of a rank's arrays. Inputs of kFft and kFftTransposed are slabs of the first
// axis. Results of kFftTransposed are slabs of the second axis. The number of ranks must divide N.
// For kMatmul, `in` is both factors, one after the other.
Shape numeric_shape(const Case& subject, JobRank self) noexcept;

// Do the same as fill and check in data.h.
void fill_numeric(const Case& subject, JobRank self, std::uint32_t seed, Arrays arrays);
std::string check_numeric(const Case& subject, JobRank self, std::uint32_t seed, Arrays arrays);

}  // namespace hocket::cli::bench
