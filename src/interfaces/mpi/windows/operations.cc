// Reading, writing and combining memory of other ranks. Each call is complete at the target when it
// returns, so the requests of the MPI_R... forms have already ended.
#include <cstring>

#include "interfaces/mpi/buffers.h"
#include "interfaces/mpi/collectives/operators.h"
#include "interfaces/mpi/entry.h"
#include "interfaces/mpi/windows/access.h"
#include "interfaces/mpi/windows/piece.h"
#include "mpi_calls.h"

namespace hocket::mpi {
namespace {

// The arguments of a call for the origin and for the target. Values.
struct AtOrigin {
  const void* buffer;
  MPI_Count count;
  MPI_Datatype type;
};
struct AtResult {
  void* buffer;
  MPI_Count count;
  MPI_Datatype type;
};
struct AtTarget {
  int rank;
  MPI_Aint disp;
  MPI_Count count;
  MPI_Datatype type;
};

// Returns the window for a call, or null if the target is MPI_PROC_NULL.
std::shared_ptr<Window> open(MPI_Win win, int target) {
  auto window = window_of(win);
  if (target == MPI_PROC_NULL) return nullptr;
  check_target(*window, target);
  require_access(*window, target);
  window->look_at_members();
  return window;
}

TargetPiece piece_of(Window& window, const AtTarget& at) {
  return {window, at.rank, at.disp, at.count, type_object(at.type).type};
}

void require_same_bytes(std::int64_t origin, const TargetPiece& target) {
  if (origin == target.bytes()) return;
  fail(MPI_ERR_TYPE,
       "there are " + std::to_string(origin) + " bytes at the origin, and " +
           std::to_string(target.bytes()) + " at the target");
}

// Memory for packed bytes, of which up to 64 need no allocation. A resource.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes) {
    if (bytes > sizeof inline_) heap_.resize(bytes);
  }
  std::byte* data() noexcept { return heap_.empty() ? inline_ : heap_.data(); }

 private:
  alignas(16) std::byte inline_[64];
  Bytes heap_;
};

void put(const AtOrigin& from, const AtTarget& at, MPI_Win win) {
  const auto window = open(win, at.rank);
  if (window == nullptr) return;
  const TargetPiece target = piece_of(*window, at);
  const Sent sent = outgoing(from.buffer, from.count, type_of(from.type));
  require_same_bytes(sent.bytes, target);
  target.write(sent.data);
}

void get(const AtResult& to, const AtTarget& at, MPI_Win win) {
  const auto window = open(win, at.rank);
  if (window == nullptr) return;
  const TargetPiece target = piece_of(*window, at);
  const Space space = incoming(to.buffer, to.count, to.type);
  require_same_bytes(space.bytes, target);
  target.read(space.data);
  space.take(static_cast<std::uint64_t>(space.bytes));
}

// Combines the sent elements with the target's. `result` gets the target's old bytes, if it is not
// null. `sent` is empty for MPI_NO_OP.
void combine(
    Window& window, const Sent& sent, const TargetPiece& target, MPI_Op op, const Space* result) {
  op_of(op);
  if (target.bytes() == 0) return;
  require_defined(op, target.type());
  const auto bytes = static_cast<std::size_t>(target.bytes());
  if (target.is_remote()) {
    const std::span<const std::byte> from(sent.data, op == MPI_NO_OP ? 0 : bytes);
    const std::span<std::byte> before =
        result == nullptr ? std::span<std::byte>() : std::span(result->data, bytes);
    return combine_remote(window, target.rank(), target.runs(), from, op, target.type(), before);
  }
  std::byte* const in_place = target.in_place();
  Scratch scratch(in_place == nullptr ? bytes : 0);
  std::byte* const old = in_place == nullptr ? scratch.data() : in_place;
  const AccumulateTurn turn(window.locks(target.rank()), window.comm->rank, window.check());
  if (in_place == nullptr) target.read(old);
  if (result != nullptr) std::memcpy(result->data, old, bytes);
  if (op == MPI_NO_OP) return;
  combine_packed(op, target.type(), sent.data, old, target.count());
  if (in_place == nullptr) target.write(old);
}

void accumulate(const AtOrigin& from, const AtTarget& at, MPI_Op op, MPI_Win win) {
  const auto window = open(win, at.rank);
  if (window == nullptr) return;
  const TargetPiece target = piece_of(*window, at);
  const Sent sent = outgoing(from.buffer, from.count, type_of(from.type));
  require_same_bytes(sent.bytes, target);
  combine(*window, sent, target, op, nullptr);
}

void get_accumulate(
    const AtOrigin& from, const AtResult& to, const AtTarget& at, MPI_Op op, MPI_Win win) {
  const auto window = open(win, at.rank);
  if (window == nullptr) return;
  const TargetPiece target = piece_of(*window, at);
  Sent sent;  // MPI_NO_OP ignores the origin
  if (op != MPI_NO_OP) {
    sent = outgoing(from.buffer, from.count, type_of(from.type));
    require_same_bytes(sent.bytes, target);
  }
  const Space space = incoming(to.buffer, to.count, to.type);
  require_same_bytes(space.bytes, target);
  combine(*window, sent, target, op, &space);
  space.take(static_cast<std::uint64_t>(space.bytes));
}

void require_predefined(MPI_Datatype type) {
  require(type_of(type).is_predefined(), MPI_ERR_TYPE, "datatype is not one of MPI's");
}

// Throws unless the elements can be compared byte by byte.
void require_comparable(MPI_Datatype type) {
  require_predefined(type);
  switch (facts_of(*type_of(type).element_kind()).operand) {
    case OperandClass::kByte:
    case OperandClass::kInteger:
    case OperandClass::kLogical:
      return;
    case OperandClass::kNone:
    case OperandClass::kFloat:
    case OperandClass::kComplex:
    case OperandClass::kPair:
      fail(MPI_ERR_TYPE, "datatype is none of integers, logical values or bytes");
  }
}

}  // namespace
}  // namespace hocket::mpi

namespace hocket::mpi::call {

void Put(const void* origin_addr,
         MPI_Count origin_count,
         MPI_Datatype origin_datatype,
         int target_rank,
         MPI_Aint target_disp,
         MPI_Count target_count,
         MPI_Datatype target_datatype,
         MPI_Win win) {
  put({origin_addr, origin_count, origin_datatype},
      {target_rank, target_disp, target_count, target_datatype},
      win);
}
void Get(void* origin_addr,
         MPI_Count origin_count,
         MPI_Datatype origin_datatype,
         int target_rank,
         MPI_Aint target_disp,
         MPI_Count target_count,
         MPI_Datatype target_datatype,
         MPI_Win win) {
  get({origin_addr, origin_count, origin_datatype},
      {target_rank, target_disp, target_count, target_datatype},
      win);
}
void Accumulate(const void* origin_addr,
                MPI_Count origin_count,
                MPI_Datatype origin_datatype,
                int target_rank,
                MPI_Aint target_disp,
                MPI_Count target_count,
                MPI_Datatype target_datatype,
                MPI_Op op,
                MPI_Win win) {
  accumulate({origin_addr, origin_count, origin_datatype},
             {target_rank, target_disp, target_count, target_datatype},
             op,
             win);
}
void Get_accumulate(const void* origin_addr,
                    MPI_Count origin_count,
                    MPI_Datatype origin_datatype,
                    void* result_addr,
                    MPI_Count result_count,
                    MPI_Datatype result_datatype,
                    int target_rank,
                    MPI_Aint target_disp,
                    MPI_Count target_count,
                    MPI_Datatype target_datatype,
                    MPI_Op op,
                    MPI_Win win) {
  get_accumulate({origin_addr, origin_count, origin_datatype},
                 {result_addr, result_count, result_datatype},
                 {target_rank, target_disp, target_count, target_datatype},
                 op,
                 win);
}
void Fetch_and_op(const void* origin_addr,
                  void* result_addr,
                  MPI_Datatype datatype,
                  int target_rank,
                  MPI_Aint target_disp,
                  MPI_Op op,
                  MPI_Win win) {
  require_predefined(datatype);
  get_accumulate({origin_addr, 1, datatype},
                 {result_addr, 1, datatype},
                 {target_rank, target_disp, 1, datatype},
                 op,
                 win);
}
void Compare_and_swap(const void* origin_addr,
                      const void* compare_addr,
                      void* result_addr,
                      MPI_Datatype datatype,
                      int target_rank,
                      MPI_Aint target_disp,
                      MPI_Win win) {
  const auto window = open(win, target_rank);
  if (window == nullptr) return;
  require_comparable(datatype);
  const TargetPiece target = piece_of(*window, {target_rank, target_disp, 1, datatype});
  const Sent fresh = outgoing(origin_addr, 1, type_of(datatype));
  const Sent expected = outgoing(compare_addr, 1, type_of(datatype));
  const Space space = incoming(result_addr, 1, datatype);
  const auto bytes = static_cast<std::size_t>(target.bytes());
  if (target.is_remote()) {
    return swap_remote(*window,
                       target_rank,
                       target.runs(),
                       {expected.data, bytes},
                       {fresh.data, bytes},
                       {space.data, bytes});
  }
  Scratch old(bytes);
  const AccumulateTurn turn(window->locks(target_rank), window->comm->rank, window->check());
  target.read(old.data());
  if (std::memcmp(old.data(), expected.data, bytes) == 0) target.write(fresh.data);
  std::memcpy(space.data, old.data(), bytes);
}

// --- With requests -------------------------------------------------------------------------------

void Rput(const void* origin_addr,
          MPI_Count origin_count,
          MPI_Datatype origin_datatype,
          int target_rank,
          MPI_Aint target_disp,
          MPI_Count target_count,
          MPI_Datatype target_datatype,
          MPI_Win win,
          MPI_Request* request) {
  put({origin_addr, origin_count, origin_datatype},
      {target_rank, target_disp, target_count, target_datatype},
      win);
  hand_out(request, {}, {});
}
void Rget(void* origin_addr,
          MPI_Count origin_count,
          MPI_Datatype origin_datatype,
          int target_rank,
          MPI_Aint target_disp,
          MPI_Count target_count,
          MPI_Datatype target_datatype,
          MPI_Win win,
          MPI_Request* request) {
  get({origin_addr, origin_count, origin_datatype},
      {target_rank, target_disp, target_count, target_datatype},
      win);
  hand_out(request, {}, {});
}
void Raccumulate(const void* origin_addr,
                 MPI_Count origin_count,
                 MPI_Datatype origin_datatype,
                 int target_rank,
                 MPI_Aint target_disp,
                 MPI_Count target_count,
                 MPI_Datatype target_datatype,
                 MPI_Op op,
                 MPI_Win win,
                 MPI_Request* request) {
  accumulate({origin_addr, origin_count, origin_datatype},
             {target_rank, target_disp, target_count, target_datatype},
             op,
             win);
  hand_out(request, {}, {});
}
void Rget_accumulate(const void* origin_addr,
                     MPI_Count origin_count,
                     MPI_Datatype origin_datatype,
                     void* result_addr,
                     MPI_Count result_count,
                     MPI_Datatype result_datatype,
                     int target_rank,
                     MPI_Aint target_disp,
                     MPI_Count target_count,
                     MPI_Datatype target_datatype,
                     MPI_Op op,
                     MPI_Win win,
                     MPI_Request* request) {
  get_accumulate({origin_addr, origin_count, origin_datatype},
                 {result_addr, result_count, result_datatype},
                 {target_rank, target_disp, target_count, target_datatype},
                 op,
                 win);
  hand_out(request, {}, {});
}

}  // namespace hocket::mpi::call
