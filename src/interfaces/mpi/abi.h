// The binary interface that a library is built for: its mpi.h, and the differences between the two
// interfaces.
//
// Every source that includes this file is compiled twice. Without a macro it is for the standard's
// interface, whose handles are pointers. With HOCKET_MPI_MPICH it is for MPICH's interface, whose
// handles are integers. In both, the handle of an object that the program has made is its index in
// a table.
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

// Handles below this are predefined by the interface. Handles of table entries begin here.
#ifdef HOCKET_MPI_MPICH
inline constexpr std::uint32_t kOwnHandles = 0xc0000000U;
#else
inline constexpr std::uint32_t kOwnHandles = 0x1000;
#endif
inline constexpr std::uint32_t kPredefined = 512;
// Returns the index of a predefined handle among the predefined handles of its kind. It is less
// than kPredefined.
constexpr std::uint32_t predefined_index(std::uint32_t value) noexcept {
  return (value & 0xff) | (value >> 31) << 8;
}

// Stores the received bytes and the cancelled flag in the fields of a status, which differ between
// the interfaces.
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
