// Files that are written through memory: what is in them survives the process, however that ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>

namespace hocket::observe {

std::int64_t clock_ns(clockid_t clock) noexcept;

// A new file NAME in `directory`, which it makes if need be; one that is there may still be mapped
// by somebody, and stays theirs. Throws SystemError, whose text begins with `variable`.
int create_file(const std::string& directory, const std::string& name, const char* variable);
// What it throws.
[[noreturn]] void fail_to_write(const std::string& directory,
                                const std::string& name,
                                const char* variable,
                                int error);

// A piece of it, with its memory set aside; not for children. Null with errno where there is none.
void* map_piece(int fd, std::size_t offset, std::size_t bytes) noexcept;

}  // namespace hocket::observe
