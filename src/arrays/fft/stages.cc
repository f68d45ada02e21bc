#include "arrays/fft/stages.h"

#include <algorithm>

namespace hocket::fft {

LegPart::LegPart(const Leg& leg, std::size_t me, std::size_t count, FftKind whole_kind)
    : axes(leg.axes),
      kind(leg.turns ? whole_kind : FftKind::kComplex),
      source(Lay::packed(leg.before[me])),
      target(Lay::packed(leg.after[me])) {
  const std::size_t last = source.box.axes() - 1;
  for (const Box& box : pieces_of(source.box, axes, count)) {
    if (box.is_empty()) {
      // An empty piece is kept, because its index is also the index of its messages.
      pieces.push_back(
          {.before = box, .after = box, .gathered = Lay::packed(box), .made = Lay::packed(box)});
      continue;
    }
    Extents upper = box.upper();
    if (leg.turns) upper[last] = target.box.upper()[last];
    Piece piece{.before = box, .after = Box(box.lower(), upper)};
    const auto found = std::find(variants.begin(), variants.end(), box.shape());
    piece.variant = static_cast<std::size_t>(found - variants.begin());
    if (found == variants.end()) variants.push_back(box.shape());
    pieces.push_back(std::move(piece));
  }
}

void LegPart::make(FftLibrary& library, bool is_double, bool is_inverse, FftPlanning planning) {
  auto& made = transforms[is_inverse ? 1 : 0];
  if (!transforms_any() || made.size() == variants.size()) return;
  made.clear();
  for (const Extents& shape : variants) {
    const auto piece = std::find_if(pieces.begin(), pieces.end(), [&](const Piece& one) {
      return one.before.shape() == shape;
    });
    Lines lines{.kind = kind,
                .is_double = is_double,
                .is_inverse = is_inverse,
                .planning = planning,
                .shape = kind == FftKind::kComplexToReal ? piece->after.shape() : shape,
                .axes = axes,
                .in_strides = gathers ? piece->gathered.strides : source.strides,
                .out_strides = stores ? piece->made.strides : target.strides};
    std::unique_ptr<Transform> transform = library.make(lines);
    if (!transform) transform = eigen()->make(lines);
    made.push_back(std::move(transform));
  }
}

std::size_t LegPart::room() const noexcept {
  std::size_t most = 0;
  for (const Piece& piece : pieces) {
    if (gathers) most = std::max(most, piece.gathered.span() * element_before);
    if (stores) most = std::max(most, piece.made.span() * element_after);
  }
  return most;
}

}  // namespace hocket::fft
