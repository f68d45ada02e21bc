// How what the ranks hold after one leg reaches those who want it for the next.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "fft/lay.h"
#include "fft/route.h"
#include "hocket/communicator.h"
#include "hocket/symmetric.h"

namespace hocket::fft {

// `box` in `count` pieces, cut along axes that are not among `axes`; the last ones may be empty.
std::vector<Box> pieces_of(const Box& box, const std::vector<std::size_t>& axes, std::size_t count);

// Where ranks keep what others want. Symmetric where they share a host: each reads the others'.
// A resource of one plan; one thread.
class Shelves {
 public:
  // Collective. `bytes` is the same on all ranks.
  Shelves(Communicator& comm, std::size_t bytes, std::optional<Duration> deadline);
  bool is_shared() const noexcept { return !symmetric_.empty(); }
  // Two, used in turn: nobody overwrites what another may still read.
  std::byte* mine() noexcept;
  const std::byte* of(int rank) const;
  void turn() noexcept { at_ = 1 - at_; }

 private:
  std::vector<SymmetricArray> symmetric_;
  std::vector<std::byte> own_;
  std::size_t at_ = 0;
};

// From a shelf to the next leg's pieces, by messages. Piece by piece: while one is transformed,
// the others are on their way. A resource; one thread.
class Messages {
 public:
  Messages(Communicator& comm,
           const Leg& from,
           const Leg& to,
           std::size_t pieces,
           std::size_t element,
           std::optional<Duration> deadline);
  // Collective, with `wait` for each piece in turn. `held` is read before it returns.
  void begin(const std::byte* held);
  void wait(std::size_t piece) { works_[piece].wait(); }
  // What a rank sent of a piece, packed.
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
