#include "interfaces/mpi/files/transfer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "interfaces/mpi/files/two_phases.h"
#include "interfaces/mpi/refusals.h"

namespace hocket::mpi {
namespace {

// A resource: in atomic mode, a lock on a part of a file. The system drops it if the rank dies.
class PartLock {
 public:
  PartLock(const File& file, short kind, std::int64_t begin, std::int64_t end) : file_(file) {
    if (!file.is_atomic || begin >= end) return;
    own_threads_ = std::unique_lock(file.atomic_access);
    part_.l_type = kind;
    part_.l_whence = SEEK_SET;
    part_.l_start = begin;
    part_.l_len = end - begin;
    while (::fcntl(file.descriptor.get(), F_OFD_SETLKW, &part_) != 0) {
      if (errno != EINTR) fail_with_errno(errno, file.path + ": a lock for atomic access");
    }
    is_held_ = true;
  }
  ~PartLock() {
    if (!is_held_) return;
    part_.l_type = F_UNLCK;
    ::fcntl(file_.descriptor.get(), F_OFD_SETLK, &part_);
  }
  PartLock(const PartLock&) = delete;
  PartLock& operator=(const PartLock&) = delete;

 private:
  const File& file_;
  std::unique_lock<std::mutex> own_threads_;
  struct flock part_{};
  bool is_held_ = false;
};

// Makes a call of the system for each run. Returns the bytes moved, as move_run does.
std::int64_t move_own(const File& file, const Portion& own) {
  if (own.begin == own.end) return 0;
  const PartLock lock(file,
                      own.is_write ? F_WRLCK : F_RDLCK,
                      file.is_atomic ? own.view.place_of(own.begin) : 0,
                      file.is_atomic ? own.view.place_of(own.end - 1) + 1 : 0);
  std::int64_t moved = 0;
  own.view.each_run(own.begin, own.end, [&](std::int64_t place, std::int64_t length) {
    const std::int64_t now = move_run(file, own.is_write, place, own.data + moved, length);
    moved += now;
    return now == length;
  });
  return moved;
}

// Returns where this rank's part begins. The parts follow the shared position, in rank order.
std::int64_t ordered_start(File& file, std::int64_t etypes) {
  Communicator& net = *file.comm->net;
  std::vector<std::int64_t> all(static_cast<std::size_t>(net.size()));
  net.all_gather(ConstArrayView(&etypes, 1, DType::kInt64),
                 ArrayView(all.data(), all.size(), DType::kInt64));
  std::int64_t before = 0, total = 0;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] < 0) fail(MPI_ERR_IO, "rank " + std::to_string(rank) + " refused the call");
    if (static_cast<int>(rank) < file.comm->rank) before += all[rank];
    total += all[rank];
  }
  std::int64_t start = 0;
  if (file.is_first()) start = file.shared_position().fetch_add(total);
  net.broadcast(ArrayView(&start, 1, DType::kInt64));
  return start + before;
}

// Returns the etype at which a call begins, and advances the position.
std::int64_t take_start(File& file, From from, MPI_Offset offset, std::int64_t etypes) {
  switch (from) {
    case From::kOffset:
      require(offset >= 0, MPI_ERR_ARG, "offset is negative");
      return offset;
    case From::kOwn: {
      const std::lock_guard lock(file.mutex);
      return std::exchange(file.position, file.position + etypes);
    }
    case From::kShared:
      return file.shared_position().fetch_add(etypes);
    case From::kOrdered:
      return ordered_start(file, etypes);
  }
  return 0;
}

void check_access(const File& file, From from, const Memory& memory) {
  require(memory.is_write || file.may_read(), MPI_ERR_ACCESS, "fh was opened to be written");
  require(!memory.is_write || file.may_write(), MPI_ERR_READ_ONLY, "fh was opened to be read");
  const bool is_shared = from == From::kShared || from == From::kOrdered;
  require(is_shared || (file.amode & MPI_MODE_SEQUENTIAL) == 0,
          MPI_ERR_UNSUPPORTED_OPERATION,
          "fh was opened as SEQUENTIAL, and has a shared position alone");
  if (is_shared) file.shared_position();
}

// The program's data as contiguous bytes, in the file's representation.
struct Packed {
  Sent sent;
  Space space;
  std::optional<Bytes> external;
  std::byte* data = nullptr;
  std::int64_t bytes = 0;
  std::int64_t etypes = 0;
};

void pack_external(const Memory& memory, Packed& made) {
  const Datatype& type = type_of(memory.type);
  made.bytes = taken(type.external32_size(memory.count));
  made.external.emplace(static_cast<std::size_t>(made.bytes));
  made.data = made.external->data();
  const void* const buffer = memory.is_write ? memory.from : memory.into;
  if (made.bytes != 0) require_buffer(buffer, !is_dense(type));
  if (memory.is_write) refuse_if(type.pack_external32(buffer, memory.count, made.data));
}

// Unpacks the bytes that were moved into the program's memory. Returns their number in the
// program's representation.
std::int64_t unpack(const Packed& packed, const Memory& memory, std::int64_t moved) {
  if (!packed.external) {
    if (!memory.is_write) packed.space.take(static_cast<std::uint64_t>(moved));
    return moved;
  }
  const Datatype& type = type_of(memory.type);
  return memory.is_write
             ? bytes_of(type, memory.count)
             : type.unpack_external32_part(packed.data, moved, memory.count, memory.into);
}

Packed pack(const View& view, const Memory& memory) {
  Packed made;
  if (view.is_external()) {
    pack_external(memory, made);
  } else if (memory.is_write) {
    made.sent = outgoing(memory.from, memory.count, type_of(memory.type));
    made.data = const_cast<std::byte*>(made.sent.data);  // NOLINT: it is only read
    made.bytes = made.sent.bytes;
  } else {
    made.space = incoming(memory.into, memory.count, memory.type);
    made.data = made.space.data;
    made.bytes = made.space.bytes;
  }
  require(made.bytes % view.etype->size() == 0,
          MPI_ERR_TYPE,
          "datatype and count are not whole etypes of the view");
  made.etypes = made.bytes / view.etype->size();
  return made;
}

// A call whose arguments are valid. A value.
struct Checked {
  Packed packed;
  Portion own;
};

// Checks the arguments, packs the data, and takes the place in the file.
Checked check(File& file, From from, MPI_Offset offset, const Memory& memory) {
  Checked made;
  {
    const std::lock_guard lock(file.mutex);
    made.own.view = file.view;
  }
  try {
    check_access(file, from, memory);
    made.packed = pack(made.own.view, memory);
  } catch (...) {
    try {
      // Takes part, because the other ranks wait.
      if (from == From::kOrdered) ordered_start(file, -1);
    } catch (const Failure&) {  // the reason of the first failure follows
    }
    throw;
  }
  made.own.is_write = memory.is_write;
  made.own.data = made.packed.data;
  made.own.begin = made.own.view.bytes_at(take_start(file, from, offset, made.packed.etypes));
  const auto end = checked_add(made.own.begin, made.packed.bytes);
  require(end.has_value(), MPI_ERR_ARG, "offset is beyond what a file can have");
  made.own.end = *end;
  return made;
}

Outcome outcome_of(const Packed& packed, const Memory& memory, std::int64_t moved) {
  Outcome outcome;
  outcome.bytes = static_cast<std::uint64_t>(unpack(packed, memory, moved));
  return outcome;
}

}  // namespace

Outcome move(File& file, From from, MPI_Offset offset, const Memory& memory) {
  const Checked call = check(file, from, offset, memory);
  return outcome_of(call.packed, memory, move_own(file, call.own));
}

Outcome move_together(File& file, From from, MPI_Offset offset, const Memory& memory) {
  Checked call;
  std::exception_ptr failed;
  try {
    call = check(file, from, offset, memory);
    if (call.own.begin < call.own.end) static_cast<void>(call.own.view.place_of(call.own.end - 1));
  } catch (...) {
    failed = std::current_exception();
    call.own = {.is_write = memory.is_write};  // takes part with no bytes
  }
  std::int64_t moved = 0;
  if (const auto rounds = agreed_rounds(file, call.own)) {
    moved = move_in_two_phases(file, call.own, *rounds);
  } else {
    try {
      moved = move_own(file, call.own);
    } catch (...) {
      failed = std::current_exception();
    }
    file.comm->net->barrier();
  }
  if (failed != nullptr) std::rethrow_exception(failed);
  return outcome_of(call.packed, memory, moved);
}

}  // namespace hocket::mpi
