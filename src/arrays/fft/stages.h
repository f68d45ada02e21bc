// A rank's part of each leg, piece by piece: it is gathered, transformed and stored.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "arrays/fft/exchange.h"
#include "arrays/fft/lay.h"
#include "arrays/fft/local.h"
#include "arrays/fft/route.h"

namespace hocket::fft {

// A part of the box: gathered from the ranks' parts, transformed, stored in the leg's target.
struct Piece {
  Box before, after;
  Lay gathered, made;       // of `before` and of `after`, packed with gaps
  std::vector<Copy> pulls;  // by rank; straight to the target if nothing is transformed
  // The copies from the piece's result to the leg's target. If the next leg transforms nothing,
  // there is one copy for each rank, and the copy for this rank goes straight to the result.
  std::vector<Copy> stores;
  std::size_t variant = 0;  // index of the leg's transform
};

// A resource: one leg of one rank.
struct LegPart {
  LegPart(const Leg& leg, std::size_t me, std::size_t count, FftKind kind);

  const std::vector<std::size_t> axes;
  const FftKind kind;                                 // kind of this leg's transforms
  const Lay source, target;                           // the boxes before and after, packed
  std::size_t element_before = 0, element_after = 0;  // bytes
  std::vector<Piece> pieces;
  // `gathers` is false in the first leg if it transforms straight from its source. `stores` is
  // false if it transforms straight to its target, whose strides are then suitable.
  bool gathers = true, stores = true;
  std::vector<Extents> variants;       // distinct shapes of pieces; each has its own transform
  std::unique_ptr<Messages> messages;  // they carry its input; null: it reads the buffers
  // By direction and variant, made when they are first needed.
  std::array<std::vector<std::unique_ptr<Transform>>, 2> transforms;

  bool transforms_any() const noexcept { return !axes.empty(); }
  void make(FftLibrary& library, bool is_double, bool is_inverse, FftPlanning planning);
  // Returns the bytes of the largest piece, before or after the transform.
  std::size_t room() const noexcept;
};

}  // namespace hocket::fft
