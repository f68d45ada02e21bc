// Attributes: values that programs attach to communicators, types and windows.
#include <algorithm>

#include "interfaces/mpi/communicators.h"
#include "interfaces/mpi/windows/window.h"
#include "mpi_calls.h"

namespace hocket::mpi {

int last_used_code();

namespace {

using Of = Keyval::Of;

// Returns a keyval. A keyval that the program has freed stays valid while an attribute uses it.
std::shared_ptr<Keyval> keyval_of(int keyval, Of of) {
  Process& p = process();
  const std::lock_guard lock(p.keyvals_mutex);
  const auto place = p.keyvals.find(keyval);
  auto found = place == p.keyvals.end() ? nullptr : place->second.any.lock();
  require(found != nullptr && found->of == of, MPI_ERR_KEYVAL, "keyval is none of this kind");
  return found;
}

int add(Keyval made) {
  Process& p = process();
  const std::lock_guard lock(p.keyvals_mutex);
  auto owner = std::make_shared<Keyval>(made);
  p.keyvals[p.next_keyval] = {owner, owner};
  return p.next_keyval++;
}
void free_keyval(int* keyval, Of of) {
  keyval_of(*keyval, of);
  Process& p = process();
  const std::lock_guard lock(p.keyvals_mutex);
  p.keyvals[*keyval].owner.reset();
  *keyval = MPI_KEYVAL_INVALID;
}

Attributes::iterator find(Attributes& all, int keyval) {
  return std::find_if(
      all.begin(), all.end(), [&](const Attribute& one) { return one.keyval == keyval; });
}

void check(int code) {
  if (code != MPI_SUCCESS) throw Failure{code};
}

// These functions call the program's delete function. They have different names, because handles
// have one type in MPICH's interface.
auto dropping_of_comm(MPI_Comm comm) {
  return [comm](const Attribute& a) {
    if (a.kind->drop == MPI_COMM_NULL_DELETE_FN) return;
    check(a.kind->drop(comm, a.keyval, a.value, a.kind->extra_state));
  };
}
auto dropping_of_type(MPI_Datatype type) {
  return [type](const Attribute& a) {
    if (a.kind->drop_of_type == MPI_TYPE_NULL_DELETE_FN) return;
    check(a.kind->drop_of_type(type, a.keyval, a.value, a.kind->extra_state));
  };
}
auto dropping_of_win(MPI_Win win) {
  return [win](const Attribute& a) {
    if (a.kind->drop_of_win == MPI_WIN_NULL_DELETE_FN) return;
    check(a.kind->drop_of_win(win, a.keyval, a.value, a.kind->extra_state));
  };
}

// Removes an attribute after `drop`, which calls the program's delete function. That function may
// change the attributes, so `one` is a copy. If it fails, the attribute stays.
template <typename Drop>
void remove(Attributes& all, Attribute one, Drop drop) {
  drop(one);
  if (const auto place = find(all, one.keyval); place != all.end()) all.erase(place);
}
template <typename Drop>
void remove_all(Attributes& all, Drop drop) {
  while (!all.empty()) remove(all, all.back(), drop);
}
template <typename Drop>
void remove(Attributes& all, int keyval, Of of, Drop drop) {
  keyval_of(keyval, of);
  const auto found = find(all, keyval);
  require(found != all.end(), MPI_ERR_KEYVAL, "the object has no such attribute");
  remove(all, *found, drop);
}

template <typename Drop>
void set(Attributes& all, int keyval, Of of, void* value, Drop drop) {
  const auto kind = keyval_of(keyval, of);
  if (const auto old = find(all, keyval); old != all.end()) remove(all, *old, drop);
  all.push_back({keyval, kind, value});
}

void get(Attributes& all, int keyval, Of of, void* value, int* flag) {
  keyval_of(keyval, of);
  const auto found = find(all, keyval);
  *flag = found != all.end();
  if (*flag) *static_cast<void**>(value) = found->value;
}

// Copies all attributes. `copy` calls the program's copy function, which may leave an attribute
// out.
template <typename Copy>
void copy_all(const Attributes& from, Attributes& to, Copy copy) {
  for (const Attribute& one : Attributes(from)) {
    int flag = 0;
    void* value = nullptr;
    check(copy(one, &value, &flag));
    if (flag) to.push_back({one.keyval, one.kind, value});
  }
}

// Replaces predefined copy functions that only copy the value, such as MPI_COMM_DUP_FN.
int duplicate_value(const Attribute& one, void** value, int* flag) {
  *value = one.value;
  *flag = 1;
  return MPI_SUCCESS;
}

// Returns a predefined attribute of a communicator; null if the keyval is not predefined.
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
  copy_all(from.attributes, to.attributes, [&](const Attribute& a, void** value, int* flag) {
    if (a.kind->copy == MPI_COMM_NULL_COPY_FN) return MPI_SUCCESS;
    if (a.kind->copy == MPI_COMM_DUP_FN) return duplicate_value(a, value, flag);
    return a.kind->copy(from.handle, a.keyval, a.kind->extra_state, a.value, value, flag);
  });
}
void copy_attributes(Type& from, MPI_Datatype handle, Type& to) {
  copy_all(from.attributes, to.attributes, [&](const Attribute& a, void** value, int* flag) {
    if (a.kind->copy_of_type == MPI_TYPE_NULL_COPY_FN) return MPI_SUCCESS;
    if (a.kind->copy_of_type == MPI_TYPE_DUP_FN) return duplicate_value(a, value, flag);
    return a.kind->copy_of_type(handle, a.keyval, a.kind->extra_state, a.value, value, flag);
  });
}

void delete_attributes(Comm& of) { remove_all(of.attributes, dropping_of_comm(of.handle)); }
void delete_attributes(Type& of, MPI_Datatype handle) {
  remove_all(of.attributes, dropping_of_type(handle));
}
void delete_attributes(Window& of) { remove_all(of.attributes, dropping_of_win(of.handle)); }

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
  set(comm_of(comm).attributes, keyval, Of::kComms, value, dropping_of_comm(comm));
}
void Comm_get_attr(MPI_Comm comm, int keyval, void* value, int* flag) {
  Comm& of = comm_of(comm);
  if (const int* found = predefined_attribute(keyval)) {
    *static_cast<const int**>(value) = found;
    *flag = 1;
    return;
  }
  get(of.attributes, keyval, Of::kComms, value, flag);
}
void Comm_delete_attr(MPI_Comm comm, int keyval) {
  remove(comm_of(comm).attributes, keyval, Of::kComms, dropping_of_comm(comm));
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
  set(type_object(datatype).attributes, keyval, Of::kTypes, value, dropping_of_type(datatype));
}
void Type_get_attr(MPI_Datatype datatype, int keyval, void* value, int* flag) {
  get(type_object(datatype).attributes, keyval, Of::kTypes, value, flag);
}
void Type_delete_attr(MPI_Datatype datatype, int keyval) {
  remove(type_object(datatype).attributes, keyval, Of::kTypes, dropping_of_type(datatype));
}

void Win_create_keyval(MPI_Win_copy_attr_function*,
                       MPI_Win_delete_attr_function* drop,
                       int* keyval,
                       void* extra_state) {
  *keyval = add({.of = Of::kWindows, .drop_of_win = drop, .extra_state = extra_state});
}
void Win_free_keyval(int* keyval) { free_keyval(keyval, Of::kWindows); }
void Win_set_attr(MPI_Win win, int keyval, void* value) {
  set(window_of(win)->attributes, keyval, Of::kWindows, value, dropping_of_win(win));
}
void Win_get_attr(MPI_Win win, int keyval, void* value, int* flag) {
  const auto of = window_of(win);
  if (const auto found = of->predefined_attribute(keyval)) {
    *static_cast<void**>(value) = *found;
    *flag = 1;
    return;
  }
  get(of->attributes, keyval, Of::kWindows, value, flag);
}
void Win_delete_attr(MPI_Win win, int keyval) {
  remove(window_of(win)->attributes, keyval, Of::kWindows, dropping_of_win(win));
}

}  // namespace hocket::mpi::call

#ifdef HOCKET_MPI_MPICH
#pragma GCC visibility push(default)
extern "C" {
// In MPICH's interface these are variables and a function. In the standard's they are constants.
int* const MPI_UNWEIGHTED = new int(0);     // NOLINT: a unique address
int* const MPI_WEIGHTS_EMPTY = new int(0);  // NOLINT
int MPI_DUP_FN(MPI_Comm, int, void*, void* value_in, void* value_out, int* flag) {
  *static_cast<void**>(value_out) = value_in;
  *flag = 1;
  return MPI_SUCCESS;
}
}
#pragma GCC visibility pop
#endif
