#include "monitoring/observe/trace_file.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <exception>
#include <utility>

#include "monitoring/observe/rank_files.h"

namespace hocket::observe {
namespace {

// The clock that all processes of a host share.
std::int64_t now_ns() noexcept { return clock_ns(CLOCK_MONOTONIC); }

void publish(TraceRecord& record, TraceState state) noexcept {
  std::atomic_ref(record.state).store(static_cast<std::uint8_t>(state), std::memory_order_release);
}

}  // namespace

std::shared_ptr<TraceFile> TraceFile::make(const std::string& directory, const Owner& owner) {
  std::shared_ptr<TraceFile> file(new TraceFile(directory, owner));
  if (owner.rank == 0) drop_rank_files_from(owner.size, directory, ".trace");
  return file;
}

TraceFile::TraceFile(const std::string& directory, const Owner& owner)
    : file_(directory,
            "rank-" + std::to_string(owner.rank) + ".trace",
            {.setting = "HOCKET_TRACE", .doing = "traced"},
            kChunkBytes),
      header_(static_cast<TraceHeader*>(file_.header())) {
  static_assert(kTraceHeaderBytes == MappedFile::kHeaderBytes);
  *header_ = {.magic = kTraceMagic,
              .version = kTraceVersion,
              .rank = owner.rank,
              .size = owner.size,
              .host = 0,
              .pid = getpid(),
              .record_bytes = sizeof(TraceRecord),
              .wall_ns = clock_ns(CLOCK_REALTIME) - now_ns(),
              .dropped = 0,
              .host_name = {}};
  gethostname(header_->host_name.chars, sizeof(header_->host_name) - 1);
  file_.count_dropped_in(header_->dropped);
}

TraceFile::~TraceFile() {
  file_.cut(std::min(next_.load(), MappedFile::kChunks * kChunkRecords) * sizeof(TraceRecord));
}

TraceRecord* TraceFile::next() noexcept {
  const std::size_t at = next_.fetch_add(1, std::memory_order_relaxed);
  if (at >= MappedFile::kChunks * kChunkRecords) {
    file_.drop("the file has as many as it may");
    return nullptr;
  }
  auto* const records = reinterpret_cast<TraceRecord*>(file_.chunk(at / kChunkRecords));
  return records == nullptr ? nullptr : records + at % kChunkRecords;
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
