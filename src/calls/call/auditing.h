// Writes digests of a communicator's inputs and outputs into the audit of its rank.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "calls/call/membership.h"
#include "engine/call.h"
#include "engine/point_to_point.h"
#include "foundation/core/digest.h"
#include "hocket/array_view.h"
#include "monitoring/observe/audit_file.h"

namespace hocket::call {

// Says where a call's arrays are when the call begins.
enum class Arrays : std::uint8_t {
  kHere,       // in memory of the call; host memory is read at once, GPU memory is not read
  kComing,     // a copy on this host of a GPU's array, which is complete when `arrived` is called
  kElsewhere,  // in memory that cannot be read
};

// A resource. The caller holds the communicator's turn. Does nothing if no audit is wanted.
class Auditing {
 public:
  Auditing(std::shared_ptr<observe::AuditFile> file, const Membership& membership);

  bool is_on() const noexcept { return is_on_; }
  // Sets the file that later calls are written to; null ends the audit. A rank outside the
  // communicator never writes.
  void keep_in(std::shared_ptr<observe::AuditFile> file) noexcept;

  // Begin and end the collective in progress; there is one at a time. `shown` is the call as error
  // texts name it. `arrived` says that the copy of a GPU's input is complete, see kComing.
  void begin(const engine::Call& call, const engine::Signature& shown, Arrays arrays) noexcept;
  void arrived() noexcept;
  void end(bool failed) noexcept;
  // Notes a call that GPUs carry without the host, so that its arrays are not read.
  void unread(const engine::Signature& shown, std::uint64_t sequence) noexcept;

  void sent(const engine::Envelope& to, ConstArrayView in) noexcept;
  // Notes a received message; `from` names the sender, if known.
  void received(const engine::Envelope& from, ConstArrayView out) noexcept;

 private:
  // A piece of an array.
  struct Extent {
    const std::byte* data;
    std::size_t bytes;
  };
  // An array in this rank's memory: contiguous, or in parts. Refers to memory of the call in
  // progress.
  struct Laid {
    const std::byte* data = nullptr;
    std::size_t bytes = 0;
    engine::PartsView parts = {};  // if `bytes` is null, the array is one piece
  };
  // A shape that the file already has, and the facts about its calls.
  struct KnownShape {
    engine::Signature call;
    engine::Signature shown;
    std::uint32_t number = 0;
    std::uint32_t blocks = 0;  // number of blocks of both arrays together
    std::size_t in_bytes = 0;
    std::size_t out_bytes = 0;
    bool is_read = false;  // true if its arrays can be read
    bool has_in = false;
    bool has_out = false;
  };
  // The key for a search in `known_shapes_`.
  struct Asked {
    const engine::Signature& call;
    const engine::Signature& shown;
    bool is_read = false;
    bool has_in = false;
    bool has_out = false;
  };

  Laid laid(const engine::Call& call,
            const void* data,
            engine::Has has,
            const engine::PartsView& parts) const noexcept;
  std::size_t parts_of(const Laid& array) const noexcept;
  std::size_t blocks_of(const Laid& array) const noexcept;
  Extent piece(const Laid& array, std::size_t part) const noexcept;
  observe::AuditArray shape_of(const Laid& array) const noexcept;
  const KnownShape* find(const Asked& asked) noexcept;
  // Adds a shape to the file. Null if the file has no room.
  const KnownShape* keep(const Asked& asked, const Laid& in, const Laid& out) noexcept;
  // The collective or message whose digests are being written.
  struct Under {
    observe::AuditFile::Slot place;
    Laid in;
    Laid out;
    std::uint64_t* words = nullptr;  // where the next digests are written
    DType dtype = DType::kUInt8;
    engine::Kind kind = engine::Kind::kNone;
    int peer = -1;
    bool is_elsewhere = false;
  };
  // Appends the digests of one array of the call: `which` is kInDigested or kOutDigested.
  void digest(Under& call, std::uint8_t which) noexcept;
  void note_non_finite(const Under& call, std::uint8_t which, std::size_t element) noexcept;
  void note_message(const engine::Envelope& envelope, bool sends, ConstArrayView array) noexcept;

  // Not reset when auditing ends, because a call in progress refers to the file.
  std::shared_ptr<observe::AuditFile> file_;
  bool is_on_ = false;
  const int rank_;
  const int size_;
  const std::string name_;
  std::uint32_t group_ = 0;
  bool warned_ = false;
  std::array<KnownShape, 8> known_shapes_;  // the last few shapes
  std::size_t oldest_ = 0;
  std::size_t found_at_ = 0;  // position of the last shape that was found or made
  Under under_;               // the collective in progress; its record is null if there is none
};

}  // namespace hocket::call
