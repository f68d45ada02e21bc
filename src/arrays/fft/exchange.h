// Brings the results of one leg to the ranks that need them for the next.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "arrays/distribution/exchange_buffers.h"
#include "arrays/fft/lay.h"
#include "arrays/fft/route.h"
#include "hocket/communicator.h"

namespace hocket::fft {

using distribution::ExchangeBuffers;

// The type in which elements of a size are sent, so that counts are elements.
DType carrier(std::size_t element) noexcept;

// `box` in `count` pieces, cut along axes that are not among `axes`; the last ones may be empty.
std::vector<Box> pieces_of(const Box& box, const std::vector<std::size_t>& axes, std::size_t count);

// Messages from a buffer to the next leg's pieces. While one piece is transformed, the others are
// on their way. A resource; one thread.
class Messages {
 public:
  Messages(Communicator& comm,
           const Leg& from,
           const Leg& to,
           std::size_t pieces,
           std::size_t element,
           std::optional<Duration> deadline);
  // Collective; then call `wait` for each piece in turn. `held` is read before it returns.
  void begin(const std::byte* held);
  void wait(std::size_t piece) { works_[piece].wait(); }
  // A rank's data of a piece, packed.
  const std::byte* from(std::size_t piece, std::size_t rank) const noexcept {
    return received_.data() + pieces_[piece].places[rank];
  }

 private:
  struct Piece {
    std::vector<std::size_t> sends, receives;  // elements, by rank
    std::vector<Copy> packs;                   // by rank
    std::vector<std::size_t> packed, places;   // bytes into packed_ and received_, by rank
  };
  Communicator& comm_;
  const std::size_t element_;
  const std::optional<Duration> deadline_;
  std::vector<Piece> pieces_;
  std::vector<std::byte> packed_, received_;
  std::vector<Work> works_;
};

}  // namespace hocket::fft
