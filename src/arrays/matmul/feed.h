// Brings the parts of both factors to the ranks that multiply them.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "arrays/distribution/exchange_buffers.h"
#include "arrays/matmul/local.h"
#include "arrays/matmul/steps.h"
#include "hocket/communicator.h"

namespace hocket::matmul {

// A factor of a local product. A view of the caller's array, of another rank's array, or of a room.
struct FactorView {
  Columns<const std::byte> columns;
  Stored stored = Stored::kPlain;
};

// Ranks that reach each other's memory read the parts in place. Otherwise the parts are messages,
// and one panel travels while the panel before is multiplied. A resource of one plan, used by one
// thread.
class Feed {
 public:
  enum Side : std::uint8_t { kLeft, kRight };

  // Collective. If parts are messages, the steps travel in `panels` panels.
  Feed(Communicator& comm,
       const Problem& problem,
       Local& local,
       const Workloads& workloads,
       std::size_t panels,
       std::optional<Duration> deadline);
  // Allocates the memory for the functions below. Not collective.
  void reserve();

  bool is_shared() const noexcept { return is_shared_; }
  // Returns whether 8-bit factors are multiplied without conversion.
  bool is_narrow() const noexcept { return is_narrow_; }
  // The type in which a factor is multiplied.
  DType dtype(Side side) const noexcept {
    return is_narrow_ ? factor(side).dtype : local_.factor_dtype(factor(side).dtype);
  }
  std::size_t panels() const noexcept { return panels_.size(); }
  const std::vector<InnerStep>& steps(std::size_t panel) const { return panels_[panel]; }

  // Returns the bytes of the largest room that `fetch` needs.
  std::size_t room(Side side) const;

  // Called once for each product, in this order, on all ranks. `show` publishes this rank's parts.
  // `open` begins to bring the other ranks' parts, after all ranks have called `show`. Call `wait`
  // for each panel in order, and `close` after the last panel.
  void show(const void* left, const void* right);
  void open();
  void wait(std::size_t panel);
  void close() noexcept;

  // Returns a step's part of a factor. Copies it into `room` if it is not contiguous.
  FactorView fetch(Side side, std::size_t panel, std::size_t step, const Room& room) const;
  // Returns the bytes of the room that a step's part needs; 0 if it is contiguous.
  std::size_t room(Side side, std::size_t panel, std::size_t step) const;

 private:
  // A holder of some rows of `left`, or columns of `right`, that this rank multiplies.
  struct Holder {
    std::size_t place;
    std::vector<Run> outer, packed;  // in the holder's array, and in a message
  };
  // The copy from one holder for a step's part.
  struct Piece {
    int rank;
    bool is_message;
    std::size_t at;      // for a message: offset in the received data, in elements
    std::size_t stride;  // in the holder's array, or in a message
    Patch patch;
  };
  struct Fetch {
    std::vector<Piece> pieces;
    std::size_t stride = 0, bytes = 0;  // of the factor in the room
    bool is_direct = false;             // one piece, multiplied in place
  };
  struct Message {  // of one panel
    struct Pack {
      Side side;
      Patch patch;
      std::size_t at, stride;  // elements
    };
    std::vector<Pack> packs;
    std::vector<std::size_t> sends, receives;  // elements, by rank
    std::size_t sent = 0, received = 0;        // for all ranks together
    // Offsets of the holders' parts in the received data, in elements: by step, side and holder.
    std::vector<std::array<std::vector<std::size_t>, 2>> places;
  };

  const Factor& factor(Side side) const { return side == kLeft ? problem_.left : problem_.right; }
  // Returns a rank's places along the outer and the inner axis.
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
  std::vector<std::vector<InnerStep>> panels_;  // steps of this rank
  std::array<std::vector<Holder>, 2> holders_;
  std::array<std::size_t, 2> outer_count_{};
  std::array<const std::byte*, 2> given_{};

  std::optional<distribution::ExchangeBuffers> buffers_;
  std::array<bool, 2> is_shown_{};
  std::array<std::size_t, 2> shelf_at_{};

  std::vector<std::vector<std::array<Fetch, 2>>> fetches_;  // by panel and step, of both sides
  std::vector<Message> messages_;
  std::array<Room, 2> packed_, received_;
  std::array<hocket::Work, 2> works_;
};

}  // namespace hocket::matmul
