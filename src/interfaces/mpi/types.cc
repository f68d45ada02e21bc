// The calls on datatypes by handle: constructors, queries and packing.
#include <algorithm>
#include <cstring>

#include "interfaces/mpi/buffers.h"
#include "interfaces/mpi/communicators.h"
#include "interfaces/mpi/refusals.h"
#include "mpi_calls.h"

namespace hocket::mpi {

Type& type_object(MPI_Datatype handle) {
  Type* found = process().types.find(handle);
  require(found != nullptr, MPI_ERR_TYPE, "datatype is no datatype");
  return *found;
}
const Datatype& type_of(MPI_Datatype handle) { return *type_object(handle).type; }

namespace {

// Translates an error class to the interface's number. MPICH's numbers differ from the standard's.
int class_in_interface(ErrorClass error_class) {
  switch (error_class) {
    case ErrorClass::kCount:
      return MPI_ERR_COUNT;
    case ErrorClass::kType:
      return MPI_ERR_TYPE;
    case ErrorClass::kOp:
      return MPI_ERR_OP;
    case ErrorClass::kDims:
      return MPI_ERR_DIMS;
    case ErrorClass::kArg:
      return MPI_ERR_ARG;
    case ErrorClass::kTruncate:
      return MPI_ERR_TRUNCATE;
    case ErrorClass::kConversion:
      return MPI_ERR_CONVERSION;
    case ErrorClass::kValueTooLarge:
      return MPI_ERR_VALUE_TOO_LARGE;
  }
  return MPI_ERR_INTERN;
}
}  // namespace

void refuse_if(const std::optional<Refusal>& refusal) {
  if (refusal) fail(class_in_interface(refusal->error_class), refusal->text);
}

namespace {

MPI_Datatype hand_out(Result<DatatypePtr> made) {
  return process().types.add(std::make_shared<Type>(Type{.type = taken(std::move(made))}));
}
DatatypePtr old(MPI_Datatype handle) { return type_object(handle).type; }

Form form_of(const Counts& counts) { return counts.is_narrow() ? Form::kInt : Form::kCount; }
// Chooses the form for a call without arrays: kInt if all values fit into ints.
Form form_of(std::initializer_list<MPI_Count> values) {
  const bool fit = std::all_of(values.begin(), values.end(), [](MPI_Count value) {
    return value == static_cast<int>(value);
  });
  return fit ? Form::kInt : Form::kCount;
}

Order order_of(int order) {
  require(order == MPI_ORDER_C || order == MPI_ORDER_FORTRAN, MPI_ERR_ARG, "order is none");
  return order == MPI_ORDER_C ? Order::kC : Order::kFortran;
}
int order_in_interface(int order) {
  return order == static_cast<int>(Order::kC) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
}
Distribution distribution_of(int distribution) {
  if (distribution == MPI_DISTRIBUTE_NONE) return Distribution::kNone;
  if (distribution == MPI_DISTRIBUTE_BLOCK) return Distribution::kBlock;
  require(distribution == MPI_DISTRIBUTE_CYCLIC, MPI_ERR_ARG, "distribs has one that is none");
  return Distribution::kCyclic;
}
int distribution_in_interface(int distribution) {
  switch (static_cast<Distribution>(distribution)) {
    case Distribution::kNone:
      return MPI_DISTRIBUTE_NONE;
    case Distribution::kBlock:
      return MPI_DISTRIBUTE_BLOCK;
    case Distribution::kCyclic:
      return MPI_DISTRIBUTE_CYCLIC;
  }
  return MPI_UNDEFINED;
}
int combiner_in_interface(Combiner combiner) {
  switch (combiner) {
    case Combiner::kNamed:
      return MPI_COMBINER_NAMED;
    case Combiner::kDup:
      return MPI_COMBINER_DUP;
    case Combiner::kContiguous:
      return MPI_COMBINER_CONTIGUOUS;
    case Combiner::kVector:
      return MPI_COMBINER_VECTOR;
    case Combiner::kHvector:
      return MPI_COMBINER_HVECTOR;
    case Combiner::kIndexed:
      return MPI_COMBINER_INDEXED;
    case Combiner::kHindexed:
      return MPI_COMBINER_HINDEXED;
    case Combiner::kIndexedBlock:
      return MPI_COMBINER_INDEXED_BLOCK;
    case Combiner::kHindexedBlock:
      return MPI_COMBINER_HINDEXED_BLOCK;
    case Combiner::kStruct:
      return MPI_COMBINER_STRUCT;
    case Combiner::kSubarray:
      return MPI_COMBINER_SUBARRAY;
    case Combiner::kDarray:
      return MPI_COMBINER_DARRAY;
    case Combiner::kF90Real:
      return MPI_COMBINER_F90_REAL;
    case Combiner::kF90Complex:
      return MPI_COMBINER_F90_COMPLEX;
    case Combiner::kF90Integer:
      return MPI_COMBINER_F90_INTEGER;
    case Combiner::kResized:
      return MPI_COMBINER_RESIZED;
    case Combiner::kValueIndex:
      return MPI_COMBINER_VALUE_INDEX;
  }
  return MPI_UNDEFINED;
}

std::optional<int> defined(int value) {
  return value == MPI_UNDEFINED ? std::nullopt : std::optional(value);
}

// Returns a handle for a type: the predefined handle if there is one, otherwise a new handle.
MPI_Datatype handle_for(const DatatypePtr& type) {
  if (type->is_predefined()) {
    const auto name = facts_of(*type->element_kind()).name;
    for (std::size_t i = 0; i < kNamedDatatypeCount; ++i) {
      if (name == kNamedDatatypes[i].name) return kNamedDatatypes[i].handle;
    }
  }
  return process().types.add(std::make_shared<Type>(Type{.type = type, .committed = true}));
}

}  // namespace
}  // namespace hocket::mpi

namespace hocket::mpi::call {

void Type_contiguous(MPI_Count count, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  *newtype = hand_out(contiguous(count, old(oldtype), form_of({count})));
}
void Type_vector(MPI_Count count,
                 MPI_Count blocklength,
                 MPI_Count stride,
                 MPI_Datatype oldtype,
                 MPI_Datatype* newtype) {
  *newtype = hand_out(
      vector(count, blocklength, stride, old(oldtype), form_of({count, blocklength, stride})));
}
void Type_create_hvector(MPI_Count count,
                         MPI_Count blocklength,
                         MPI_Count stride,
                         MPI_Datatype oldtype,
                         MPI_Datatype* newtype) {
  *newtype =
      hand_out(hvector(count, blocklength, stride, old(oldtype), form_of({count, blocklength})));
}
void Type_indexed(MPI_Count count,
                  Counts blocklengths,
                  Counts displacements,
                  MPI_Datatype oldtype,
                  MPI_Datatype* newtype) {
  require(count >= 0, MPI_ERR_COUNT, "count is negative");
  *newtype = hand_out(indexed(
      blocklengths.copy(count), displacements.copy(count), old(oldtype), form_of(blocklengths)));
}
void Type_create_hindexed(MPI_Count count,
                          Counts blocklengths,
                          Counts displacements,
                          MPI_Datatype oldtype,
                          MPI_Datatype* newtype) {
  require(count >= 0, MPI_ERR_COUNT, "count is negative");
  *newtype = hand_out(hindexed(
      blocklengths.copy(count), displacements.copy(count), old(oldtype), form_of(blocklengths)));
}
void Type_create_indexed_block(MPI_Count count,
                               MPI_Count blocklength,
                               Counts displacements,
                               MPI_Datatype oldtype,
                               MPI_Datatype* newtype) {
  require(count >= 0, MPI_ERR_COUNT, "count is negative");
  *newtype = hand_out(
      indexed_block(blocklength, displacements.copy(count), old(oldtype), form_of(displacements)));
}
void Type_create_hindexed_block(MPI_Count count,
                                MPI_Count blocklength,
                                Counts displacements,
                                MPI_Datatype oldtype,
                                MPI_Datatype* newtype) {
  require(count >= 0, MPI_ERR_COUNT, "count is negative");
  *newtype = hand_out(hindexed_block(
      blocklength, displacements.copy(count), old(oldtype), form_of({count, blocklength})));
}
void Type_create_struct(MPI_Count count,
                        Counts blocklengths,
                        Counts displacements,
                        const MPI_Datatype* types,
                        MPI_Datatype* newtype) {
  require(count >= 0, MPI_ERR_COUNT, "count is negative");
  std::vector<DatatypePtr> parts;
  for (MPI_Count i = 0; i < count; ++i) parts.push_back(old(types[i]));
  *newtype = hand_out(
      structure(blocklengths.copy(count), displacements.copy(count), parts, form_of(blocklengths)));
}
void Type_create_resized(MPI_Datatype oldtype,
                         MPI_Count lb,
                         MPI_Count extent,
                         MPI_Datatype* newtype) {
  *newtype = hand_out(resized(old(oldtype), lb, extent));
}
void Type_create_subarray(int ndims,
                          Counts sizes,
                          Counts subsizes,
                          Counts starts,
                          int order,
                          MPI_Datatype oldtype,
                          MPI_Datatype* newtype) {
  const auto a = sizes.copy(ndims), b = subsizes.copy(ndims), c = starts.copy(ndims);
  *newtype = hand_out(subarray({a, b, c, order_of(order)}, old(oldtype), form_of(sizes)));
}
void Type_create_darray(int size,
                        int rank,
                        int ndims,
                        Counts gsizes,
                        const int* distribs,
                        const int* dargs,
                        const int* psizes,
                        int order,
                        MPI_Datatype oldtype,
                        MPI_Datatype* newtype) {
  const auto n = static_cast<std::size_t>(std::max(ndims, 0));
  const auto sizes = gsizes.copy(ndims);
  std::vector<Distribution> kinds;
  std::vector<std::int64_t> arguments, grid;
  for (std::size_t i = 0; i < n; ++i) {
    kinds.push_back(distribution_of(distribs[i]));
    arguments.push_back(dargs[i] == MPI_DISTRIBUTE_DFLT_DARG ? kDefaultDarg : dargs[i]);
    grid.push_back(psizes[i]);
  }
  *newtype = hand_out(darray({.size = size,
                              .rank = rank,
                              .gsizes = sizes,
                              .distribs = kinds,
                              .dargs = arguments,
                              .psizes = grid,
                              .order = order_of(order)},
                             old(oldtype),
                             form_of(gsizes)));
}
void Type_create_f90_real(int p, int r, MPI_Datatype* newtype) {
  *newtype = hand_out(f90_real(defined(p), defined(r)));
}
void Type_create_f90_complex(int p, int r, MPI_Datatype* newtype) {
  *newtype = hand_out(f90_complex(defined(p), defined(r)));
}
void Type_create_f90_integer(int r, MPI_Datatype* newtype) { *newtype = hand_out(f90_integer(r)); }
void Type_dup(MPI_Datatype oldtype, MPI_Datatype* newtype) {
  Type& of = type_object(oldtype);
  *newtype = MPI_DATATYPE_NULL;
  MPI_Datatype handle = hand_out(dup(of.type));
  Type& made = type_object(handle);
  made.committed = of.committed;
  try {
    copy_attributes(of, oldtype, made);
  } catch (...) {
    Type_free(&handle);
    throw;
  }
  *newtype = handle;
}
void Type_match_size(int typeclass, int size, MPI_Datatype* datatype) {
  require(typeclass == MPI_TYPECLASS_INTEGER || typeclass == MPI_TYPECLASS_REAL ||
              typeclass == MPI_TYPECLASS_COMPLEX,
          MPI_ERR_ARG,
          "typeclass is none");
  const TypeClass of = typeclass == MPI_TYPECLASS_INTEGER ? TypeClass::kInteger
                       : typeclass == MPI_TYPECLASS_REAL  ? TypeClass::kReal
                                                          : TypeClass::kComplex;
  *datatype = handle_for(predefined(taken(match_size(of, size))));
}
void Type_get_value_index(MPI_Datatype value_type,
                          MPI_Datatype index_type,
                          MPI_Datatype* pair_type) {
  const auto value = type_of(value_type).element_kind();
  const auto index = type_of(index_type).element_kind();
  const auto pair = value && index ? value_index(*value, *index) : std::nullopt;
  *pair_type = pair ? handle_for(predefined(*pair)) : MPI_DATATYPE_NULL;
}

void Type_commit(MPI_Datatype* datatype) { type_object(*datatype).committed = true; }
void Type_free(MPI_Datatype* datatype) {
  Type& of = type_object(*datatype);
  require(!of.is_predefined, MPI_ERR_TYPE, "datatype is predefined");
  delete_attributes(of, *datatype);
  process().types.remove(*datatype);
  *datatype = MPI_DATATYPE_NULL;
}

void Type_size(MPI_Datatype datatype, CountOut size) { size = type_of(datatype).size(); }
void Type_size_x(MPI_Datatype datatype, MPI_Count* size) { *size = type_of(datatype).size(); }
void Type_get_extent(MPI_Datatype datatype, CountOut lb, CountOut extent) {
  lb = type_of(datatype).lb();
  extent = type_of(datatype).extent();
}
// Names that MPI 3 removed, and that older programs call.
void Type_extent(MPI_Datatype datatype, MPI_Aint* extent) { *extent = type_of(datatype).extent(); }
void Type_lb(MPI_Datatype datatype, MPI_Aint* displacement) {
  *displacement = type_of(datatype).lb();
}
void Type_ub(MPI_Datatype datatype, MPI_Aint* displacement) {
  *displacement = type_of(datatype).lb() + type_of(datatype).extent();
}
void Type_hvector(
    int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  Type_create_hvector(count, blocklength, stride, oldtype, newtype);
}
void Type_hindexed(int count,
                   int* blocklengths,
                   MPI_Aint* displacements,
                   MPI_Datatype oldtype,
                   MPI_Datatype* newtype) {
  Type_create_hindexed(count, blocklengths, displacements, oldtype, newtype);
}
void Type_struct(int count,
                 int* blocklengths,
                 MPI_Aint* displacements,
                 MPI_Datatype* types,
                 MPI_Datatype* newtype) {
  Type_create_struct(count, blocklengths, displacements, types, newtype);
}
void Type_get_extent_x(MPI_Datatype datatype, MPI_Count* lb, MPI_Count* extent) {
  Type_get_extent(datatype, lb, extent);
}
void Type_get_true_extent(MPI_Datatype datatype, CountOut true_lb, CountOut true_extent) {
  true_lb = type_of(datatype).true_lb();
  true_extent = type_of(datatype).true_extent();
}
void Type_get_true_extent_x(MPI_Datatype datatype, MPI_Count* true_lb, MPI_Count* true_extent) {
  Type_get_true_extent(datatype, true_lb, true_extent);
}
void Type_set_name(MPI_Datatype datatype, const char* name) {
  type_object(datatype).name = std::string(name).substr(0, MPI_MAX_OBJECT_NAME - 1);
}
void Type_get_name(MPI_Datatype datatype, char* name, int* resultlen) {
  const std::string found =
      datatype == MPI_DATATYPE_NULL ? "MPI_DATATYPE_NULL" : type_object(datatype).name;
  std::memcpy(name, found.c_str(), found.size() + 1);
  *resultlen = static_cast<int>(found.size());
}

void Type_get_envelope(MPI_Datatype datatype,
                       int* num_integers,
                       int* num_addresses,
                       int* num_datatypes,
                       int* combiner) {
  const Envelope& e = type_of(datatype).envelope();
  require(e.counts.empty(),
          MPI_ERR_TYPE,
          "datatype was made by a call of large counts: ask MPI_Type_get_envelope_c");
  *num_integers = static_cast<int>(e.integers.size());
  *num_addresses = static_cast<int>(e.addresses.size());
  *num_datatypes = static_cast<int>(e.types.size());
  *combiner = combiner_in_interface(e.combiner);
}
void Type_get_envelope_c(MPI_Datatype datatype,
                         MPI_Count* num_integers,
                         MPI_Count* num_addresses,
                         MPI_Count* num_large_counts,
                         MPI_Count* num_datatypes,
                         int* combiner) {
  const Envelope& e = type_of(datatype).envelope();
  *num_integers = static_cast<MPI_Count>(e.integers.size());
  *num_addresses = static_cast<MPI_Count>(e.addresses.size());
  *num_large_counts = static_cast<MPI_Count>(e.counts.size());
  *num_datatypes = static_cast<MPI_Count>(e.types.size());
  *combiner = combiner_in_interface(e.combiner);
}

namespace {

// Returns the integers of an envelope, with constants translated to the interface's numbers. The
// integers of a darray are: size, rank, ndims, gsizes (counts in the large form), distribs, dargs,
// psizes, order.
std::vector<int> integers_in_interface(const Envelope& e) {
  std::vector<int> made = e.integers;
  if (e.combiner == Combiner::kSubarray) made.back() = order_in_interface(made.back());
  if (e.combiner == Combiner::kDarray) {
    made.back() = order_in_interface(made.back());
    const auto n = static_cast<std::size_t>(made[2]);
    const std::size_t first = made.size() - 1 - 3 * n;
    for (std::size_t i = 0; i < n; ++i) {
      made[first + i] = distribution_in_interface(made[first + i]);
      int& darg = made[first + n + i];
      if (darg == kDefaultDarg) darg = MPI_DISTRIBUTE_DFLT_DARG;
    }
  }
  return made;
}

void copy_contents(
    const Envelope& e, int* integers, MPI_Aint* addresses, MPI_Count* counts, MPI_Datatype* types) {
  const std::vector<int> numbers = integers_in_interface(e);
  std::copy(numbers.begin(), numbers.end(), integers);
  std::copy(e.addresses.begin(), e.addresses.end(), addresses);
  if (counts != nullptr) std::copy(e.counts.begin(), e.counts.end(), counts);
  std::transform(e.types.begin(), e.types.end(), types, handle_for);
}

}  // namespace

void Type_get_contents(MPI_Datatype datatype,
                       int max_integers,
                       int max_addresses,
                       int max_datatypes,
                       int* integers,
                       MPI_Aint* addresses,
                       MPI_Datatype* datatypes) {
  Type_get_contents_c(datatype,
                      max_integers,
                      max_addresses,
                      0,
                      max_datatypes,
                      integers,
                      addresses,
                      nullptr,
                      datatypes);
}
void Type_get_contents_c(MPI_Datatype datatype,
                         MPI_Count max_integers,
                         MPI_Count max_addresses,
                         MPI_Count max_large_counts,
                         MPI_Count max_datatypes,
                         int* integers,
                         MPI_Aint* addresses,
                         MPI_Count* large_counts,
                         MPI_Datatype* datatypes) {
  const Envelope& e = type_of(datatype).envelope();
  require(e.combiner != Combiner::kNamed, MPI_ERR_TYPE, "datatype is predefined");
  const auto fits = [](std::size_t count, MPI_Count room) {
    return static_cast<MPI_Count>(count) <= room;
  };
  require(fits(e.integers.size(), max_integers) && fits(e.addresses.size(), max_addresses) &&
              fits(e.counts.size(), max_large_counts) && fits(e.types.size(), max_datatypes),
          MPI_ERR_ARG,
          "there is less room than the envelope says");
  copy_contents(e, integers, addresses, large_counts, datatypes);
}

// --- Packing -------------------------------------------------------------------------------------

void Pack(const void* inbuf,
          MPI_Count incount,
          MPI_Datatype datatype,
          void* outbuf,
          MPI_Count outsize,
          CountOut position,
          MPI_Comm comm) {
  comm_of(comm);
  const Datatype& type = type_of(datatype);
  const std::int64_t bytes = bytes_of(type, incount);
  const std::int64_t first = position.get();
  require(first >= 0, MPI_ERR_ARG, "position is negative");
  require(first + bytes <= outsize, MPI_ERR_TRUNCATE, "outbuf is too small");
  if (bytes > 0) type.pack(inbuf, incount, at(outbuf, first));
  position = first + bytes;
}
void Unpack(const void* inbuf,
            MPI_Count insize,
            CountOut position,
            void* outbuf,
            MPI_Count outcount,
            MPI_Datatype datatype,
            MPI_Comm comm) {
  comm_of(comm);
  const Datatype& type = type_of(datatype);
  const std::int64_t bytes = bytes_of(type, outcount);
  const std::int64_t first = position.get();
  require(first >= 0, MPI_ERR_ARG, "position is negative");
  require(first + bytes <= insize, MPI_ERR_TRUNCATE, "inbuf is too small");
  if (bytes > 0) type.unpack(at(inbuf, first), outcount, outbuf);
  position = first + bytes;
}
void Pack_size(MPI_Count incount, MPI_Datatype datatype, MPI_Comm comm, CountOut size) {
  comm_of(comm);
  size = bytes_of(type_of(datatype), incount);
}

namespace {
void require_external32(const char* datarep) {
  require(std::strcmp(datarep, "external32") == 0,
          MPI_ERR_ARG,
          "datarep is another than \"external32\"");
}
}  // namespace

void Pack_external(const char* datarep,
                   const void* inbuf,
                   MPI_Count incount,
                   MPI_Datatype datatype,
                   void* outbuf,
                   MPI_Count outsize,
                   CountOut position) {
  require_external32(datarep);
  const Datatype& type = type_of(datatype);
  const std::int64_t bytes = taken(type.external32_size(incount));
  const std::int64_t first = position.get();
  require(first >= 0, MPI_ERR_ARG, "position is negative");
  require(first + bytes <= outsize, MPI_ERR_TRUNCATE, "outbuf is too small");
  if (bytes > 0) refuse_if(type.pack_external32(inbuf, incount, at(outbuf, first)));
  position = first + bytes;
}
void Unpack_external(const char* datarep,
                     const void* inbuf,
                     MPI_Count insize,
                     CountOut position,
                     void* outbuf,
                     MPI_Count outcount,
                     MPI_Datatype datatype) {
  require_external32(datarep);
  const Datatype& type = type_of(datatype);
  const std::int64_t bytes = taken(type.external32_size(outcount));
  const std::int64_t first = position.get();
  require(first >= 0, MPI_ERR_ARG, "position is negative");
  require(first + bytes <= insize, MPI_ERR_TRUNCATE, "inbuf is too small");
  if (bytes > 0) type.unpack_external32(at(inbuf, first), outcount, outbuf);
  position = first + bytes;
}
void Pack_external_size(const char* datarep,
                        MPI_Count incount,
                        MPI_Datatype datatype,
                        CountOut size) {
  require_external32(datarep);
  size = taken(type_of(datatype).external32_size(incount));
}

}  // namespace hocket::mpi::call
