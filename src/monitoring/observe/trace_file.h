// The file into which a rank writes each of its calls while it runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "hocket/types.h"
#include "monitoring/observe/mapped_file.h"
#include "monitoring/observe/trace_format.h"

namespace hocket::observe {

// The facts about a call that are known at its start. A value; its views must be valid while the
// record is made.
struct TracedBegin {
  std::uint32_t group = 0;
  std::string_view name;
  std::string_view engine;
  std::uint64_t sequence = 0;
  DType dtype = DType::kUInt8;
  std::size_t bytes = 0;
  int peer = -1;
  bool on_gpu = false;
};

// A resource: a mapped file that grows. Any thread may use it. When it is full, later calls are
// dropped and counted.
class TraceFile {
 public:
  struct Owner {
    int rank = 0;
    int size = 1;
  };
  // Opens DIRECTORY/rank-N.trace, and replaces an existing one. Rank 0 also deletes files of ranks
  // that its job does not have. Makes the directory if needed. Throws SystemError.
  static std::shared_ptr<TraceFile> make(const std::string& directory, const Owner& owner);
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  ~TraceFile();

  // Sets the number of this rank's host, known once the ranks have met; 0 until then.
  void set_host(int host) noexcept { header_->host = host; }
  // Adds a communicator and returns its number.
  std::uint32_t add_group(std::uint64_t id, std::string_view name, int size, int rank) noexcept;
  // Begins a call. Returns null if there is no room.
  TraceRecord* begin(const TracedBegin& call) noexcept;
  static void end(TraceRecord& record, bool failed) noexcept;

 private:
  TraceFile(const std::string& directory, const Owner& owner);
  TraceRecord* next() noexcept;

  static constexpr std::size_t kChunkRecords = 1 << 14;  // 1.25 MiB; 4 million calls in all
  static constexpr std::size_t kChunkBytes = kChunkRecords * sizeof(TraceRecord);
  static_assert(kChunkBytes % 4096 == 0);

  MappedFile file_;
  TraceHeader* const header_;
  std::atomic<std::size_t> next_{0};  // number of the next record
  std::atomic<std::uint32_t> groups_{0};
};

// A resource: a call in progress, which ends with this object. Empty: the call is not traced. If an
// exception destroys the object, the call has failed.
class Span {
 public:
  Span() noexcept = default;
  Span(TraceFile* file, const TracedBegin& call) noexcept;
  Span(Span&& other) noexcept;
  Span& operator=(Span&& other) noexcept;
  ~Span();

  void end(bool failed) noexcept;
  void set_peer(int peer) noexcept;

 private:
  TraceRecord* record_ = nullptr;
  int exceptions_ = 0;  // std::uncaught_exceptions() at the start
};

}  // namespace hocket::observe
