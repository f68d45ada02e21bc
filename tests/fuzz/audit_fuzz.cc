// Audits: the parser of a rank's file of digests, and the comparison of two files.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "hocket/audit.h"
#include "hocket/error.h"
#include "monitoring/observe/audit_format.h"

namespace {

using namespace hocket;

void require(bool holds) {
  if (!holds) std::abort();
}

// A file of these records, as long as a fuzzer's inputs are short.
std::vector<std::byte> file_of(std::span<const std::byte> records) {
  const observe::AuditHeader header{.magic = observe::kAuditMagic,
                                    .version = observe::kAuditVersion,
                                    .rank = 0,
                                    .size = 2,
                                    .pid = 1,
                                    .wall_ns = 1'000'000'000,
                                    .dropped = 0};
  std::vector<std::byte> file(observe::kAuditHeaderBytes + records.size());
  std::memcpy(file.data(), &header, sizeof(header));
  std::ranges::copy(records, file.begin() + observe::kAuditHeaderBytes);
  return file;
}

void check_array(const AuditedArray& array, DType dtype) {
  require(array.block_bytes >= 1024 && array.block_bytes % size_of(dtype) == 0);
  std::size_t bytes = 0;
  for (const std::size_t part : array.parts) bytes += part;
  require(bytes <= array.bytes);
}

JobAudit read(std::span<const std::byte> contents) {
  JobAudit job;
  job.ranks.push_back(parse_rank_audit(contents));
  const RankAudit& rank = job.ranks.front();
  for (const AuditedCall& call : rank.calls) {
    require(call.group < rank.groups.size());
    check_array(call.in, call.dtype);
    check_array(call.out, call.dtype);
  }
  return job;
}

void compare(const JobAudit& a, const JobAudit& b) {
  const auto found = compare_audits(a, b);
  if (!found.first) return;
  require(found.first->block.begin <= found.first->block.end);
  require(found.first->other.has_value() == (found.first->what != AuditDifference::What::kMissing));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (bytes.empty()) return 0;
  const bool has_header = data[0] % 2 == 1;
  const auto rest = bytes.subspan(1);
  try {
    if (has_header) {
      std::vector<std::byte> file = file_of({});
      std::ranges::copy(rest.first(std::min(rest.size(), file.size())), file.begin());
      read(file);
      return 0;
    }
    const JobAudit whole = read(file_of(rest));
    first_non_finite(whole);
    compare(whole, whole);
    // The records up to some line, as a run that was killed there.
    const std::size_t lines = rest.size() / observe::kAuditLine;
    const JobAudit shorter = read(file_of(rest.first(lines / 2 * observe::kAuditLine)));
    compare(whole, shorter);
    compare(shorter, whole);
  } catch (const InvalidArgument&) {  // as it should
  }
  return 0;
}
