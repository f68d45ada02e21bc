// Folders into which each rank of a job has written a file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hocket::observe {

// Returns the files with this ending. Empty if the folder cannot be read; `error` says why.
std::vector<std::filesystem::path> rank_files(const std::string& folder,
                                              std::string_view ending,
                                              std::error_code& error);

// Deletes files that an earlier, larger job has left: the files of ranks from `size` on. A file
// that cannot be deleted stays.
void drop_rank_files_from(int size, const std::string& folder, std::string_view ending) noexcept;

// Reads each file. `kind` is "trace" or "audit": the ending, and the word in hocket run's option
// and the setting. Throws InvalidArgument if there is no file. Errors of `read` get the file's
// name. Throws SystemError if a file cannot be read.
void read_rank_files(const std::string& folder,
                     std::string_view kind,
                     const std::function<void(std::span<const std::byte>)>& read);

}  // namespace hocket::observe
