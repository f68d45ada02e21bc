// Info objects: keys and values, in the order in which they were set.
#include <algorithm>
#include <cstring>

#include "interfaces/mpi/process.h"
#include "mpi_calls.h"

namespace hocket::mpi {

const std::string* Info::find(const std::string& key) const noexcept {
  for (const auto& [name, value] : entries) {
    if (name == key) return &value;
  }
  return nullptr;
}
void Info::set(const std::string& key, const std::string& value) {
  for (auto& [name, old] : entries) {
    if (name == key) {
      old = value;
      return;
    }
  }
  entries.emplace_back(key, value);
}

namespace {

Info& info_of(MPI_Info handle) {
  Info* found = process().infos.find(handle);
  require(found != nullptr, MPI_ERR_INFO, "info is no info object");
  return *found;
}

std::string key_of(const char* key) {
  require(key != nullptr && *key != '\0', MPI_ERR_INFO_KEY, "key is empty");
  require(std::strlen(key) < MPI_MAX_INFO_KEY, MPI_ERR_INFO_KEY, "key is too long");
  return key;
}

void make_predefined_once() {
  Process& p = process();
  if (p.infos.find(MPI_INFO_ENV) == nullptr) {
    p.infos.add_predefined(MPI_INFO_ENV, std::make_shared<Info>());
  }
}

}  // namespace
}  // namespace hocket::mpi

namespace hocket::mpi::call {

void Info_create(MPI_Info* info) { *info = process().infos.add(std::make_shared<Info>()); }
void Info_create_env(int, char**, MPI_Info* info) {
  make_predefined_once();
  Info_dup(MPI_INFO_ENV, info);
}
void Info_dup(MPI_Info info, MPI_Info* newinfo) {
  *newinfo = process().infos.add(std::make_shared<Info>(info_of(info)));
}
void Info_free(MPI_Info* info) {
  info_of(*info);
  require(*info != MPI_INFO_ENV, MPI_ERR_INFO, "info is predefined");
  process().infos.remove(*info);
  *info = MPI_INFO_NULL;
}
void Info_set(MPI_Info info, const char* key, const char* value) {
  require(value != nullptr && std::strlen(value) < MPI_MAX_INFO_VAL,
          MPI_ERR_INFO_VALUE,
          "value is too long");
  info_of(info).set(key_of(key), value);
}
void Info_delete(MPI_Info info, const char* key) {
  const std::string name = key_of(key);
  const auto removed =
      std::erase_if(info_of(info).entries, [&](const auto& entry) { return entry.first == name; });
  require(removed != 0, MPI_ERR_INFO_NOKEY, "info has no such key");
}
void Info_get(MPI_Info info, const char* key, int valuelen, char* value, int* flag) {
  const std::string* found = info_of(info).find(key_of(key));
  *flag = found != nullptr;
  if (found == nullptr) return;
  require(valuelen >= 0, MPI_ERR_ARG, "valuelen is negative");
  const std::string cut = found->substr(0, static_cast<std::size_t>(valuelen));
  std::memcpy(value, cut.c_str(), cut.size() + 1);
}
void Info_get_string(MPI_Info info, const char* key, int* buflen, char* value, int* flag) {
  const std::string* found = info_of(info).find(key_of(key));
  *flag = found != nullptr;
  if (found == nullptr) return;
  if (*buflen > 0) {
    const std::string cut = found->substr(0, static_cast<std::size_t>(*buflen - 1));
    std::memcpy(value, cut.c_str(), cut.size() + 1);
  }
  *buflen = static_cast<int>(found->size() + 1);
}
void Info_get_valuelen(MPI_Info info, const char* key, int* valuelen, int* flag) {
  const std::string* found = info_of(info).find(key_of(key));
  *flag = found != nullptr;
  if (found != nullptr) *valuelen = static_cast<int>(found->size());
}
void Info_get_nkeys(MPI_Info info, int* nkeys) {
  *nkeys = static_cast<int>(info_of(info).entries.size());
}
void Info_get_nthkey(MPI_Info info, int n, char* key) {
  const auto& entries = info_of(info).entries;
  require(n >= 0 && n < static_cast<int>(entries.size()), MPI_ERR_ARG, "n is no key's number");
  const std::string& found = entries[static_cast<std::size_t>(n)].first;
  std::memcpy(key, found.c_str(), found.size() + 1);
}

}  // namespace hocket::mpi::call
