#include "observe/audit_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/log.h"
#include "hocket/error.h"
#include "observe/mapped_file.h"

namespace hocket::observe {

std::shared_ptr<AuditFile> AuditFile::make(const std::string& directory, const Owner& owner) {
  const std::string name = "rank-" + std::to_string(owner.rank) + ".audit";
  const int fd = create_file(directory, name, "HOCKET_AUDIT");
  auto* header = static_cast<AuditHeader*>(map_piece(fd, 0, kAuditHeaderBytes));
  if (header == nullptr) {
    const int error = errno;
    close(fd);
    fail_to_write(directory, name, "HOCKET_AUDIT", error);
  }
  *header = {.magic = kAuditMagic,
             .version = kAuditVersion,
             .rank = owner.rank,
             .size = owner.size,
             .pid = getpid(),
             .wall_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC),
             .dropped = 0};
  return std::shared_ptr<AuditFile>(new AuditFile(fd, header));
}

AuditFile::AuditFile(int fd, AuditHeader* header) noexcept : fd_(fd), header_(header) {}

AuditFile::~AuditFile() {
  for (auto& chunk : chunks_) {
    if (chunk.load() != nullptr) munmap(chunk.load(), kAuditChunkBytes);
  }
  // What was set aside and not used is given back; not so by a process that was forked meanwhile.
  if (header_->pid == getpid()) {
    const std::size_t used = std::min(next_.load(), kAuditChunks * kAuditChunkBytes);
    if (ftruncate(fd_, static_cast<off_t>(kAuditHeaderBytes + used)) != 0) {
      base::log(base::LogLevel::kDebug, "an audit's file could not be cut to its size");
    }
    munmap(header_, kAuditHeaderBytes);
  }
  close(fd_);
}

void AuditFile::drop(const char* why) noexcept {
  std::atomic_ref(header_->dropped).fetch_add(1, std::memory_order_relaxed);
  if (full_.exchange(true)) return;
  try {
    base::log(base::LogLevel::kWarning, std::string("no more calls are audited: ") + why);
  } catch (...) {  // it is counted all the same
  }
}

std::byte* AuditFile::chunk(std::size_t index) noexcept {
  const std::lock_guard lock(mutex_);
  std::byte* found = chunks_[index].load(std::memory_order_acquire);
  if (found != nullptr || full_) return found;
  found = static_cast<std::byte*>(
      map_piece(fd_, kAuditHeaderBytes + index * kAuditChunkBytes, kAuditChunkBytes));
  if (found == nullptr) {
    const int error = errno;
    drop(std::strerror(error));
    return nullptr;
  }
  chunks_[index].store(found, std::memory_order_release);
  return found;
}

AuditRecord* AuditFile::next(std::size_t more) noexcept {
  const std::size_t bytes = sizeof(AuditRecord) + more * kWord;
  if (bytes > kAuditChunkBytes) {
    drop("one of them has more parts than the file takes");
    return nullptr;
  }
  std::size_t at = next_.load(std::memory_order_relaxed);
  std::size_t begin;
  do {
    const std::size_t left = kAuditChunkBytes - at % kAuditChunkBytes;
    begin = bytes <= left ? at : at + left;
    if (begin + bytes > kAuditChunks * kAuditChunkBytes) {
      drop("the file is as large as it may be");
      return nullptr;
    }
  } while (!next_.compare_exchange_weak(at, begin + bytes, std::memory_order_relaxed));
  const std::size_t index = begin / kAuditChunkBytes;
  std::byte* base = chunks_[index].load(std::memory_order_acquire);
  if (base == nullptr) base = chunk(index);
  if (base == nullptr) {
    drop("there is no room");
    return nullptr;
  }
  auto* record = reinterpret_cast<AuditRecord*>(base + begin % kAuditChunkBytes);
  std::atomic_ref(record->words)
      .store(static_cast<std::uint32_t>(bytes / kWord), std::memory_order_relaxed);
  record->begin_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
  return record;
}

void AuditFile::publish(AuditRecord& record, AuditState state) noexcept {
  std::atomic_ref(record.state).store(static_cast<std::uint8_t>(state), std::memory_order_release);
}

std::uint32_t AuditFile::add_group(std::string_view name, int size, int rank) noexcept {
  const std::uint32_t number = groups_.fetch_add(1, std::memory_order_relaxed);
  name = name.substr(0, 1024);
  if (AuditRecord* record = next((name.size() + kWord - 1) / kWord)) {
    record->group = number;
    record->sequence = static_cast<std::uint64_t>(size);
    record->peer = rank;
    record->name_bytes = static_cast<std::uint32_t>(name.size());
    std::memcpy(record + 1, name.data(), name.size());
    publish(*record, AuditState::kGroup);
  }
  return number;
}

}  // namespace hocket::observe
