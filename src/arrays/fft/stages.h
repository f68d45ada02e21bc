// A rank's part in each leg: what it gathers, transforms and leaves, piece by piece.
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

// A part of the box: gathered from the ranks' parts, transformed, left in the leg's target.
struct Piece {
  Box before, after;
  Lay gathered, made;       // of `before` and of `after`, packed with gaps
  std::vector<Copy> pulls;  // by rank; where nothing is transformed, straight to the target
  // From what is made to the target. By rank where the next leg transforms nothing: one's own part
  // goes straight to the result then.
  std::vector<Copy> stores;
  std::size_t variant = 0;  // which of the leg's transforms
};

// A resource: one leg of one rank.
struct LegPart {
  LegPart(const Leg& leg, std::size_t me, std::size_t count, FftKind kind);

  const std::vector<std::size_t> axes;
  const FftKind kind;                                 // of this leg's transforms
  const Lay source, target;                           // the boxes before and after, packed
  std::size_t element_before = 0, element_after = 0;  // bytes
  std::vector<Piece> pieces;
  // The first leg transforms out of its source, where it does not gather, and to its target, where
  // that is not awkward.
  bool gathers = true, stores = true;
  std::vector<Extents> variants;       // shapes of pieces that have a transform of their own
  std::unique_ptr<Messages> messages;  // by which it gathers; null: by looking at the shelves
  // By direction and variant, made when they are first needed.
  std::array<std::vector<std::unique_ptr<Transform>>, 2> transforms;

  bool transforms_any() const noexcept { return !axes.empty(); }
  void make(FftLibrary& library, bool is_double, bool is_inverse, FftPlanning planning);
  // Bytes of the largest piece, on either side of the transform.
  std::size_t room() const noexcept;
};

}  // namespace hocket::fft
