// The file into which a rank writes the digests of its calls' arrays while it runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "monitoring/observe/audit_format.h"
#include "monitoring/observe/mapped_file.h"

namespace hocket::observe {

// A resource: a mapped file that grows to at most 1 GiB. Any thread may use it. When it is full,
// later calls are dropped and counted. They matter least, because readers look for the first
// difference.
class AuditFile {
 public:
  struct Owner {
    int rank = 0;
    int size = 1;
  };
  // Opens DIRECTORY/rank-N.audit, and replaces an existing one. Rank 0 also deletes files of ranks
  // that its job does not have. Makes the directory if needed. Throws SystemError.
  static std::shared_ptr<AuditFile> make(const std::string& directory, const Owner& owner);
  AuditFile(const AuditFile&) = delete;
  AuditFile& operator=(const AuditFile&) = delete;
  ~AuditFile();

  // A record, and its offset behind the header in bytes. The record is null if there is no room.
  struct Slot {
    AuditRecord* record = nullptr;
    std::size_t at = 0;
  };

  // Adds a communicator and returns its number.
  std::uint32_t add_group(std::string_view name, int size, int rank) noexcept;
  // Adds a shape with its listed parts, and returns its number; absent if there is no room.
  std::optional<std::uint32_t> add_shape(const AuditShape& shape,
                                         const std::size_t* in_parts,
                                         const std::size_t* out_parts) noexcept;
  // Notes an element that is not finite, for the call at `at`, in its input or output as `which`
  // says.
  void add_non_finite(std::size_t at, std::uint8_t which, std::size_t element) noexcept;
  // Reserves a call: a record and `more` words behind it. All words are zero except the record's
  // size and time. Readers ignore the record before it is published.
  Slot next(std::size_t more) noexcept;
  static void publish(AuditRecord& record, AuditState state) noexcept;

 private:
  AuditFile(const std::string& directory, const Owner& owner);

  MappedFile file_;
  std::atomic<std::size_t> next_{0};  // offset of the next record, behind the header
  std::atomic<std::uint32_t> groups_{0};
  std::atomic<std::uint32_t> shapes_{0};
};

}  // namespace hocket::observe
