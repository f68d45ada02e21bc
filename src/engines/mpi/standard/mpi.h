// The part of MPI that shim.cc needs, in the binary interface that MPI 5.0 standardizes (chapter
// "Application Binary Interface"). Handles are pointers; predefined handles are small numbers. A
// shim that is compiled with this header works with any `libmpi_abi`, and its build needs no MPI.
#pragma once

#include <cstdint>

// NOLINTBEGIN: the standard's names
using MPI_Comm = struct MPI_ABI_Comm*;
using MPI_Group = struct MPI_ABI_Group*;
using MPI_Request = struct MPI_ABI_Request*;
using MPI_Datatype = struct MPI_ABI_Datatype*;
using MPI_Op = struct MPI_ABI_Op*;
using MPI_Errhandler = struct MPI_ABI_Errhandler*;
struct MPI_Status {
  int MPI_SOURCE;
  int MPI_TAG;
  int MPI_ERROR;
  int MPI_internal[5];
};
using MPI_User_function = void(void*, void*, int*, MPI_Datatype*);

namespace hocket::engines::mpi::standard {
template <typename Handle>
Handle handle(std::uintptr_t number) {
  return reinterpret_cast<Handle>(number);
}
}  // namespace hocket::engines::mpi::standard

#define HOCKET_MPI_HANDLE(TYPE, NUMBER) (::hocket::engines::mpi::standard::handle<TYPE>(NUMBER))
#define MPI_OP_NULL HOCKET_MPI_HANDLE(MPI_Op, 0x20)
#define MPI_SUM HOCKET_MPI_HANDLE(MPI_Op, 0x21)
#define MPI_PROD HOCKET_MPI_HANDLE(MPI_Op, 0x24)
#define MPI_COMM_NULL HOCKET_MPI_HANDLE(MPI_Comm, 0x100)
#define MPI_COMM_WORLD HOCKET_MPI_HANDLE(MPI_Comm, 0x101)
#define MPI_GROUP_NULL HOCKET_MPI_HANDLE(MPI_Group, 0x108)
#define MPI_ERRORS_RETURN HOCKET_MPI_HANDLE(MPI_Errhandler, 0x143)
#define MPI_REQUEST_NULL HOCKET_MPI_HANDLE(MPI_Request, 0x180)
#define MPI_DATATYPE_NULL HOCKET_MPI_HANDLE(MPI_Datatype, 0x200)
#define MPI_FLOAT HOCKET_MPI_HANDLE(MPI_Datatype, 0x210)
#define MPI_C_FLOAT_COMPLEX HOCKET_MPI_HANDLE(MPI_Datatype, 0x212)
#define MPI_DOUBLE HOCKET_MPI_HANDLE(MPI_Datatype, 0x214)
#define MPI_C_DOUBLE_COMPLEX HOCKET_MPI_HANDLE(MPI_Datatype, 0x216)
#define MPI_UINT8_T HOCKET_MPI_HANDLE(MPI_Datatype, 0x241)
#define MPI_BYTE HOCKET_MPI_HANDLE(MPI_Datatype, 0x247)
#define MPI_UINT16_T HOCKET_MPI_HANDLE(MPI_Datatype, 0x249)
#define MPI_INT32_T HOCKET_MPI_HANDLE(MPI_Datatype, 0x250)
#define MPI_UINT32_T HOCKET_MPI_HANDLE(MPI_Datatype, 0x251)
#define MPI_INT64_T HOCKET_MPI_HANDLE(MPI_Datatype, 0x258)
#define MPI_UINT64_T HOCKET_MPI_HANDLE(MPI_Datatype, 0x259)
#define MPI_STATUS_IGNORE (static_cast<MPI_Status*>(nullptr))

enum {
  MPI_SUCCESS = 0,
  MPI_ERR_OP = 10,
  MPI_ERR_NO_MEM = 39,
  MPI_ANY_SOURCE = -1,
  MPI_MAX_ERROR_STRING = 512,
  MPI_MAX_LIBRARY_VERSION_STRING = 8192,
  MPI_THREAD_SINGLE = 0,
  MPI_THREAD_SERIALIZED = 2048,
  MPI_THREAD_MULTIPLE = 4096,
};

extern "C" {
int MPI_Init_thread(int* argc, char*** argv, int required, int* provided);
int MPI_Initialized(int* flag);
int MPI_Finalized(int* flag);
int MPI_Finalize();
int MPI_Query_thread(int* provided);
int MPI_Get_library_version(char* version, int* length);
int MPI_Error_string(int code, char* text, int* length);
int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler);
int MPI_Comm_rank(MPI_Comm comm, int* rank);
int MPI_Comm_size(MPI_Comm comm, int* size);
int MPI_Comm_group(MPI_Comm comm, MPI_Group* group);
int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made);
int MPI_Comm_free(MPI_Comm* comm);
int MPI_Group_incl(MPI_Group group, int count, const int ranks[], MPI_Group* made);
int MPI_Group_free(MPI_Group* group);
int MPI_Op_create(MPI_User_function* function, int commutes, MPI_Op* made);
int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status);
int MPI_Cancel(MPI_Request* request);
int MPI_Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status);
int MPI_Isend(
    const void* in, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request);
int MPI_Issend(
    const void* in, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request);
int MPI_Irecv(
    void* out, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request);
int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request);
int MPI_Ibcast(void* out, int n, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request);
int MPI_Ireduce(const void* in,
                void* out,
                int n,
                MPI_Datatype type,
                MPI_Op op,
                int root,
                MPI_Comm comm,
                MPI_Request* request);
int MPI_Iscan(const void* in,
              void* out,
              int n,
              MPI_Datatype type,
              MPI_Op op,
              MPI_Comm comm,
              MPI_Request* request);
int MPI_Iexscan(const void* in,
                void* out,
                int n,
                MPI_Datatype type,
                MPI_Op op,
                MPI_Comm comm,
                MPI_Request* request);
int MPI_Iallreduce(const void* in,
                   void* out,
                   int n,
                   MPI_Datatype type,
                   MPI_Op op,
                   MPI_Comm comm,
                   MPI_Request* request);
int MPI_Ireduce_scatter(const void* in,
                        void* out,
                        const int counts[],
                        MPI_Datatype type,
                        MPI_Op op,
                        MPI_Comm comm,
                        MPI_Request* request);
int MPI_Iallgather(const void* in,
                   int in_n,
                   MPI_Datatype in_type,
                   void* out,
                   int out_n,
                   MPI_Datatype out_type,
                   MPI_Comm comm,
                   MPI_Request* request);
int MPI_Iallgatherv(const void* in,
                    int in_n,
                    MPI_Datatype in_type,
                    void* out,
                    const int counts[],
                    const int places[],
                    MPI_Datatype out_type,
                    MPI_Comm comm,
                    MPI_Request* request);
int MPI_Igather(const void* in,
                int in_n,
                MPI_Datatype in_type,
                void* out,
                int out_n,
                MPI_Datatype out_type,
                int root,
                MPI_Comm comm,
                MPI_Request* request);
int MPI_Igatherv(const void* in,
                 int in_n,
                 MPI_Datatype in_type,
                 void* out,
                 const int counts[],
                 const int places[],
                 MPI_Datatype out_type,
                 int root,
                 MPI_Comm comm,
                 MPI_Request* request);
int MPI_Iscatter(const void* in,
                 int in_n,
                 MPI_Datatype in_type,
                 void* out,
                 int out_n,
                 MPI_Datatype out_type,
                 int root,
                 MPI_Comm comm,
                 MPI_Request* request);
int MPI_Iscatterv(const void* in,
                  const int counts[],
                  const int places[],
                  MPI_Datatype in_type,
                  void* out,
                  int out_n,
                  MPI_Datatype out_type,
                  int root,
                  MPI_Comm comm,
                  MPI_Request* request);
int MPI_Ialltoall(const void* in,
                  int in_n,
                  MPI_Datatype in_type,
                  void* out,
                  int out_n,
                  MPI_Datatype out_type,
                  MPI_Comm comm,
                  MPI_Request* request);
int MPI_Ialltoallv(const void* in,
                   const int in_counts[],
                   const int in_places[],
                   MPI_Datatype in_type,
                   void* out,
                   const int out_counts[],
                   const int out_places[],
                   MPI_Datatype out_type,
                   MPI_Comm comm,
                   MPI_Request* request);
}
// NOLINTEND
