// The binary interface that a library is built for: its mpi.h, and what differs between the two.
//
// Everything in src/interfaces/mpi that includes this is compiled once for each. HOCKET_MPI_MPICH
// says that it is MPICH's, whose handles are integers; those of the standard are pointers. Handles
// of a program's own objects are numbers of places in a table, in both.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace hocket::mpi {

template <typename Handle>
struct Named {
  Handle handle;
  const char* name;
};
extern const Named<MPI_Datatype> kNamedDatatypes[];
extern const std::size_t kNamedDatatypeCount;
extern const Named<MPI_Op> kNamedOps[];
extern const std::size_t kNamedOpCount;
extern const Named<int> kErrorClasses[];
extern const std::size_t kErrorClassCount;

template <typename Handle>
int integer_of(Handle handle) noexcept {
  return static_cast<int>((std::intptr_t)handle);  // NOLINT: a pointer or an integer
}
template <typename Handle>
Handle handle_of(int value) noexcept {
  return (Handle)(std::intptr_t)value;  // NOLINT
}

// Handles below are the interface's own; the table's begin there.
#ifdef HOCKET_MPI_MPICH
inline constexpr std::uint32_t kOwnHandles = 0xc0000000U;
#else
inline constexpr std::uint32_t kOwnHandles = 0x1000;
#endif
inline constexpr std::uint32_t kPredefined = 512;
// Among its kind, a number below kPredefined for each predefined handle.
constexpr std::uint32_t predefined_index(std::uint32_t value) noexcept {
  return (value & 0xff) | (value >> 31) << 8;
}

// Bytes and the mark of cancellation lie where each interface has room for them.
inline void set_bytes(MPI_Status& status, std::uint64_t bytes, bool cancelled) noexcept {
  const auto low = static_cast<std::uint32_t>(bytes),
             high = static_cast<std::uint32_t>(bytes >> 32);
#ifdef HOCKET_MPI_MPICH
  status.count_lo = static_cast<int>(low);
  status.count_hi_and_cancelled = static_cast<int>(high << 1 | (cancelled ? 1 : 0));
#else
  status.MPI_internal[0] = static_cast<int>(low);
  status.MPI_internal[1] = static_cast<int>(high);
  status.MPI_internal[2] = cancelled ? 1 : 0;
#endif
}
inline std::uint64_t bytes_in(const MPI_Status& status) noexcept {
#ifdef HOCKET_MPI_MPICH
  const auto low = static_cast<std::uint32_t>(status.count_lo);
  const auto high = static_cast<std::uint32_t>(status.count_hi_and_cancelled) >> 1;
#else
  const auto low = static_cast<std::uint32_t>(status.MPI_internal[0]);
  const auto high = static_cast<std::uint32_t>(status.MPI_internal[1]);
#endif
  return std::uint64_t{high} << 32 | low;
}
inline bool is_cancelled(const MPI_Status& status) noexcept {
#ifdef HOCKET_MPI_MPICH
  return (status.count_hi_and_cancelled & 1) != 0;
#else
  return status.MPI_internal[2] != 0;
#endif
}

}  // namespace hocket::mpi
