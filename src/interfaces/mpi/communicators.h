// Making communicators, and their hints and attributes.
#pragma once

#include <memory>
#include <string>

#include "interfaces/mpi/process.h"

namespace hocket::mpi {

void add_first_communicators(Process& of);
// Returns the handle of a new communicator. Null, for a process that is no member, gives
// MPI_COMM_NULL.
MPI_Comm publish(std::shared_ptr<Comm> made);
// Makes a communicator of `parent`'s ranks with the same color, ordered by key. Null if the color
// is negative.
std::shared_ptr<Comm> split(Comm& parent, int color, int key);
std::shared_ptr<Comm> duplicate(Comm& parent);
void make_inner(Comm& comm);

bool is_on_one_host(const Comm& comm);
// Returns the info object of hints; null for MPI_INFO_NULL. Throws MPI_ERR_INFO.
const Info* hints_of(MPI_Info handle);

void copy_attributes(Comm& from, Comm& to);
void delete_attributes(Comm& of);
void copy_attributes(Type& from, MPI_Datatype handle, Type& to);
void delete_attributes(Type& of, MPI_Datatype handle);

// Ends the job: the other ranks' calls fail with this reason.
[[noreturn]] void abort_job(const std::shared_ptr<Comm>& comm, const std::string& why, int code);

}  // namespace hocket::mpi
