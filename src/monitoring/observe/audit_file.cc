#include "monitoring/observe/audit_file.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "monitoring/observe/rank_files.h"

namespace hocket::observe {

constexpr std::size_t kAuditBytes = MappedFile::kChunks * kAuditChunkBytes;

std::shared_ptr<AuditFile> AuditFile::make(const std::string& directory, const Owner& owner) {
  std::shared_ptr<AuditFile> file(new AuditFile(directory, owner));
  if (owner.rank == 0) drop_rank_files_from(owner.size, directory, ".audit");
  return file;
}

AuditFile::AuditFile(const std::string& directory, const Owner& owner)
    : file_(directory,
            "rank-" + std::to_string(owner.rank) + ".audit",
            {.setting = "HOCKET_AUDIT", .doing = "audited"},
            kAuditChunkBytes) {
  static_assert(kAuditHeaderBytes == MappedFile::kHeaderBytes);
  auto* const header = static_cast<AuditHeader*>(file_.header());
  *header = {.magic = kAuditMagic,
             .version = kAuditVersion,
             .rank = owner.rank,
             .size = owner.size,
             .pid = getpid(),
             .wall_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC),
             .dropped = 0};
  file_.count_dropped_in(header->dropped);
}

AuditFile::~AuditFile() { file_.cut(std::min(next_.load(), kAuditBytes)); }

AuditFile::Slot AuditFile::next(std::size_t more) noexcept {
  const std::size_t bytes =
      (sizeof(AuditRecord) + more * kWord + kAuditLine - 1) / kAuditLine * kAuditLine;
  if (bytes > kAuditChunkBytes) {
    file_.drop("one of them has more parts than the file takes");
    return {};
  }
  std::size_t at = next_.load(std::memory_order_relaxed);
  std::size_t begin;
  do {
    const std::size_t left = kAuditChunkBytes - at % kAuditChunkBytes;
    begin = bytes <= left ? at : at + left;
    if (begin + bytes > kAuditBytes) {
      file_.drop("the file is as large as it may be");
      return {};
    }
  } while (!next_.compare_exchange_weak(at, begin + bytes, std::memory_order_relaxed));
  std::byte* const base = file_.chunk(begin / kAuditChunkBytes);
  if (base == nullptr) return {};
  std::byte* const here = base + begin % kAuditChunkBytes;
  // Fetches the next record's cache line while this call runs.
  __builtin_prefetch(here + bytes, 1);
  auto* record = reinterpret_cast<AuditRecord*>(here);
  std::atomic_ref(record->words)
      .store(static_cast<std::uint32_t>(bytes / kWord), std::memory_order_relaxed);
  record->begin_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
  return {record, begin};
}

void AuditFile::publish(AuditRecord& record, AuditState state) noexcept {
  std::atomic_ref(record.state).store(static_cast<std::uint8_t>(state), std::memory_order_release);
}

std::uint32_t AuditFile::add_group(std::string_view name, int size, int rank) noexcept {
  const std::uint32_t number = groups_.fetch_add(1, std::memory_order_relaxed);
  name = name.substr(0, 1024);
  if (AuditRecord* const record = next((name.size() + kWord - 1) / kWord).record) {
    record->number = number;
    record->sequence = static_cast<std::uint64_t>(size);
    record->peer = rank;
    record->name_bytes = static_cast<std::uint16_t>(name.size());
    std::memcpy(record + 1, name.data(), name.size());
    publish(*record, AuditState::kGroup);
  }
  return number;
}

std::optional<std::uint32_t> AuditFile::add_shape(const AuditShape& shape,
                                                  const std::size_t* in_parts,
                                                  const std::size_t* out_parts) noexcept {
  static_assert(sizeof(AuditShape) % kWord == 0 && sizeof(std::size_t) == kWord);
  AuditRecord* const record =
      next(sizeof(AuditShape) / kWord + shape.in.parts + shape.out.parts).record;
  if (record == nullptr) return std::nullopt;
  const std::uint32_t number = shapes_.fetch_add(1, std::memory_order_relaxed);
  record->number = number;
  auto* const bytes = reinterpret_cast<std::byte*>(record + 1);
  std::memcpy(bytes, &shape, sizeof(shape));
  auto* const parts = reinterpret_cast<std::size_t*>(bytes + sizeof(shape));
  std::copy_n(out_parts, shape.out.parts, std::copy_n(in_parts, shape.in.parts, parts));
  publish(*record, AuditState::kShape);
  return number;
}

void AuditFile::add_non_finite(std::size_t at, std::uint8_t which, std::size_t element) noexcept {
  AuditRecord* const record = next(0).record;
  if (record == nullptr) return;
  record->digested = which;
  record->sequence = element + 1;
  record->begin_ns = static_cast<std::int64_t>(at);
  publish(*record, AuditState::kNonFinite);
}

}  // namespace hocket::observe
