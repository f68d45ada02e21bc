// Brings the results of one leg to the ranks that need them for the next leg.
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

// Returns the type in which elements of `element` bytes are sent, so that counts are elements.
DType carrier(std::size_t element) noexcept;

// Cuts a box into `count` pieces, along axes that are not in `axes`. The last pieces may be empty.
std::vector<Box> pieces_of(const Box& box, const std::vector<std::size_t>& axes, std::size_t count);

// Sends data from a buffer to the ranks that need it in the next leg, piece by piece. While one
// piece is transformed, the next pieces travel. A resource, used by one thread.
class Messages {
 public:
  Messages(Communicator& comm,
           const Leg& from,
           const Leg& to,
           std::size_t pieces,
           std::size_t element,
           std::optional<Duration> deadline);
  // Starts all messages. Collective. The data at `held` may be changed once this has returned. Then
  // call `wait` for each piece in order.
  void begin(const std::byte* held);
  void wait(std::size_t piece) { works_[piece].wait(); }
  // Returns a rank's packed data of a piece.
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
