// Functions that a loaded library takes from others, replaced while the program runs.
#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "foundation/os/imports.h"

namespace hocket::os {
namespace {

int first() { return -7; }
int second() { return -8; }

const void* address(int (*function)()) { return reinterpret_cast<const void*>(function); }

std::string contents_of(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

// The parts of a file's mappings, each with its protection: "7f00-7f10 r--p".
std::vector<std::string> protections_of(const std::string& file) {
  std::vector<std::string> found;
  std::istringstream maps(contents_of("/proc/self/maps"));
  for (std::string line; std::getline(maps, line);) {
    if (line.find(file) == std::string::npos) continue;
    found.push_back(line.substr(0, line.find(' ') + 5));
  }
  return found;
}

// Writes a copy of a library whose RELRO ends a few bytes earlier, within the page that has the
// table of addresses. The dynamic linker then leaves this page writable. Returns the copy's file.
std::string partly_sealed(const std::string& library) {
  std::string bytes = contents_of(library);
  ElfW(Ehdr) header;
  std::memcpy(&header, bytes.data(), sizeof header);
  bool is_changed = false;
  for (int i = 0; i < header.e_phnum; ++i) {
    char* const at =
        bytes.data() + header.e_phoff + static_cast<std::size_t>(i) * sizeof(ElfW(Phdr));
    ElfW(Phdr) part;
    std::memcpy(&part, at, sizeof part);
    if (part.p_type != PT_GNU_RELRO) continue;
    part.p_memsz -= 1;  // less than a slot, so that RELRO still has all slots
    std::memcpy(at, &part, sizeof part);
    is_changed = true;
  }
  EXPECT_TRUE(is_changed);
  const auto file = std::filesystem::temp_directory_path() /
                    ("hocket-partly-sealed-" + std::to_string(::getpid()) + ".so");
  std::ofstream(file, std::ios::binary) << bytes;
  return file.string();
}

// A library, and how the linker protects its table of addresses.
struct Linked {
  const char* name;
  const char* file;
  bool is_partly_sealed;
};

class Imports : public testing::TestWithParam<Linked> {
 protected:
  void SetUp() override {
    file_ = GetParam().is_partly_sealed ? partly_sealed(GetParam().file) : GetParam().file;
    void* library = ::dlopen(file_.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (GetParam().is_partly_sealed) std::filesystem::remove(file_);
    ASSERT_NE(library, nullptr) << ::dlerror();
    call_ = reinterpret_cast<int (*)()>(::dlsym(library, "by_import"));
    ASSERT_NE(call_, nullptr);
  }
  int (*call_)() = nullptr;
  std::string file_;
};

TEST_P(Imports, AreReplacedForThatLibraryAlone) {
  const int parent = ::getppid();
  const auto before = protections_of(file_);
  EXPECT_FALSE(before.empty());
  EXPECT_FALSE(replace_import(address(call_), "getpid", address(&first)));
  EXPECT_EQ(call_(), parent);
  EXPECT_TRUE(replace_import(address(call_), "getppid", address(&first)));
  EXPECT_EQ(call_(), -7);
  EXPECT_EQ(::getppid(), parent);
  EXPECT_TRUE(replace_import(address(call_), "getppid", address(&second)));
  EXPECT_EQ(call_(), -8);
  EXPECT_EQ(protections_of(file_), before);
}

TEST(NoLibrary, HasNoImports) {
  const int here = 0;
  EXPECT_FALSE(replace_import(&here, "getppid", address(&first)));
}

INSTANTIATE_TEST_SUITE_P(Each,
                         Imports,
                         testing::Values(Linked{"lazy", IMPORTING_LAZY, false},
                                         Linked{"sealed", IMPORTING_SEALED, false},
                                         Linked{"partly_sealed", IMPORTING_SEALED, true}),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace hocket::os
