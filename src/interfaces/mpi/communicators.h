// Making communicators, and what they hold beside ranks.
#pragma once

#include <memory>
#include <string>

#include "interfaces/mpi/process.h"

namespace hocket::mpi {

void add_first_communicators(Process& of);
// Gives a new communicator its handle; null where this process is no member.
MPI_Comm publish(std::shared_ptr<Comm> made);
// One of `parent`'s ranks of equal color, ordered by key; null where the color is negative.
std::shared_ptr<Comm> split(Comm& parent, int color, int key);
std::shared_ptr<Comm> duplicate(Comm& parent);
void make_inner(Comm& comm);

void copy_attributes(Comm& from, Comm& to);
void delete_attributes(Comm& of);
void copy_attributes(Type& from, MPI_Datatype handle, Type& to);
void delete_attributes(Type& of, MPI_Datatype handle);

// Ends the job: the other ranks' calls fail with this reason.
[[noreturn]] void abort_job(const std::shared_ptr<Comm>& comm, const std::string& why, int code);

}  // namespace hocket::mpi
