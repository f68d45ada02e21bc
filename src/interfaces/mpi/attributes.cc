// Attributes: what programs hang on communicators, types and windows.
#include "interfaces/mpi/communicators.h"
#include "interfaces/mpi/windows/window.h"
#include "mpi_calls.h"

namespace hocket::mpi {

int last_used_code();

namespace {

using Of = Keyval::Of;

std::shared_ptr<Keyval> keyval_of(int keyval, Of of) {
  Process& p = process();
  const std::lock_guard lock(p.keyvals_mutex);
  const auto found = p.keyvals.find(keyval);
  require(found != p.keyvals.end() && found->second->of == of,
          MPI_ERR_KEYVAL,
          "keyval is none of this kind");
  return found->second;
}

int add(Keyval made) {
  Process& p = process();
  const std::lock_guard lock(p.keyvals_mutex);
  p.keyvals[p.next_keyval] = std::make_shared<Keyval>(made);
  return p.next_keyval++;
}
void free_keyval(int* keyval, Of of) {
  keyval_of(*keyval, of);
  Process& p = process();
  const std::lock_guard lock(p.keyvals_mutex);
  p.keyvals.erase(*keyval);
  *keyval = MPI_KEYVAL_INVALID;
}

void check(int code) {
  if (code != MPI_SUCCESS) throw Failure{code};
}

void drop(const Attribute& attribute, MPI_Comm handle, int keyval) {
  const Keyval& k = *attribute.keyval;
  if (k.drop != MPI_COMM_NULL_DELETE_FN) {
    check(k.drop(handle, keyval, attribute.value, k.extra_state));
  }
}
void drop(const Attribute& attribute, MPI_Datatype handle, int keyval, bool) {
  const Keyval& k = *attribute.keyval;
  if (k.drop_of_type != MPI_TYPE_NULL_DELETE_FN) {
    check(k.drop_of_type(handle, keyval, attribute.value, k.extra_state));
  }
}
void drop(const Attribute& attribute, const Window& window, int keyval) {
  const Keyval& k = *attribute.keyval;
  if (k.drop_of_win != MPI_WIN_NULL_DELETE_FN) {
    check(k.drop_of_win(window.handle, keyval, attribute.value, k.extra_state));
  }
}

// A predefined attribute of a communicator; null: there is no such attribute.
const int* predefined_attribute(int keyval) {
  static int tag_ub, io, host, global, last_code, universe, appnum;
  tag_ub = 0x7fffffff;
  io = MPI_ANY_SOURCE;
  host = MPI_PROC_NULL;
  global = 0;
  appnum = 0;
  last_code = last_used_code();
  universe = process().world->size();
  if (keyval == MPI_TAG_UB) return &tag_ub;
  if (keyval == MPI_IO) return &io;
  if (keyval == MPI_HOST) return &host;
  if (keyval == MPI_WTIME_IS_GLOBAL) return &global;
  if (keyval == MPI_LASTUSEDCODE) return &last_code;
  if (keyval == MPI_UNIVERSE_SIZE) return &universe;
  if (keyval == MPI_APPNUM) return &appnum;
  return nullptr;
}

}  // namespace

void copy_attributes(Comm& from, Comm& to) {
  for (const auto& [keyval, attribute] : from.attributes) {
    const Keyval& k = *attribute.keyval;
    int flag = 0;
    void* value = nullptr;
    if (k.copy == MPI_COMM_NULL_COPY_FN) continue;
    if (k.copy == MPI_COMM_DUP_FN) {
      flag = 1;
      value = attribute.value;
    } else {
      check(k.copy(from.handle, keyval, k.extra_state, attribute.value, &value, &flag));
    }
    if (flag) to.attributes[keyval] = {attribute.keyval, value};
  }
}
void copy_attributes(Type& from, MPI_Datatype handle, Type& to) {
  for (const auto& [keyval, attribute] : from.attributes) {
    const Keyval& k = *attribute.keyval;
    int flag = 0;
    void* value = nullptr;
    if (k.copy_of_type == MPI_TYPE_NULL_COPY_FN) continue;
    if (k.copy_of_type == MPI_TYPE_DUP_FN) {
      flag = 1;
      value = attribute.value;
    } else {
      check(k.copy_of_type(handle, keyval, k.extra_state, attribute.value, &value, &flag));
    }
    if (flag) to.attributes[keyval] = {attribute.keyval, value};
  }
}

void delete_attributes(Comm& of) {
  while (!of.attributes.empty()) {
    const auto last = std::prev(of.attributes.end());
    drop(last->second, of.handle, last->first);
    of.attributes.erase(last);
  }
}
void delete_attributes(Type& of, MPI_Datatype handle) {
  while (!of.attributes.empty()) {
    const auto last = std::prev(of.attributes.end());
    drop(last->second, handle, last->first, true);
    of.attributes.erase(last);
  }
}

void delete_attributes(Window& of) {
  while (!of.attributes.empty()) {
    const auto last = std::prev(of.attributes.end());
    drop(last->second, of, last->first);
    of.attributes.erase(last);
  }
}

}  // namespace hocket::mpi

namespace hocket::mpi::call {

void Comm_create_keyval(MPI_Comm_copy_attr_function* copy,
                        MPI_Comm_delete_attr_function* drop,
                        int* keyval,
                        void* extra_state) {
  *keyval = add({.copy = copy, .drop = drop, .extra_state = extra_state});
}
void Comm_free_keyval(int* keyval) { free_keyval(keyval, Of::kComms); }
void Comm_set_attr(MPI_Comm comm, int keyval, void* value) {
  Comm& of = comm_of(comm);
  const auto key = keyval_of(keyval, Of::kComms);
  if (const auto old = of.attributes.find(keyval); old != of.attributes.end()) {
    drop(old->second, comm, keyval);
  }
  of.attributes[keyval] = {key, value};
}
void Comm_get_attr(MPI_Comm comm, int keyval, void* value, int* flag) {
  Comm& of = comm_of(comm);
  if (const int* found = predefined_attribute(keyval)) {
    *static_cast<const int**>(value) = found;
    *flag = 1;
    return;
  }
  keyval_of(keyval, Of::kComms);
  const auto found = of.attributes.find(keyval);
  *flag = found != of.attributes.end();
  if (*flag) *static_cast<void**>(value) = found->second.value;
}
void Comm_delete_attr(MPI_Comm comm, int keyval) {
  Comm& of = comm_of(comm);
  keyval_of(keyval, Of::kComms);
  const auto found = of.attributes.find(keyval);
  require(found != of.attributes.end(), MPI_ERR_KEYVAL, "comm has no such attribute");
  drop(found->second, comm, keyval);
  of.attributes.erase(keyval);
}
void Keyval_create(MPI_Copy_function* copy,
                   MPI_Delete_function* drop,
                   int* keyval,
                   void* extra_state) {
  Comm_create_keyval(copy, drop, keyval, extra_state);
}
void Keyval_free(int* keyval) { Comm_free_keyval(keyval); }
void Attr_put(MPI_Comm comm, int keyval, void* value) { Comm_set_attr(comm, keyval, value); }
void Attr_get(MPI_Comm comm, int keyval, void* value, int* flag) {
  Comm_get_attr(comm, keyval, value, flag);
}
void Attr_delete(MPI_Comm comm, int keyval) { Comm_delete_attr(comm, keyval); }

void Type_create_keyval(MPI_Type_copy_attr_function* copy,
                        MPI_Type_delete_attr_function* drop,
                        int* keyval,
                        void* extra_state) {
  *keyval = add(
      {.of = Of::kTypes, .copy_of_type = copy, .drop_of_type = drop, .extra_state = extra_state});
}
void Type_free_keyval(int* keyval) { free_keyval(keyval, Of::kTypes); }
void Type_set_attr(MPI_Datatype datatype, int keyval, void* value) {
  Type& of = type_object(datatype);
  const auto key = keyval_of(keyval, Of::kTypes);
  if (const auto old = of.attributes.find(keyval); old != of.attributes.end()) {
    drop(old->second, datatype, keyval, true);
  }
  of.attributes[keyval] = {key, value};
}
void Type_get_attr(MPI_Datatype datatype, int keyval, void* value, int* flag) {
  Type& of = type_object(datatype);
  keyval_of(keyval, Of::kTypes);
  const auto found = of.attributes.find(keyval);
  *flag = found != of.attributes.end();
  if (*flag) *static_cast<void**>(value) = found->second.value;
}
void Type_delete_attr(MPI_Datatype datatype, int keyval) {
  Type& of = type_object(datatype);
  keyval_of(keyval, Of::kTypes);
  const auto found = of.attributes.find(keyval);
  require(found != of.attributes.end(), MPI_ERR_KEYVAL, "datatype has no such attribute");
  drop(found->second, datatype, keyval, true);
  of.attributes.erase(keyval);
}

void Win_create_keyval(MPI_Win_copy_attr_function*,
                       MPI_Win_delete_attr_function* drop,
                       int* keyval,
                       void* extra_state) {
  *keyval = add({.of = Of::kWindows, .drop_of_win = drop, .extra_state = extra_state});
}
void Win_free_keyval(int* keyval) { free_keyval(keyval, Of::kWindows); }
void Win_set_attr(MPI_Win win, int keyval, void* value) {
  const auto of = window_of(win);
  const auto key = keyval_of(keyval, Of::kWindows);
  if (const auto old = of->attributes.find(keyval); old != of->attributes.end()) {
    drop(old->second, *of, keyval);
  }
  of->attributes[keyval] = {key, value};
}
void Win_get_attr(MPI_Win win, int keyval, void* value, int* flag) {
  const auto of = window_of(win);
  if (const auto found = of->predefined_attribute(keyval)) {
    *static_cast<void**>(value) = *found;
    *flag = 1;
    return;
  }
  keyval_of(keyval, Of::kWindows);
  const auto found = of->attributes.find(keyval);
  *flag = found != of->attributes.end();
  if (*flag) *static_cast<void**>(value) = found->second.value;
}
void Win_delete_attr(MPI_Win win, int keyval) {
  const auto of = window_of(win);
  keyval_of(keyval, Of::kWindows);
  const auto found = of->attributes.find(keyval);
  require(found != of->attributes.end(), MPI_ERR_KEYVAL, "win has no such attribute");
  drop(found->second, *of, keyval);
  of->attributes.erase(keyval);
}

}  // namespace hocket::mpi::call

#ifdef HOCKET_MPI_MPICH
#pragma GCC visibility push(default)
extern "C" {
// Variables and a function that MPICH's interface has where the standard's has numbers.
int* const MPI_UNWEIGHTED = new int(0);     // NOLINT: an address that is no other's
int* const MPI_WEIGHTS_EMPTY = new int(0);  // NOLINT
int MPI_DUP_FN(MPI_Comm, int, void*, void* value_in, void* value_out, int* flag) {
  *static_cast<void**>(value_out) = value_in;
  *flag = 1;
  return MPI_SUCCESS;
}
}
#pragma GCC visibility pop
#endif
