// Statuses of MPItrampoline's binary interface.
//
// MPItrampoline takes the values of constants and handles from the library that it loads. So they
// are those of the standard. Only MPI_Status has a different layout.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace hocket::mpi {

// A status in a program's memory. A value.
struct alignas(8) TrampolineStatus {
  std::array<int, 6> internal;
  int MPI_SOURCE;
  int MPI_TAG;
  int MPI_ERROR;
};
static_assert(sizeof(TrampolineStatus) == 40);

inline MPI_Status standard_status(const TrampolineStatus& theirs) noexcept {
  MPI_Status made{theirs.MPI_SOURCE, theirs.MPI_TAG, theirs.MPI_ERROR, {}};
  std::copy_n(theirs.internal.begin(), 5, made.MPI_internal);
  return made;
}
inline void copy_back(TrampolineStatus& theirs, const MPI_Status& ours) noexcept {
  std::copy_n(ours.MPI_internal, 5, theirs.internal.begin());
  theirs.MPI_SOURCE = ours.MPI_SOURCE;
  theirs.MPI_TAG = ours.MPI_TAG;
  theirs.MPI_ERROR = ours.MPI_ERROR;
}

// A standard status for one call, in place of the program's. Its destructor copies the values to
// the program's status. A null pointer stays null.
class CopiedStatus {
 public:
  explicit CopiedStatus(TrampolineStatus* theirs) noexcept : theirs_(theirs) {
    if (theirs != nullptr) ours_ = standard_status(*theirs);
  }
  CopiedStatus(const CopiedStatus&) = delete;
  CopiedStatus& operator=(const CopiedStatus&) = delete;
  ~CopiedStatus() {
    if (theirs_ != nullptr) copy_back(*theirs_, ours_);
  }
  operator MPI_Status*() noexcept { return theirs_ == nullptr ? nullptr : &ours_; }  // NOLINT

 private:
  TrampolineStatus* theirs_ = nullptr;
  MPI_Status ours_{};
};

// A standard status for a call that only reads the program's status.
class ReadStatus {
 public:
  explicit ReadStatus(const TrampolineStatus* theirs) noexcept : is_null_(theirs == nullptr) {
    if (!is_null_) ours_ = standard_status(*theirs);
  }
  operator const MPI_Status*() const noexcept { return is_null_ ? nullptr : &ours_; }  // NOLINT

 private:
  bool is_null_;
  MPI_Status ours_{};
};

// Standard statuses for one call, in place of the program's array.
class CopiedStatuses {
 public:
  CopiedStatuses(TrampolineStatus* theirs, int count) : theirs_(theirs) {
    if (theirs == nullptr || count <= 0) return;
    ours_.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) ours_.push_back(standard_status(theirs[i]));
  }
  CopiedStatuses(const CopiedStatuses&) = delete;
  CopiedStatuses& operator=(const CopiedStatuses&) = delete;
  ~CopiedStatuses() {
    for (std::size_t i = 0; i < ours_.size(); ++i) copy_back(theirs_[i], ours_[i]);
  }
  operator MPI_Status*() noexcept { return theirs_ == nullptr ? nullptr : ours_.data(); }  // NOLINT

 private:
  TrampolineStatus* theirs_;
  std::vector<MPI_Status> ours_;
};

}  // namespace hocket::mpi
