// How the parts of both factors reach those who multiply them.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "arrays/distribution/shelves.h"
#include "arrays/matmul/local.h"
#include "arrays/matmul/steps.h"
#include "hocket/communicator.h"

namespace hocket::matmul {

// What a local product reads. A view: of the caller's array, of another rank's, or of a room.
struct FactorView {
  Columns<const std::byte> columns;
  Stored stored = Stored::kPlain;
};

// Ranks that reach each other's memory read the parts where they lie; else the parts are messages,
// a panel on its way while the one before is multiplied. A resource of one plan; one thread.
class Feed {
 public:
  enum Side : std::uint8_t { kLeft, kRight };

  // Collective. Where parts are messages, the steps travel in so many panels.
  Feed(Communicator& comm,
       const Problem& problem,
       Local& local,
       const Workloads& workloads,
       std::size_t panels,
       std::optional<Duration> deadline);
  // Takes the memory that what follows needs. Local.
  void reserve();

  bool is_shared() const noexcept { return is_shared_; }
  // Whether factors of 8 bits are multiplied as they are.
  bool is_narrow() const noexcept { return is_narrow_; }
  // What a factor is multiplied as.
  DType dtype(Side side) const noexcept {
    return is_narrow_ ? factor(side).dtype : local_.factor_dtype(factor(side).dtype);
  }
  std::size_t panels() const noexcept { return panels_.size(); }
  const std::vector<InnerStep>& steps(std::size_t panel) const { return panels_[panel]; }

  // Bytes of the largest room that `fetch` comes to need.
  std::size_t room(Side side) const;

  // Once for each product, in this order, on all ranks: shows this rank's parts, and, once all
  // have, opens those of the others. `wait` is for each panel in turn; `close` after the last.
  void show(const void* left, const void* right);
  void open();
  void wait(std::size_t panel);
  void close() noexcept;

  // A step's part, put together in `room` where it does not lie in one piece.
  FactorView fetch(Side side, std::size_t panel, std::size_t step, const Room& room) const;
  // Bytes of the room that a step's part needs; 0: it lies in one piece.
  std::size_t room(Side side, std::size_t panel, std::size_t step) const;

 private:
  // Who holds some of the rows of `left`, or of the columns of `right`, that this rank multiplies.
  struct Holder {
    std::size_t place;
    std::vector<Run> outer, packed;  // as it lies there, and in a message
  };
  // What is copied of one holder to put a step's part together.
  struct Piece {
    int rank;
    bool is_message;
    std::size_t at;      // of a message: elements into what was received
    std::size_t stride;  // as it lies there
    Patch patch;
  };
  struct Fetch {
    std::vector<Piece> pieces;
    std::size_t stride = 0, bytes = 0;  // in the room
    bool is_direct = false;             // one piece, multiplied as it lies
  };
  struct Message {  // of one panel
    struct Pack {
      Side side;
      Patch patch;
      std::size_t at, stride;  // elements
    };
    std::vector<Pack> packs;
    std::vector<std::size_t> sends, receives;  // elements, by rank
    std::size_t sent = 0, received = 0;        // of all ranks
    // Where what a rank sends of a step begins, in elements: by step and side, by holder.
    std::vector<std::array<std::vector<std::size_t>, 2>> places;
  };

  const Factor& factor(Side side) const { return side == kLeft ? problem_.left : problem_.right; }
  // The place along the outer axis, and along the inner one.
  std::array<std::size_t, 2> places(Side side, int rank) const;
  int rank_at(Side side, std::size_t outer, std::size_t inner) const;
  std::size_t stride_of(Side side, int rank) const;
  std::vector<Holder> holders(Side side, const Workload& work) const;
  const std::byte* held(Side side, int rank) const;
  bool can_be_narrow(const std::vector<InnerStep>& steps) const;
  Change change(Side side) const;
  bool is_direct(Side side, const InnerStep& step) const;
  bool is_direct(const InnerStep& step) const {
    return is_direct(kLeft, step) && is_direct(kRight, step);
  }
  Fetch make_fetch(Side side, std::size_t panel, std::size_t step) const;
  std::vector<bool> find_wanted(Side side, const Workloads& workloads) const;
  void make_messages(const Workloads& workloads, std::size_t panels);
  void start(std::size_t panel);

  Communicator& comm_;
  const Problem& problem_;
  Local& local_;
  const std::optional<Duration> deadline_;
  const int me_;
  const std::size_t element_;
  bool is_shared_ = true, is_narrow_ = false;
  std::vector<std::vector<InnerStep>> panels_;  // this rank's
  std::array<std::vector<Holder>, 2> holders_;
  std::array<std::size_t, 2> outer_count_{};
  std::array<const std::byte*, 2> given_{};

  std::optional<distribution::Shelves> shelves_;
  std::array<bool, 2> is_shown_{};
  std::array<std::size_t, 2> shelf_at_{};

  std::vector<std::vector<std::array<Fetch, 2>>> fetches_;  // by panel and step, of both sides
  std::vector<Message> messages_;
  std::array<Room, 2> packed_, received_;
  std::array<hocket::Work, 2> works_;
};

}  // namespace hocket::matmul
