// Making communicators, and what they hold beside ranks.
#pragma once

#include <functional>
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

// Makes all ranks wait for each other. If `act` threw on one, all throw an error of that class.
void agree(Comm& comm, const std::function<void()>& act);
bool is_on_one_host(const Comm& comm);
// Returns what a program gave as hints; null for MPI_INFO_NULL. Throws MPI_ERR_INFO.
const Info* hints_of(MPI_Info handle);

void copy_attributes(Comm& from, Comm& to);
void delete_attributes(Comm& of);
void copy_attributes(Type& from, MPI_Datatype handle, Type& to);
void delete_attributes(Type& of, MPI_Datatype handle);

// Ends the job: the other ranks' calls fail with this reason.
[[noreturn]] void abort_job(const std::shared_ptr<Comm>& comm, const std::string& why, int code);

}  // namespace hocket::mpi
