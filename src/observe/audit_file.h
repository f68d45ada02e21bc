// The file into which a rank writes the digests of its calls' arrays while it runs.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "observe/audit_format.h"

namespace hocket::observe {

// A resource: a mapped file that grows to at most 1 GiB; what is in it survives the process,
// however that ends. Any thread. When the disk or the file is full, it says so once in the log and
// counts what is dropped: it is the first difference that is looked for.
class AuditFile {
 public:
  struct Owner {
    int rank = 0;
    int size = 1;
  };
  // DIRECTORY/rank-N.audit, replacing one that is there. Makes the directory if need be. Throws
  // SystemError.
  static std::shared_ptr<AuditFile> make(const std::string& directory, const Owner& owner);
  AuditFile(const AuditFile&) = delete;
  AuditFile& operator=(const AuditFile&) = delete;
  ~AuditFile();

  // A communicator, whose number it returns.
  std::uint32_t add_group(std::string_view name, int size, int rank) noexcept;
  // A record and `more` words behind it, all zero but for its size and time; null where there is no
  // room. Nobody reads it before it is published.
  AuditRecord* next(std::size_t more) noexcept;
  static void publish(AuditRecord& record, AuditState state) noexcept;

 private:
  AuditFile(int fd, AuditHeader* header) noexcept;
  std::byte* chunk(std::size_t index) noexcept;
  void drop(const char* why) noexcept;

  const int fd_;
  AuditHeader* const header_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::uint32_t> groups_{0};
  std::atomic<bool> full_{false};
  std::mutex mutex_;  // of who makes a chunk
  std::array<std::atomic<std::byte*>, kAuditChunks> chunks_{};
};

}  // namespace hocket::observe
