// The composition root: the one place that names concrete engines.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator_impl.h"

namespace hocket::comm {

// What ranks that are threads of one process share beside the segment.
class ThreadJob;
std::shared_ptr<ThreadJob> make_thread_job();

// "a,b" as {"a", "b"}.
std::vector<std::string> split_names(const std::string& comma_separated);
// Names of the engines there are for this kind of job, best first. Throws InvalidArgument for a
// wanted one that there is not.
std::vector<std::string> choose_engines(const std::vector<std::string>& wanted, bool threads);

// Bytes of the host's segment that a group with `size` members on this host needs.
std::size_t group_bytes(const std::vector<std::string>& engines, int size);
// Writes an empty group into zeroed memory.
void format_group(std::byte* memory, int size);

Engines make_engines(WorldImpl& world,
                     const Membership& membership,
                     control::GroupControl& control,
                     engine::Consistency& consistency,
                     std::uint64_t block);

}  // namespace hocket::comm
