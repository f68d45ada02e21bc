// The folder in which each rank of a job has left a file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hocket::observe {

// The files with this ending; none where the folder cannot be read, which `error` then tells.
std::vector<std::filesystem::path> rank_files(const std::string& folder,
                                              std::string_view ending,
                                              std::error_code& error);

// Takes those away that an earlier and larger job has left: of ranks that one of `size` has not.
// What cannot be taken away stays.
void drop_rank_files_from(int size, const std::string& folder, std::string_view ending) noexcept;

// Reads each of them. `kind`: "trace" or "audit", its ending and the word in hocket run's option
// and the setting. Throws InvalidArgument where there is none, and with the file's name where
// `read` does; SystemError where one cannot be read.
void read_rank_files(const std::string& folder,
                     std::string_view kind,
                     const std::function<void(std::span<const std::byte>)>& read);

}  // namespace hocket::observe
