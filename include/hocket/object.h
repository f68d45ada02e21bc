// Objects: structured values that travel between ranks, and between C++ and Python.
//
//     hocket::Object report{{"loss", 0.5}, {"step", 7}, {"shape", hocket::Object::tuple({4, 2})}};
//     report = hocket::broadcast_object(comm, report, {.root = 0});
//     double loss = report["loss"].as_double();
//
// The encoding is made for bytes that nobody vouches for: `decode` runs no code, checks everything
// and needs memory in proportion to the bytes that are there, whatever their length fields say.
#pragma once

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "hocket/array_view.h"
#include "hocket/communicator.h"
#include "hocket/types.h"

namespace hocket {

enum class ObjectKind : std::uint8_t {
  kNone,
  kBool,
  kInteger,  // of any size
  kDouble,
  kComplex,
  kString,  // UTF-8
  kBytes,
  kList,
  kTuple,
  kDict,  // entries in the order they were added
  kArray,
  kPickle,  // opaque to C++; Python makes and reads it only with allow_pickle=True
  // What Python tells apart and C++ need not: read by as_array() and as_bytes().
  kScalar,     // one element of a dtype, as NumPy's scalars are; an array has dimensions, or none
  kByteArray,  // bytes that can be changed
};

// "none", "bool", "integer", ...
std::string_view name_of(ObjectKind kind) noexcept;

// An array of an object: elements in C order. `data` holds exactly the shape's bytes.
struct ObjectArray {
  DType dtype = DType::kUInt8;
  std::vector<std::size_t> shape;  // empty: one element, no dimensions
  std::vector<std::byte> data;
  // In Fortran order where it came from, and where Python gets it; `data` has C order all the same.
  bool is_fortran = false;

  ConstArrayView view() const noexcept {
    return {data.data(), data.size() / size_of(dtype), dtype};
  }
  bool operator==(const ObjectArray&) const = default;
};

// A value: a tree of none, numbers, strings, bytes, lists, tuples, dicts, arrays and their scalars.
// Copying copies the tree, but shares the elements of arrays, which never change. Different objects
// may be used by different threads. Asking for the wrong kind, a missing key or an index out of
// range throws InvalidArgument, as does building what cannot be: a string that is not UTF-8, a key
// twice.
//
// Its members are not inline: a program that includes this and has no objects compiles faster.
class Object {
 public:
  using Entry = std::pair<Object, Object>;

  Object() noexcept;  // none
  ~Object();
  Object(const Object&);
  Object(Object&& other) noexcept;  // leaves none behind
  // What is assigned may be a part of this, which goes.
  Object& operator=(Object other) noexcept;
  Object(bool value) noexcept;
  template <std::integral T>
  requires(!std::same_as<T, bool> && sizeof(T) <= 8) Object(T value)
      : Object(std::in_range<std::int64_t>(value)
                   ? signed_integer(static_cast<std::int64_t>(value))
                   : unsigned_integer(static_cast<std::uint64_t>(value))) {}
  template <std::floating_point T>
  requires(sizeof(T) <= 8) Object(T value)
  noexcept : Object(real(static_cast<double>(value))) {}
  Object(std::complex<double> value) noexcept;
  Object(std::string text);
  Object(std::string_view text);
  Object(const char* text);
  // A dict: Object{{"loss", 0.5}, {"step", 7}}.
  Object(std::initializer_list<Entry> entries);

  static Object bytes(std::span<const std::byte> data);
  static Object byte_array(std::span<const std::byte> data);
  static Object list(std::vector<Object> items = {});
  static Object tuple(std::vector<Object> items = {});
  // Keys are none, bools, numbers, scalars, strings, bytes, or tuples of those.
  static Object dict(std::vector<Entry> entries = {});
  // Copies host memory. Without a shape: one dimension.
  static Object array(ConstArrayView elements);
  static Object array(ConstArrayView elements, std::vector<std::size_t> shape);
  // Of one element.
  static Object scalar(ConstArrayView element);
  // Without a copy. `contents->data` must be as long as dtype and shape say.
  static Object array(std::shared_ptr<const ObjectArray> contents);
  // An integer of any size: sign, and magnitude in little-endian bytes; or decimal digits with an
  // optional sign.
  static Object integer(bool negative, std::span<const std::byte> magnitude);
  static Object integer(std::string_view decimal);
  static Object pickle(std::span<const std::byte> data);

  ObjectKind kind() const noexcept { return kind_; }
  bool is_none() const noexcept { return kind_ == ObjectKind::kNone; }

  bool as_bool() const;
  // An integer that fits 64 bits; for larger ones see `magnitude` and `decimal`.
  std::int64_t as_integer() const;
  bool fits_int64() const noexcept;
  bool is_negative() const;                  // of an integer
  std::vector<std::byte> magnitude() const;  // of an integer: little-endian, no zeros at the end
  std::string decimal() const;               // of an integer
  double as_double() const;                  // of a double, or of an integer that fits 64 bits
  std::complex<double> as_complex() const;   // also of what as_double takes
  const std::string& as_string() const;
  std::span<const std::byte> as_bytes() const;  // of bytes or a byte array
  std::span<const std::byte> as_pickle() const;
  // Of an array, or of a scalar, which has no dimensions.
  const ObjectArray& as_array() const { return *shared_array(); }
  // Keeps the elements alive, for views that travel.
  const std::shared_ptr<const ObjectArray>& shared_array() const;

  std::size_t size() const;                // of a list, tuple or dict
  std::span<const Object> items() const;   // of a list or tuple
  std::span<const Entry> entries() const;  // of a dict
  // A dict's value; null where the key is absent. Time grows with the dict's length.
  const Object* find(const Object& key) const;
  const Object& operator[](std::size_t index) const;
  const Object& operator[](std::string_view key) const;
  const Object& operator[](const char* key) const { return (*this)[std::string_view(key)]; }
  const Object& operator[](int index) const;

  void append(Object item);            // to a list
  void set(Object key, Object value);  // in a dict: adds the key or replaces its value

  // Same kind and same bits throughout: 1, 1.0 and true differ, NaN equals itself, entries of a
  // dict come in the same order. Equal objects have equal encodings.
  friend bool operator==(const Object& a, const Object& b) noexcept;

 private:
  struct Big {  // an integer beyond 64 bits
    bool negative;
    std::vector<std::byte> magnitude;
  };
  template <typename T>
  Object(ObjectKind kind, T value) : kind_(kind), value_(std::move(value)) {}
  static Object signed_integer(std::int64_t value) noexcept;
  static Object unsigned_integer(std::uint64_t value);
  static Object real(double value) noexcept;
  template <typename T>
  const T& get(ObjectKind kind) const;

  ObjectKind kind_ = ObjectKind::kNone;
  // Bytes, byte array and pickle share an alternative, so do list and tuple, array and scalar:
  // kind_ tells them apart.
  std::variant<std::monostate,
               bool,
               std::int64_t,
               Big,
               double,
               std::complex<double>,
               std::string,
               std::vector<std::byte>,
               std::vector<Object>,
               std::vector<Entry>,
               std::shared_ptr<const ObjectArray>>
      value_;
};

// Lists, tuples and dicts within each other, at most.
inline constexpr int kMaxObjectDepth = 64;

// Throws InvalidArgument where the object nests deeper than kMaxObjectDepth.
std::vector<std::byte> encode(const Object& object);

// The inverse. Throws InvalidArgument, with the position, where the bytes are not exactly one
// encoded object of a version known here.
Object decode(std::span<const std::byte> bytes);

// Objects between ranks: collective calls, each a small one for the sizes and one for the bytes.
// Where a rank's object cannot be encoded, all ranks get InvalidArgument, which names it.
//
// The root's object, on all ranks; what others pass is ignored.
Object broadcast_object(Communicator& comm,
                        const Object& object = {},
                        const RootOptions& options = {});
// At the root every rank's object, in order of the ranks; elsewhere nothing.
std::vector<Object> gather_object(Communicator& comm,
                                  const Object& object,
                                  const RootOptions& options = {});
[[nodiscard("what came is in it alone")]] std::vector<Object> all_gather_object(
    Communicator& comm, const Object& object, const CallOptions& options = {});
// objects[r] of the root, on rank r. The root passes as many as there are ranks; what others pass
// is ignored.
Object scatter_object(Communicator& comm,
                      std::span<const Object> objects = {},
                      const RootOptions& options = {});

// An object to one rank, which takes it by recv_object: of the two, and outside the order of
// collectives. A large one is two messages, so that one thread at a time sends objects to a rank
// under one tag. Throws InvalidArgument, and sends nothing, where it cannot be encoded.
void send_object(Communicator& comm,
                 const Object& object,
                 int destination,
                 const MessageOptions& options = {});
// An object, and who sent it.
struct [[nodiscard("the message has been taken, and is in it alone")]] ReceivedObject {
  Object object;
  Received from;
};
// `source`: a rank, kAnySource, or kNullRank, which sends None. Where an array came, throws
// Mismatch, or InvalidArgument where it is of 256 bytes, as what an object begins with is.
ReceivedObject recv_object(Communicator& comm, int source, const MessageOptions& options = {});

}  // namespace hocket
