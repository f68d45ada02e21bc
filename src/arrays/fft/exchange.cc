#include "arrays/fft/exchange.h"

#include <algorithm>
#include <numeric>

#include "hocket/error.h"

namespace hocket::fft {
namespace {

// The last axis is not cut into pieces shorter than this, in elements.
constexpr std::size_t kShortestRun = 32;

}  // namespace

DType carrier(std::size_t element) noexcept {
  return element == 16 ? DType::kComplex128 : element == 8 ? DType::kFloat64 : DType::kFloat32;
}

std::vector<Box> pieces_of(const Box& box,
                           const std::vector<std::size_t>& axes,
                           std::size_t count) {
  const Extents shape = box.shape();
  // Numbers of parts of the axes. The first axes get as many as possible.
  Extents cuts(shape.size(), 1);
  std::size_t made = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (std::find(axes.begin(), axes.end(), i) != axes.end() || shape[i] == 0) continue;
    const std::size_t most = i + 1 == shape.size() ? shape[i] / kShortestRun : shape[i];
    cuts[i] = std::clamp<std::size_t>(most, 1, count / made);
    made *= cuts[i];
  }
  std::vector<Box> pieces;
  for (std::size_t j = 0; j < made; ++j) {
    Extents lower = box.lower(), upper = box.upper();
    std::size_t at = j;
    for (std::size_t i = shape.size(); i-- > 0;) {
      const Box part =
          Slab{i}.box(shape, static_cast<int>(at % cuts[i]), static_cast<int>(cuts[i]));
      upper[i] = lower[i] + part.upper()[i];
      lower[i] += part.lower()[i];
      at /= cuts[i];
    }
    pieces.emplace_back(std::move(lower), std::move(upper));
  }
  pieces.resize(count, Box(box.lower(), box.lower()));
  return pieces;
}

Messages::Messages(Communicator& comm,
                   const Leg& from,
                   const Leg& to,
                   std::size_t pieces,
                   std::size_t element,
                   std::optional<Duration> deadline)
    : comm_(comm), element_(element), deadline_(deadline), pieces_(pieces) {
  const auto ranks = static_cast<std::size_t>(comm.size()),
             me = static_cast<std::size_t>(comm.rank());
  const Lay held = Lay::packed(from.after[me]);
  std::size_t sent = 0, got = 0;
  std::vector<std::vector<Box>> wanted;
  for (const Box& box : to.before) wanted.push_back(pieces_of(box, to.axes, pieces));
  for (std::size_t j = 0; j < pieces; ++j) {
    Piece& piece = pieces_[j];
    for (std::size_t r = 0; r < ranks; ++r) {
      const Box out = intersection(from.after[me], wanted[r][j]);
      const Box in = intersection(from.after[r], wanted[me][j]);
      piece.sends.push_back(out.count());
      piece.receives.push_back(in.count());
      piece.packs.emplace_back(out, held, Lay::packed(out), element);
      piece.packed.push_back(sent);
      piece.places.push_back(got);
      sent += out.count() * element;
      got += in.count() * element;
    }
    piece.packed.push_back(sent);
    piece.places.push_back(got);
  }
  packed_.resize(sent);
  received_.resize(got);
  works_.reserve(pieces);
}

void Messages::begin(const std::byte* held) {
  works_.clear();
  const DType dtype = carrier(element_);
  for (const Piece& piece : pieces_) {
    for (std::size_t r = 0; r < piece.packs.size(); ++r) {
      piece.packs[r](held, packed_.data() + piece.packed[r]);
    }
    const std::size_t sent = piece.packed.front(), got = piece.places.front();
    works_.push_back(comm_.all_to_all_v_async(
        ConstArrayView(packed_.data() + sent, (piece.packed.back() - sent) / element_, dtype),
        {.counts = piece.sends},
        ArrayView(received_.data() + got, (piece.places.back() - got) / element_, dtype),
        {.counts = piece.receives},
        {.deadline = deadline_}));
  }
}

}  // namespace hocket::fft
