// Parameter types of functions that carry two exported calls: one with int counts, and the `_c`
// form with large counts.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "interfaces/mpi/abi.h"
#include "interfaces/mpi/messages/pending.h"

namespace hocket::mpi {

// A view of a program's array of counts or displacements, of int or 64 bits. The array must outlive
// it.
class Counts {
 public:
  Counts(const int* values) noexcept : narrow_(values) {}         // NOLINT: implicit
  Counts(const std::int64_t* values) noexcept : wide_(values) {}  // NOLINT
  Counts(const long long* values) noexcept                        // NOLINT
      : wide_(reinterpret_cast<const std::int64_t*>(values)) {}

  explicit operator bool() const noexcept { return narrow_ != nullptr || wide_ != nullptr; }
  std::int64_t operator[](std::size_t i) const noexcept {
    return narrow_ != nullptr ? narrow_[i] : wide_[i];
  }
  bool is_narrow() const noexcept { return narrow_ != nullptr; }
  std::vector<std::int64_t> copy(std::int64_t count) const {
    std::vector<std::int64_t> made(static_cast<std::size_t>(count > 0 ? count : 0));
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = (*this)[i];
    return made;
  }

 private:
  const int* narrow_ = nullptr;
  const std::int64_t* wide_ = nullptr;
};

// A view of an output argument of int or 64 bits. In an int, a number that does not fit becomes
// MPI_UNDEFINED.
class CountOut {
 public:
  CountOut(int* place) noexcept : narrow_(place) {}                                       // NOLINT
  CountOut(std::int64_t* place) noexcept : wide_(place) {}                                // NOLINT
  CountOut(long long* place) noexcept : wide_(reinterpret_cast<std::int64_t*>(place)) {}  // NOLINT

  bool is_null() const noexcept { return narrow_ == nullptr && wide_ == nullptr; }
  void operator=(std::int64_t value) const noexcept {
    if (wide_ != nullptr) {
      *wide_ = value;
    } else {
      const bool fits =
          value >= std::numeric_limits<int>::min() && value <= std::numeric_limits<int>::max();
      *narrow_ = fits ? static_cast<int>(value) : MPI_UNDEFINED;
    }
  }
  std::int64_t get() const noexcept { return wide_ != nullptr ? *wide_ : *narrow_; }

 private:
  int* narrow_ = nullptr;
  std::int64_t* wide_ = nullptr;
};

// An operator's function, with int or large counts. A value.
struct OpFunction {
  OpFunction(MPI_User_function* f) noexcept : narrow(f) {}  // NOLINT
  OpFunction(MPI_User_function_c* f) noexcept : wide(f) {}  // NOLINT
  MPI_User_function* narrow = nullptr;
  MPI_User_function_c* wide = nullptr;
};

// A conversion function of a data representation, with int or large counts. A value.
struct ConversionFunction {
  ConversionFunction(MPI_Datarep_conversion_function* f) noexcept : narrow(f) {}  // NOLINT
  ConversionFunction(MPI_Datarep_conversion_function_c* f) noexcept : wide(f) {}  // NOLINT
  bool is_null() const noexcept { return narrow == nullptr && wide == nullptr; }
  MPI_Datarep_conversion_function* narrow = nullptr;
  MPI_Datarep_conversion_function_c* wide = nullptr;
};

}  // namespace hocket::mpi
