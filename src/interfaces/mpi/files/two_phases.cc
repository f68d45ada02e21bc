#include "interfaces/mpi/files/two_phases.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "interfaces/mpi/buffers.h"
#include "interfaces/mpi/collectives/agreement.h"
#include "interfaces/mpi/files/marks.h"

namespace hocket::mpi {
namespace {

// A read goes on through gaps up to this length, which takes no longer than another call.
constexpr std::int64_t kShortGap = 4096;
constexpr std::int64_t kNowhere = std::numeric_limits<std::int64_t>::max();

// A rank's message to the owner of each window in a round. A value. Its members are sent as they
// are.
struct Announcement {
  std::int64_t pieces = 0, bytes = 0;
  std::int64_t next = kNowhere;  // the place of this rank's first byte after the round
  std::int64_t has_failed = 0;
};

std::size_t sum(std::span<const std::size_t> counts) {
  std::size_t total = 0;
  for (const std::size_t one : counts) total += one;
  return total;
}
template <typename T>
void grow(std::vector<T>& room, std::size_t size) {
  if (room.size() < size) room.resize(size);
}

// A call that is under way. A resource of the thread that makes the call.
class TwoPhases {
 public:
  TwoPhases(File& file, const Portion& own, const Rounds& rounds)
      : file_(file),
        net_(*file.comm->net),
        own_(own),
        window_(rounds.window),
        begin_(first_of_page(rounds.begin)),
        cursor_(own.begin) {}

  std::int64_t run() {
    or_refuse([&] {
      const auto ranks = static_cast<std::size_t>(net_.size());
      for (auto* each : {&told_, &heard_}) each->resize(ranks);
      for (auto* each : {&own_pieces_, &own_bytes_, &own_places_, &pieces_, &bytes_, &found_}) {
        each->resize(ranks);
      }
      marks_.emplace(window_);
      data_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(window_));
    });
    while (begin_ != kNowhere) {
      or_refuse([&] { cut_own(); });
      exchange(told_.data(), heard_.data(), sizeof(Announcement));
      std::int64_t next = kNowhere;
      bool has_failed = false;
      for (const Announcement& one : heard_) {
        next = std::min(next, one.next);
        has_failed = has_failed || one.has_failed != 0;
      }
      if (has_failed) break;
      exchange_pieces();
      own_.is_write ? write_window() : read_window();
      marks_->clear();
      begin_ = first_of_page(next);
    }
    agree(*file_.comm, [&] {
      if (failed_ != nullptr) std::rethrow_exception(failed_);
    });
    return moved_;
  }

 private:
  // A rank that finds no memory refuses the next call of all ranks, which would else wait for it.
  template <typename Act>
  void or_refuse(const Act& act) {
    try {
      act();
    } catch (const std::bad_alloc&) {
      net_.refuse("no memory for a collective read or write of " + file_.path);
    }
  }

  static std::int64_t first_of_page(std::int64_t place) noexcept {
    return place == kNowhere ? kNowhere : place / kFilePage * kFilePage;
  }

  // Exchanges `bytes` bytes with each rank, which are a multiple of 8.
  void exchange(const void* out, void* in, std::size_t bytes) {
    const std::size_t count = bytes / sizeof(std::int64_t) * told_.size();
    net_.all_to_all(ConstArrayView(out, count, DType::kInt64), ArrayView(in, count, DType::kInt64));
  }

  // Cuts this rank's runs of the round into pieces, in the order of the windows.
  void cut_own() {
    const auto ranks = static_cast<std::int64_t>(told_.size());
    std::fill(told_.begin(), told_.end(), Announcement{.has_failed = failed_ != nullptr});
    cut_.clear();
    sent_from_ = cursor_;
    std::int64_t next = kNowhere;
    own_.view.each_run(cursor_, own_.end, [&](std::int64_t place, std::int64_t length) {
      while (length > 0 && place - begin_ < ranks * window_) {
        const std::int64_t offset = (place - begin_) % window_;
        const std::int64_t now = std::min(length, window_ - offset);
        cut_.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(now)});
        Announcement& to = told_[static_cast<std::size_t>((place - begin_) / window_)];
        ++to.pieces;
        to.bytes += now;
        cursor_ += now;
        place += now;
        length -= now;
      }
      if (length > 0) next = place;
      return length == 0;
    });
    for (Announcement& to : told_) to.next = next;
  }

  // Gives the owner of each window the pieces that this rank has there.
  void exchange_pieces() {
    or_refuse([&] {
      std::size_t place = 0;
      for (std::size_t rank = 0; rank < told_.size(); ++rank) {
        own_pieces_[rank] = static_cast<std::size_t>(told_[rank].pieces);
        own_bytes_[rank] = static_cast<std::size_t>(told_[rank].bytes);
        own_places_[rank] = std::exchange(place, place + own_bytes_[rank]);
        const auto [pieces, bytes, next, has_failed] = heard_[rank];
        if (pieces < 0 || bytes < pieces || window_ < bytes) refuse_peer(rank);
        pieces_[rank] = static_cast<std::size_t>(pieces);
        bytes_[rank] = static_cast<std::size_t>(bytes);
      }
      grow(came_, sum(pieces_));
      grow(packed_, sum(bytes_));
    });
    net_.all_to_all_v(ConstArrayView(cut_.data(), cut_.size(), DType::kUInt64),
                      {.counts = own_pieces_},
                      ArrayView(came_.data(), sum(pieces_), DType::kUInt64),
                      {.counts = pieces_});
    check_pieces();
  }

  // Refuses the next call if pieces of other ranks are outside the window, or are not the bytes
  // that were announced.
  void check_pieces() {
    const Piece* piece = came_.data();
    for (std::size_t rank = 0; rank < pieces_.size(); ++rank) {
      std::size_t bytes = 0;
      for (const Piece* const last = piece + pieces_[rank]; piece != last; ++piece) {
        if (piece->length == 0 || piece->offset + std::int64_t{piece->length} > window_) {
          refuse_peer(rank);
        }
        bytes += piece->length;
      }
      if (bytes != bytes_[rank]) refuse_peer(rank);
    }
  }
  [[noreturn]] void refuse_peer(std::size_t rank) {
    net_.refuse("rank " + std::to_string(rank) + " sent pieces that are not in the window");
  }

  std::byte* own_data() const noexcept { return own_.data + (sent_from_ - own_.begin); }
  std::int64_t own_window() const noexcept { return begin_ + file_.comm->rank * window_; }

  // Calls `act`. After the round, an error of the system ends the call on all ranks.
  template <typename Act>
  void try_system(const Act& act) noexcept {
    try {
      act();
    } catch (...) {
      failed_ = std::current_exception();
    }
  }

  void write_window() {
    net_.all_to_all_v(ConstArrayView(own_data(), sum(own_bytes_), DType::kUInt8),
                      {.counts = own_bytes_},
                      ArrayView(packed_.data(), sum(bytes_), DType::kUInt8),
                      {.counts = bytes_});
    moved_ += static_cast<std::int64_t>(sum(own_bytes_));
    const std::byte* from = packed_.data();
    for (const Piece& piece : std::span(came_).first(sum(pieces_))) {
      std::memcpy(data_.get() + piece.offset, from, piece.length);
      from += piece.length;
      marks_->add(piece);
    }
    try_system([&] {
      marks_->each_run(0, [&](std::int64_t offset, std::int64_t length) {
        move_run(file_, true, own_window() + offset, data_.get() + offset, length);
        return true;
      });
    });
  }

  void read_window() {
    for (const Piece& piece : std::span(came_).first(sum(pieces_))) marks_->add(piece);
    std::int64_t end = window_;  // of what was read
    try_system([&] {
      marks_->each_run(kShortGap, [&](std::int64_t offset, std::int64_t length) {
        const std::int64_t now =
            move_run(file_, false, own_window() + offset, data_.get() + offset, length);
        if (now < length) end = offset + now;
        return now == length;
      });
    });
    if (failed_ != nullptr) end = 0;
    pack(end);
    // Parts at the end of the file are shorter than announced.
    exchange(bytes_.data(), found_.data(), sizeof(std::size_t));
    net_.all_to_all_v(ConstArrayView(packed_.data(), sum(bytes_), DType::kUInt8),
                      {.counts = bytes_},
                      ArrayView(own_data(), sum(own_bytes_), DType::kUInt8),
                      {.counts = found_, .displacements = own_places_});
    moved_ += static_cast<std::int64_t>(sum(found_));
  }

  // Packs the pieces of all ranks up to the offset `end`. bytes_ becomes what each rank gets.
  void pack(std::int64_t end) {
    std::byte* to = packed_.data();
    const Piece* piece = came_.data();
    for (std::size_t rank = 0; rank < pieces_.size(); ++rank) {
      const std::byte* const first = to;
      for (const Piece* const last = piece + pieces_[rank]; piece != last; ++piece) {
        const auto length = static_cast<std::size_t>(
            std::clamp<std::int64_t>(end - piece->offset, 0, piece->length));
        std::memcpy(to, data_.get() + piece->offset, length);
        to += length;
      }
      bytes_[rank] = static_cast<std::size_t>(to - first);
    }
  }

  File& file_;
  Communicator& net_;
  const Portion& own_;
  const std::int64_t window_;
  std::int64_t begin_;          // of the round, in the file
  std::int64_t cursor_;         // the first byte of the view after the round
  std::int64_t sent_from_ = 0;  // the first byte of the view in the round
  std::int64_t moved_ = 0;
  std::exception_ptr failed_;

  // By rank. Own ones are those of this rank in the others' windows.
  std::vector<Announcement> told_, heard_;
  std::vector<std::size_t> own_pieces_, own_bytes_, own_places_, found_;
  std::vector<std::size_t> pieces_, bytes_;
  std::vector<Piece> cut_, came_;
  Bytes packed_;                       // the bytes of `came_`, rank by rank
  std::unique_ptr<std::byte[]> data_;  // of this rank's window
  std::optional<Marks> marks_;
};

}  // namespace

std::int64_t move_in_two_phases(File& file, const Portion& own, const Rounds& rounds) {
  return TwoPhases(file, own, rounds).run();
}

}  // namespace hocket::mpi
