// What a communicator writes into the audit of its rank: digests of what its calls gave and took.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "call/membership.h"
#include "core/digest.h"
#include "engine/call.h"
#include "engine/point_to_point.h"
#include "hocket/array_view.h"
#include "observe/audit_file.h"

namespace hocket::call {

// Where the arrays of a call are when it begins.
enum class Arrays : std::uint8_t {
  kHere,       // on this host
  kComing,     // on this host, once `arrived` is called: a copy of a GPU's
  kElsewhere,  // where they cannot be read
};

// A resource, used in the communicator's turn. Does nothing where no audit is wanted.
class Auditing {
 public:
  Auditing(std::shared_ptr<observe::AuditFile> file, const Membership& membership);

  bool is_on() const noexcept { return file_ != nullptr; }

  // The collective under way: there is one at a time. `shown`: what it is called.
  void begin(const engine::Call& call, const engine::Signature& shown, Arrays arrays) noexcept;
  void arrived() noexcept;
  void end(bool failed) noexcept;
  // A call that the GPUs carry by themselves.
  void unread(const engine::Signature& shown, std::uint64_t sequence) const noexcept;

  void sent(const engine::Envelope& to, ConstArrayView in) noexcept;
  // One that has come; `from` names who sent it, where that is known.
  void received(const engine::Envelope& from, ConstArrayView out) noexcept;

 private:
  // A piece of an array.
  struct Piece {
    const std::byte* data;
    std::size_t bytes;
  };
  // An array in this rank's memory: one piece, or its parts. A view of the call under way.
  struct Laid {
    const std::byte* data = nullptr;
    std::size_t bytes = 0;
    const engine::PartsView* parts = nullptr;
  };

  Laid given() const noexcept;
  Laid taken() const noexcept;
  Laid laid(const void* data, engine::Has has, const engine::PartsView& parts) const noexcept;
  std::size_t parts_of(const Laid& array) const noexcept;
  std::size_t blocks_of(const Laid& array) const noexcept;
  Piece piece(const Laid& array, std::size_t part) const noexcept;
  observe::AuditArray shape_of(const Laid& array) const noexcept;
  std::uint64_t* note_parts(const Laid& array, std::uint64_t* words) const noexcept;
  void digest(const Laid& array,
              DType dtype,
              observe::AuditArray& into,
              std::uint64_t* words) const noexcept;
  void note_message(const engine::Envelope& envelope, bool sends, ConstArrayView array) noexcept;
  void warn(const observe::AuditRecord& record) noexcept;

  const std::shared_ptr<observe::AuditFile> file_;
  const int rank_;
  const int size_;
  const std::string name_;
  std::uint32_t group_ = 0;
  bool warned_ = false;
  // The collective under way.
  observe::AuditRecord* record_ = nullptr;
  engine::Call call_;
  Arrays arrays_ = Arrays::kHere;
  std::uint64_t* in_words_ = nullptr;
  std::uint64_t* out_words_ = nullptr;
};

}  // namespace hocket::call
