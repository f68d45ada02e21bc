// An MPI library, which `hocket bench` measures. Compiled once with each MPI's compiler wrapper.
// HOCKET_PEER_NAME is defined then as the library's name for --compare.
#include <mpi.h>

#include <array>
#include <string>

#include "interfaces/cli/bench/peer.h"

namespace hocket::cli::bench {
namespace {

MPI_Datatype type_of(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return MPI_CXX_BOOL;
    case DType::kInt8:
      return MPI_INT8_T;
    case DType::kInt16:
      return MPI_INT16_T;
    case DType::kInt32:
      return MPI_INT32_T;
    case DType::kInt64:
      return MPI_INT64_T;
    case DType::kUInt8:
    case DType::kFloat8E4M3:
    case DType::kFloat8E5M2:
      return MPI_UINT8_T;
    case DType::kUInt16:
    case DType::kFloat16:
    case DType::kBFloat16:
      return MPI_UINT16_T;
    case DType::kUInt32:
      return MPI_UINT32_T;
    case DType::kUInt64:
      return MPI_UINT64_T;
    case DType::kFloat32:
      return MPI_FLOAT;
    case DType::kFloat64:
      return MPI_DOUBLE;
    case DType::kComplex64:
      return MPI_C_FLOAT_COMPLEX;
    case DType::kComplex128:
      return MPI_C_DOUBLE_COMPLEX;
  }
  return MPI_BYTE;
}

bool is_small_float(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat8E4M3 ||
         dtype == DType::kFloat8E5M2;
}

MPI_Op op_of(ReduceOp op, DType dtype) {
  const bool is_bool = dtype == DType::kBool;
  switch (op) {
    case ReduceOp::kSum:
      return is_bool ? MPI_LOR : MPI_SUM;
    case ReduceOp::kProduct:
      return is_bool ? MPI_LAND : MPI_PROD;
    case ReduceOp::kMin:
      return is_bool ? MPI_LAND : MPI_MIN;
    case ReduceOp::kMax:
      return is_bool ? MPI_LOR : MPI_MAX;
    case ReduceOp::kBitAnd:
      return is_bool ? MPI_LAND : MPI_BAND;
    case ReduceOp::kBitOr:
      return is_bool ? MPI_LOR : MPI_BOR;
    case ReduceOp::kBitXor:
      return is_bool ? MPI_LXOR : MPI_BXOR;
    case ReduceOp::kAvg:
      break;
  }
  return MPI_OP_NULL;
}

std::string short_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
#if defined(OPEN_MPI)
  const std::string all(text);
  return all.substr(0, all.find(','));  // "Open MPI v4.1.4, package: ..."
#else
  // The text of Intel MPI is "Intel(R) MPI Library 2021.19.0 for Linux* OS". MPICH's own text is
  // long, so its version is used.
  const std::string all(text);
  return all.starts_with("Intel") ? all.substr(0, all.find(" for")) : "MPICH " MPICH_VERSION;
#endif
}

// A resource: MPI itself, from its start to its end. One thread. MPI ends the job on errors.
class Mpi final : public Library {
 public:
  Mpi(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &job_rank_.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job_rank_.ranks);
  }
  ~Mpi() override { MPI_Finalize(); }

  JobRank job_rank() const override { return job_rank_; }
  std::string name() const override { return HOCKET_PEER_NAME; }
  std::string version() const override { return short_version(); }
  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }

  std::optional<std::string> refusal(const Case& subject) const override {
    if (subject.memory != Memory::kOrdinary) return "it has no symmetric memory";
    if (subject.elements > 2147483647 / static_cast<unsigned>(job_rank_.ranks)) {
      return "counts are int";
    }
    if (!reduces(subject.collective)) return std::nullopt;
    if (is_small_float(subject.dtype)) return "MPI has no such type to reduce";
    if (subject.op == ReduceOp::kAvg) return "MPI has no average";
    return std::nullopt;
  }

  Bound bind(const Case& subject) override {
    Bound bound;
    bind_ordinary_arrays(bound, subject, job_rank_);
    bound.calls = reduces(subject.collective) ? reduction(subject, bound.arrays)
                                              : movement(subject, bound.arrays);
    return bound;
  }

 private:
  template <typename F>
  static std::function<void(long)> repeated(F call) {
    return [call](long n) {
      for (long i = 0; i < n; ++i) call();
    };
  }

  std::function<void(long)> reduction(const Case& subject, Arrays arrays) const {
    const int count = static_cast<int>(subject.elements);
    const MPI_Datatype type = type_of(subject.dtype);
    const MPI_Op op = op_of(subject.op, subject.dtype);
    const bool is_root = job_rank_.rank == kRoot;
    const void* in = subject.in_place ? MPI_IN_PLACE : arrays.in;
    void* out = arrays.out;
    switch (subject.collective) {
      case Collective::kAllReduce:
        return repeated([=] { MPI_Allreduce(in, out, count, type, op, MPI_COMM_WORLD); });
      case Collective::kScan:
        return repeated([=] { MPI_Scan(in, out, count, type, op, MPI_COMM_WORLD); });
      case Collective::kExscan:
        return repeated([=] { MPI_Exscan(in, out, count, type, op, MPI_COMM_WORLD); });
      case Collective::kReduceScatter:
        return repeated(
            [=] { MPI_Reduce_scatter_block(in, out, count, type, op, MPI_COMM_WORLD); });
      default: {
        const void* given = subject.in_place && !is_root ? out : in;
        return repeated([=] { MPI_Reduce(given, out, count, type, op, kRoot, MPI_COMM_WORLD); });
      }
    }
  }

  std::function<void(long)> movement(const Case& subject, Arrays arrays) const {
    const int count = static_cast<int>(subject.elements);
    const MPI_Datatype type = type_of(subject.dtype);
    const bool is_root = job_rank_.rank == kRoot;
    const bool in_place = subject.in_place;
    void* out = arrays.out;
    const void* in = in_place ? MPI_IN_PLACE : arrays.in;
    switch (subject.collective) {
      case Collective::kBroadcast:
        return repeated([=] { MPI_Bcast(out, count, type, kRoot, MPI_COMM_WORLD); });
      case Collective::kAllGather:
        return repeated([=] { MPI_Allgather(in, count, type, out, count, type, MPI_COMM_WORLD); });
      case Collective::kAllToAll:
        return repeated([=] { MPI_Alltoall(in, count, type, out, count, type, MPI_COMM_WORLD); });
      case Collective::kGather: {
        const void* given = in_place && !is_root ? out : in;
        return repeated(
            [=] { MPI_Gather(given, count, type, out, count, type, kRoot, MPI_COMM_WORLD); });
      }
      case Collective::kScatter: {
        const void* given = in_place ? out : arrays.in;
        void* taken = in_place && is_root ? MPI_IN_PLACE : out;
        return repeated(
            [=] { MPI_Scatter(given, count, type, taken, count, type, kRoot, MPI_COMM_WORLD); });
      }
      case Collective::kBarrier:
        return repeated([] { MPI_Barrier(MPI_COMM_WORLD); });
      default:
        return message(subject, arrays);
    }
  }

  std::function<void(long)> message(const Case& subject, Arrays arrays) const {
    const int count = static_cast<int>(subject.elements);
    const MPI_Datatype type = type_of(subject.dtype);
    const auto send = [=](int peer) { MPI_Send(arrays.in, count, type, peer, 0, MPI_COMM_WORLD); };
    const auto recv = [=](int peer) {
      MPI_Recv(arrays.out, count, type, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    };
    if (subject.collective == Collective::kSend) {
      if (job_rank_.rank > 1) return [](long) {};
      if (job_rank_.rank == 1) return repeated([=] { recv(0), send(0); });
      return repeated([=] { send(1), recv(1); });
    }
    if (is_window(subject.collective)) return window(subject, arrays);
    const int next = (job_rank_.rank + 1) % job_rank_.ranks;
    const int previous = (job_rank_.rank + job_rank_.ranks - 1) % job_rank_.ranks;
    return repeated([=] {
      MPI_Sendrecv(arrays.in,
                   count,
                   type,
                   next,
                   0,
                   arrays.out,
                   count,
                   type,
                   previous,
                   0,
                   MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
    });
  }

  // Rank 0 sends a window of messages. Then it waits for a message of the receiver, so that it
  // cannot run ahead.
  std::function<void(long)> window(const Case& subject, Arrays arrays) const {
    if (job_rank_.rank > 1) return [](long) {};
    const int count = static_cast<int>(subject.elements);
    const MPI_Datatype type = type_of(subject.dtype);
    const bool sends = job_rank_.rank == 0;
    const int peer = 1 - job_rank_.rank;
    const auto end = [=] {
      char word = 0;
      if (sends) {
        MPI_Recv(&word, 1, MPI_CHAR, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else {
        MPI_Send(&word, 1, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
      }
    };
    const void* in = arrays.in;
    void* out = arrays.out;
    if (subject.collective == Collective::kSendWindow) {
      return repeated([=] {
        for (int i = 0; i < kWindow; ++i) {
          sends ? MPI_Send(in, count, type, peer, 0, MPI_COMM_WORLD)
                : MPI_Recv(out, count, type, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        end();
      });
    }
    return repeated([=] {
      std::array<MPI_Request, kWindow> requests;
      for (MPI_Request& request : requests) {
        sends ? MPI_Isend(in, count, type, peer, 0, MPI_COMM_WORLD, &request)
              : MPI_Irecv(out, count, type, peer, 0, MPI_COMM_WORLD, &request);
      }
      MPI_Waitall(kWindow, requests.data(), MPI_STATUSES_IGNORE);
      end();
    });
  }

  JobRank job_rank_;
};

}  // namespace
}  // namespace hocket::cli::bench

int main(int argc, char** argv) {
  hocket::cli::bench::Mpi mpi(argc, argv);
  return hocket::cli::bench::serve(mpi);
}
