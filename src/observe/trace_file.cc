#include "observe/trace_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <exception>
#include <utility>

#include "base/log.h"
#include "hocket/error.h"
#include "observe/mapped_file.h"

namespace hocket::observe {
namespace {

// The clock that all processes of a host share.
std::int64_t now_ns() noexcept { return clock_ns(CLOCK_MONOTONIC); }

void publish(TraceRecord& record, TraceState state) noexcept {
  std::atomic_ref(record.state).store(static_cast<std::uint8_t>(state), std::memory_order_release);
}

}  // namespace

std::shared_ptr<TraceFile> TraceFile::make(const std::string& directory, const Owner& owner) {
  const std::string name = "rank-" + std::to_string(owner.rank) + ".trace";
  const int fd = create_file(directory, name, "HOCKET_TRACE");
  auto* header = static_cast<TraceHeader*>(map_piece(fd, 0, kTraceHeaderBytes));
  if (header == nullptr) {
    const int error = errno;
    close(fd);
    fail_to_write(directory, name, "HOCKET_TRACE", error);
  }
  *header = {.magic = kTraceMagic,
             .version = kTraceVersion,
             .rank = owner.rank,
             .size = owner.size,
             .host = 0,
             .pid = getpid(),
             .record_bytes = sizeof(TraceRecord),
             .wall_ns = clock_ns(CLOCK_REALTIME) - now_ns(),
             .dropped = 0,
             .host_name = {}};
  gethostname(header->host_name.chars, sizeof(header->host_name) - 1);
  return std::shared_ptr<TraceFile>(new TraceFile(fd, header));
}

TraceFile::TraceFile(int fd, TraceHeader* header) noexcept : fd_(fd), header_(header) {}

TraceFile::~TraceFile() {
  for (auto& chunk : chunks_) {
    if (chunk.load() != nullptr) munmap(chunk.load(), kChunkRecords * sizeof(TraceRecord));
  }
  // What was set aside and not used is given back; not so by a process that was forked meanwhile.
  if (header_->pid == getpid()) {
    const std::size_t used = std::min(next_.load(), kChunks * kChunkRecords);
    if (ftruncate(fd_, static_cast<off_t>(kTraceHeaderBytes + used * sizeof(TraceRecord))) != 0) {
      base::log(base::LogLevel::kDebug, "a trace's file could not be cut to its size");
    }
    munmap(header_, kTraceHeaderBytes);
  }
  close(fd_);
}

void TraceFile::drop(const char* why) noexcept {
  std::atomic_ref(header_->dropped).fetch_add(1, std::memory_order_relaxed);
  if (full_.exchange(true)) return;
  try {
    base::log(base::LogLevel::kWarning, std::string("no more calls are traced: ") + why);
  } catch (...) {  // it is counted all the same
  }
}

TraceRecord* TraceFile::chunk(std::size_t index) noexcept {
  const std::lock_guard lock(mutex_);
  TraceRecord* found = chunks_[index].load(std::memory_order_acquire);
  if (found != nullptr || full_) return found;
  constexpr std::size_t kBytes = kChunkRecords * sizeof(TraceRecord);
  static_assert(kBytes % 4096 == 0 && kTraceHeaderBytes % 4096 == 0);
  found = static_cast<TraceRecord*>(map_piece(fd_, kTraceHeaderBytes + index * kBytes, kBytes));
  if (found == nullptr) {
    const int error = errno;
    drop(std::strerror(error));
    return nullptr;
  }
  chunks_[index].store(found, std::memory_order_release);
  return found;
}

TraceRecord* TraceFile::next() noexcept {
  const std::size_t at = next_.fetch_add(1, std::memory_order_relaxed);
  if (at >= kChunks * kChunkRecords) {
    drop("the file has as many as it may");
    return nullptr;
  }
  TraceRecord* records = chunks_[at / kChunkRecords].load(std::memory_order_acquire);
  if (records == nullptr) records = chunk(at / kChunkRecords);
  if (records == nullptr) {
    drop("there is no room");
    return nullptr;
  }
  return records + at % kChunkRecords;
}

std::uint32_t TraceFile::add_group(std::uint64_t id,
                                   std::string_view name,
                                   int size,
                                   int rank) noexcept {
  const std::uint32_t number = groups_.fetch_add(1, std::memory_order_relaxed);
  if (TraceRecord* record = next()) {
    record->group = number;
    record->sequence = id;
    record->bytes = static_cast<std::uint64_t>(size);
    record->peer = rank;
    publish(*record, TraceState::kGroup);
  }
  while (!name.empty()) {
    TraceRecord* record = next();
    if (record == nullptr) break;
    record->group = number;
    record->name = name;
    name.remove_prefix(std::min(name.size(), sizeof(record->name)));
    record->engine = name;
    name.remove_prefix(std::min(name.size(), sizeof(record->engine)));
    publish(*record, TraceState::kName);
  }
  return number;
}

TraceRecord* TraceFile::begin(const TracedBegin& call) noexcept {
  TraceRecord* record = next();
  if (record == nullptr) return nullptr;
  record->dtype = static_cast<std::uint8_t>(call.dtype);
  record->on_gpu = call.on_gpu ? 1 : 0;
  record->group = call.group;
  record->begin_ns = now_ns();
  record->sequence = call.sequence;
  record->bytes = call.bytes;
  record->peer = call.peer;
  record->name = call.name;
  record->engine = call.engine;
  publish(*record, TraceState::kBegun);
  return record;
}

void TraceFile::end(TraceRecord& record, bool failed) noexcept {
  record.end_ns = now_ns();
  publish(record, failed ? TraceState::kFailed : TraceState::kDone);
}

// --- Span ---------------------------------------------------------------------------------------

Span::Span(TraceFile* file, const TracedBegin& call) noexcept {
  if (file == nullptr) return;
  record_ = file->begin(call);
  exceptions_ = std::uncaught_exceptions();
}
Span::Span(Span&& other) noexcept
    : record_(std::exchange(other.record_, nullptr)), exceptions_(other.exceptions_) {}
Span& Span::operator=(Span&& other) noexcept {
  end(false);
  record_ = std::exchange(other.record_, nullptr);
  exceptions_ = other.exceptions_;
  return *this;
}
Span::~Span() {
  if (record_ != nullptr) end(std::uncaught_exceptions() > exceptions_);
}

void Span::end(bool failed) noexcept {
  if (record_ != nullptr) TraceFile::end(*std::exchange(record_, nullptr), failed);
}

void Span::set_peer(int peer) noexcept {
  if (record_ != nullptr) record_->peer = peer;
}

}  // namespace hocket::observe
