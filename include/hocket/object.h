// Objects: structured values that travel between ranks, and between C++ and Python.
//
//     hocket::Object report{{"loss", 0.5}, {"step", 7}, {"shape", hocket::Object::tuple({4, 2})}};
//     report = hocket::broadcast_object(comm, report, {.root = 0});
//     double loss = report["loss"].as_double();
//
// The encoding is safe for untrusted bytes. `decode` runs no code and checks everything. The memory
// that it needs is proportional to the bytes that exist, whatever their length fields say.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
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
#include "hocket/work.h"

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
  kPickle,  // opaque to C++; Python reads and writes it only with allow_pickle=True
  // Kinds that only Python distinguishes. C++ reads them with as_array() and as_bytes().
  kScalar,     // one element of a dtype, as NumPy's scalars; an array may also have no dimension
  kByteArray,  // bytes that can be changed
};

// "none", "bool", "integer", ...
std::string_view name_of(ObjectKind kind) noexcept;

// The array of an object, with its elements in C order. `data` has exactly the bytes of the shape.
struct ObjectArray {
  DType dtype = DType::kUInt8;
  std::vector<std::size_t> shape;  // empty: one element, no dimension
  std::vector<std::byte> data;
  // True if the original has Fortran order, which Python restores. `data` has C order in any case.
  bool is_fortran = false;

  ConstArrayView view() const noexcept {
    return {data.data(), data.size() / size_of(dtype), dtype};
  }
  bool operator==(const ObjectArray&) const = default;
};

// A value: a tree of none, numbers, strings, bytes, lists, tuples, dicts, arrays and their scalars.
// A copy copies the tree but shares the elements of arrays, which never change. Different threads
// may use different objects.
//
// Its functions throw InvalidArgument for the wrong kind, a missing key, or an index out of range.
// They also throw it for an object that cannot exist: a string that is not UTF-8, a dict with a
// duplicate key.
//
// The members are not inline, so that a program without objects compiles faster.
class Object {
 public:
  using Entry = std::pair<Object, Object>;

  Object() noexcept;  // none
  ~Object();
  Object(const Object&);
  Object(Object&& other) noexcept;  // `other` becomes the object none
  // `other` may be a part of this object, which the assignment destroys.
  Object& operator=(Object other) noexcept;
  Object(bool value) noexcept;
  template <std::integral T>
    requires(!std::same_as<T, bool> && sizeof(T) <= 8)
  Object(T value)
      : Object(std::in_range<std::int64_t>(value)
                   ? signed_integer(static_cast<std::int64_t>(value))
                   : unsigned_integer(static_cast<std::uint64_t>(value))) {}
  template <std::floating_point T>
    requires(sizeof(T) <= 8)
  Object(T value) noexcept : Object(real(static_cast<double>(value))) {}
  Object(std::complex<double> value) noexcept;
  Object(std::string text);
  Object(std::string_view text);
  Object(const char* text);
  // Makes a dict: Object{{"loss", 0.5}, {"step", 7}}.
  Object(std::initializer_list<Entry> entries);

  // Copies bytes, as an immutable or a mutable object.
  static Object bytes(std::span<const std::byte> data);
  static Object byte_array(std::span<const std::byte> data);
  static Object list(std::vector<Object> items = {});
  static Object tuple(std::vector<Object> items = {});
  // Makes a dict. Keys are none, bools, numbers, scalars, strings, bytes, or tuples of these.
  static Object dict(std::vector<Entry> entries = {});
  // Copies an array in host memory. Without a shape it has one dimension.
  static Object array(ConstArrayView elements);
  static Object array(ConstArrayView elements, std::vector<std::size_t> shape);
  // Copies one element in host memory.
  static Object scalar(ConstArrayView element);
  // Makes an array without a copy. The length of `contents->data` must fit dtype and shape.
  static Object array(std::shared_ptr<const ObjectArray> contents);
  // Makes an integer of any size, from a sign and a magnitude in little-endian bytes, or from
  // decimal digits with an optional sign.
  static Object integer(bool negative, std::span<const std::byte> magnitude);
  static Object integer(std::string_view decimal);
  static Object pickle(std::span<const std::byte> data);

  ObjectKind kind() const noexcept { return kind_; }
  bool is_none() const noexcept { return kind_ == ObjectKind::kNone; }

  bool as_bool() const;
  // Returns an integer that fits into 64 bits. For larger ones use `magnitude` or `decimal`.
  std::int64_t as_integer() const;
  bool fits_int64() const noexcept;
  bool is_negative() const;  // for an integer
  // for an integer: little-endian, without trailing zeros
  std::vector<std::byte> magnitude() const;
  std::string decimal() const;  // for an integer
  double as_double() const;     // for a double, or an integer that fits into 64 bits
  // for a complex number, and for kinds that as_double takes
  std::complex<double> as_complex() const;
  const std::string& as_string() const;
  std::span<const std::byte> as_bytes() const;  // for bytes and byte arrays
  std::span<const std::byte> as_pickle() const;
  // Returns the elements of an array, or of a scalar, which has no dimension.
  const ObjectArray& as_array() const { return *shared_array(); }
  // Returns the same with shared ownership, for views that outlive the object.
  const std::shared_ptr<const ObjectArray>& shared_array() const;

  std::size_t size() const;                // for lists, tuples and dicts
  std::span<const Object> items() const;   // for lists and tuples
  std::span<const Entry> entries() const;  // for dicts
  // Returns a dict's value, or null if the key is absent. The time is linear in the length of the
  // dict.
  const Object* find(const Object& key) const;
  const Object& operator[](std::size_t index) const;
  const Object& operator[](std::string_view key) const;
  const Object& operator[](const char* key) const { return (*this)[std::string_view(key)]; }
  const Object& operator[](int index) const;

  void append(Object item);            // to a list
  void set(Object key, Object value);  // in a dict: adds the key or replaces its value

  // Compares kind and bits: 1, 1.0 and true differ, and a NaN equals itself. Entries of dicts must
  // have the same order. Equal objects have equal encodings.
  friend bool operator==(const Object& a, const Object& b) noexcept;

 private:
  struct Big {  // an integer beyond 64 bits
    bool negative;
    std::vector<std::byte> magnitude;
  };
  struct Complex {
    double real, imag;
  };
  template <typename T>
  Object(ObjectKind kind, T value) : kind_(kind), value_(std::move(value)) {}
  static Object signed_integer(std::int64_t value) noexcept;
  static Object unsigned_integer(std::uint64_t value);
  static Object real(double value) noexcept;
  template <typename T>
  const T& get(ObjectKind kind) const;

  ObjectKind kind_ = ObjectKind::kNone;
  // Some kinds share an alternative, and kind_ tells them apart: bytes, byte array and pickle; list
  // and tuple; array and scalar.
  std::variant<std::monostate,
               bool,
               std::int64_t,
               Big,
               double,
               Complex,
               std::string,
               std::vector<std::byte>,
               std::vector<Object>,
               std::vector<Entry>,
               std::shared_ptr<const ObjectArray>>
      value_;
};

// Maximum nesting depth of lists, tuples and dicts.
inline constexpr int kMaxObjectDepth = 64;

// Encodes an object as bytes.
// @throws InvalidArgument if the object is nested deeper than kMaxObjectDepth.
std::vector<std::byte> encode(const Object& object);

// Decodes an object; the inverse of `encode`.
// @throws InvalidArgument, with the position, if `bytes` are not exactly one encoded object of a
//   known version.
Object decode(std::span<const std::byte> bytes);

// The calls below move objects between ranks. Each is collective, and consists of one small call
// for the sizes and one for the bytes. If one rank's object cannot be encoded, all ranks get
// InvalidArgument, which names that rank. The other errors are those of the communicator's calls.
//
// broadcast_object returns the root's object on all ranks. Objects of other ranks are ignored.
Object broadcast_object(Communicator& comm,
                        const Object& object = {},
                        const RootOptions& options = {});
// Return every rank's object, in rank order. gather_object returns them at the root, and nothing
// elsewhere.
std::vector<Object> gather_object(Communicator& comm,
                                  const Object& object,
                                  const RootOptions& options = {});
[[nodiscard("what came is in it alone")]] std::vector<Object> all_gather_object(
    Communicator& comm, const Object& object, const CallOptions& options = {});
// Returns objects[r] of the root on rank r. The root passes one object for each rank. Objects of
// other ranks are ignored.
Object scatter_object(Communicator& comm,
                      std::span<const Object> objects = {},
                      const RootOptions& options = {});

// Sends an object to one rank, which receives it with recv_object. The call concerns only the two
// ranks and is not part of the order of collectives. A large object takes two messages, the second
// under a tag of its own.
// @throws InvalidArgument, and sends nothing, if the object cannot be encoded.
void send_object(Communicator& comm,
                 const Object& object,
                 int destination,
                 const MessageOptions& options = {});
// An object and the rank that sent it.
struct [[nodiscard("the message has been taken, and is in it alone")]] ReceivedObject {
  Object object;
  Received from;
};
// Receives an object.
// @param comm The communicator.
// @param source A rank, kAnySource, or kNullRank, which sends none.
// @throws Mismatch if the message is an array. If the array has exactly 256 bytes, the size of an
//   object's first message, it throws InvalidArgument instead.
ReceivedObject recv_object(Communicator& comm, int source, const MessageOptions& options = {});

// --- Without waiting ----------------------------------------------------------------------------

// A started call of objects, and its result.
template <typename Result>
struct [[nodiscard("dropping it gives the call up")]] ObjectWork {
  Work work;
  // Returns the call's result. Call it after `work` has succeeded.
  // @throws InvalidArgument if the received bytes are no object.
  std::function<Result()> result;

  Result wait() {
    work.wait();
    return result();
  }
};

// Start the calls above. They read `object` before they return. A collective keeps its place in the
// order of calls. It takes two sequence numbers, like its blocking form.
ObjectWork<Object> broadcast_object_async(Communicator& comm,
                                          const Object& object = {},
                                          const RootOptions& options = {});
ObjectWork<std::vector<Object>> gather_object_async(Communicator& comm,
                                                    const Object& object,
                                                    const RootOptions& options = {});
ObjectWork<std::vector<Object>> all_gather_object_async(Communicator& comm,
                                                        const Object& object,
                                                        const CallOptions& options = {});
ObjectWork<Object> scatter_object_async(Communicator& comm,
                                        std::span<const Object> objects = {},
                                        const RootOptions& options = {});
Work send_object_async(Communicator& comm,
                       const Object& object,
                       int destination,
                       const MessageOptions& options = {});
ObjectWork<ReceivedObject> recv_object_async(Communicator& comm,
                                             int source,
                                             const MessageOptions& options = {});

}  // namespace hocket
