// A shared library calls functions of other libraries through a table of addresses, its global
// offset table. The dynamic linker fills this table. The library's relocations say which function
// belongs into which slot:
//
//   relocation {offset, symbol} --> symbol {name} --> "epoll_wait"
//        |
//        +--> slot in the table: the address that the library calls
#include "foundation/os/imports.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace hocket::os {
namespace {

using Address = std::uintptr_t;
using Relocation = ElfW(Rela);

// The dynamic section of a loaded library, which lists its tables. A value.
class Dynamic {
 public:
  explicit Dynamic(const link_map& library) : library_(library) {}

  // Returns the value of the entry with this tag; 0 if there is none.
  Address value(decltype(ElfW(Dyn)::d_tag) tag) const noexcept {
    for (const ElfW(Dyn)* entry = library_.l_ld; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == tag) return entry->d_un.d_val;
    }
    return 0;
  }
  // Returns the table with this tag. glibc has replaced the tables' offsets by addresses; other C
  // libraries keep the offsets.
  template <typename T>
  const T* table(decltype(ElfW(Dyn)::d_tag) tag) const noexcept {
    const Address found = value(tag);
    return reinterpret_cast<const T*>(found < library_.l_addr ? library_.l_addr + found : found);
  }
  std::span<const Relocation> relocations(decltype(ElfW(Dyn)::d_tag) tag,
                                          decltype(ElfW(Dyn)::d_tag) size) const noexcept {
    const Address bytes = value(size);
    if (bytes == 0) return {};
    return {table<Relocation>(tag), bytes / sizeof(Relocation)};
  }

 private:
  const link_map& library_;
};

// Returns whether the slot lies in a page that the dynamic linker made read-only after it had
// filled the tables.
//
//   pages    |       |       |       |
//   RELRO        [--------------)
//   sealed   |<------------->|
//
// The dynamic linker rounds both ends down. So the last page stays writable if RELRO covers only
// its beginning, because ordinary data follows there.
bool is_sealed(Address slot, const void* file, Address loaded_at, Address page_bytes) noexcept {
  const auto page_of = [page_bytes](Address at) { return at / page_bytes * page_bytes; };
  const auto* header = static_cast<const ElfW(Ehdr)*>(file);
  const auto* first =
      reinterpret_cast<const ElfW(Phdr)*>(static_cast<const std::byte*>(file) + header->e_phoff);
  for (const ElfW(Phdr) & part : std::span(first, header->e_phnum)) {
    const Address begin = loaded_at + part.p_vaddr;
    if (part.p_type != PT_GNU_RELRO) continue;
    if (slot >= page_of(begin) && slot < page_of(begin + part.p_memsz)) return true;
  }
  return false;
}

bool store(Address slot, const void* value, bool is_sealed, Address page_bytes) noexcept {
  auto* page = reinterpret_cast<void*>(slot / page_bytes * page_bytes);
  if (is_sealed && ::mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0) return false;
  // The store is atomic, because other threads may be calling through the slot. Either function
  // serves them.
  std::atomic_ref(*reinterpret_cast<const void**>(slot)).store(value, std::memory_order_relaxed);
  if (is_sealed) ::mprotect(page, page_bytes, PROT_READ);
  return true;
}

}  // namespace

bool replace_import(const void* inside, const char* name, const void* replacement) noexcept {
  Dl_info file{};
  link_map* library = nullptr;
  if (::dladdr1(inside, &file, reinterpret_cast<void**>(&library), RTLD_DL_LINKMAP) == 0 ||
      library == nullptr) {
    return false;
  }
  const Dynamic dynamic(*library);
  const auto* symbols = dynamic.table<ElfW(Sym)>(DT_SYMTAB);
  const auto* names = dynamic.table<char>(DT_STRTAB);
  const auto page_bytes = static_cast<Address>(::sysconf(_SC_PAGESIZE));
  bool replaced = false;
  for (const auto relocations :
       {dynamic.relocations(DT_JMPREL, DT_PLTRELSZ), dynamic.relocations(DT_RELA, DT_RELASZ)}) {
    for (const Relocation& each : relocations) {
      const ElfW(Sym) & symbol = symbols[ELF64_R_SYM(each.r_info)];
      if (symbol.st_shndx != SHN_UNDEF || std::strcmp(names + symbol.st_name, name) != 0) continue;
      const Address slot = library->l_addr + each.r_offset;
      const bool sealed = is_sealed(slot, file.dli_fbase, library->l_addr, page_bytes);
      if (!store(slot, replacement, sealed, page_bytes)) return false;
      replaced = true;
    }
  }
  return replaced;
}

}  // namespace hocket::os
