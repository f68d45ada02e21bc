// Objects: as bytes, as strings, and as encodings.
#include "interfaces/capi/collective.h"

using hocket::InvalidArgument;
using hocket::Object;
using hocket::ObjectKind;
using hocket::capi::check_list;
using hocket::capi::Collective;
using hocket::capi::guarded;
using hocket::capi::of;
using hocket::capi::place;
using hocket::capi::Refusal;

namespace {

std::span<const std::byte> as_bytes(const void* data, std::size_t length) {
  check_list(Refusal(), data, length, 1, "data");
  return {static_cast<const std::byte*>(data), length};
}

hocket_object* made_of(Object object) { return new hocket_object{.object = std::move(object)}; }

// Null stands for the object none. A rank that cannot read its object tells the others.
Object read_object(const Refusal& refuse, const hocket_object* object) {
  try {
    return object == nullptr ? Object() : of(object, "object").object;
  } catch (const InvalidArgument& error) {
    refuse(error.what());
  } catch (const std::bad_alloc&) {
    refuse("this rank got no memory for its object");
  }
}

void check_room(const Refusal& refuse,
                hocket_object** results,
                std::size_t length,
                std::size_t ranks) {
  if (results != nullptr && length >= ranks) return;
  refuse(results == nullptr ? std::string("results is null")
                            : "length is " + std::to_string(length) + ", and there are " +
                                  std::to_string(ranks) + " ranks");
}

// Hands out either all handles, or none.
void give(std::vector<Object> objects, hocket_object** results) {
  std::vector<std::unique_ptr<hocket_object>> made;
  made.reserve(objects.size());
  for (Object& object : objects) made.emplace_back(made_of(std::move(object)));
  for (auto& object : made) *results++ = object.release();
}

}  // namespace

int hocket_object_from_bytes(const void* data, size_t length, hocket_object** object) {
  return guarded("hocket_object_from_bytes", [&] {
    hocket_object*& result = place(object, "object");
    result = made_of(Object::bytes(as_bytes(data, length)));
  });
}

int hocket_object_from_string(const char* text, hocket_object** object) {
  return guarded("hocket_object_from_string", [&] {
    hocket_object*& result = place(object, "object");
    if (text == nullptr) throw InvalidArgument("text is null");
    result = made_of(Object(text));
  });
}

int hocket_object_decode(const void* data, size_t length, hocket_object** object) {
  return guarded("hocket_object_decode", [&] {
    hocket_object*& result = place(object, "object");
    result = made_of(hocket::decode(as_bytes(data, length)));
  });
}

int hocket_object_kind(const hocket_object* object, int* kind) {
  return guarded("hocket_object_kind", [&] {
    int& result = place(kind, "kind");
    switch (of(object, "object").object.kind()) {
      case ObjectKind::kNone:
        result = HOCKET_OBJECT_NONE;
        break;
      case ObjectKind::kString:
        result = HOCKET_OBJECT_STRING;
        break;
      case ObjectKind::kBytes:
      case ObjectKind::kByteArray:
        result = HOCKET_OBJECT_BYTES;
        break;
      default:
        result = HOCKET_OBJECT_OTHER;
    }
  });
}

int hocket_object_bytes(const hocket_object* object, const void** data, size_t* length) {
  return guarded("hocket_object_bytes", [&] {
    const Object& value = of(object, "object").object;
    const void*& start = place(data, "data");
    size_t& count = place(length, "length");
    if (value.kind() == ObjectKind::kString) {
      start = value.as_string().c_str();
      count = value.as_string().size();
    } else {
      start = value.as_bytes().data();
      count = value.as_bytes().size();
    }
  });
}

int hocket_object_encoding(hocket_object* object, const void** data, size_t* length) {
  return guarded("hocket_object_encoding", [&] {
    hocket_object& value = of(object, "object");
    const void*& start = place(data, "data");
    size_t& count = place(length, "length");
    if (value.encoding.empty()) value.encoding = hocket::encode(value.object);
    start = value.encoding.data();
    count = value.encoding.size();
  });
}

void hocket_object_free(hocket_object** object) { hocket::capi::release(object); }

int hocket_broadcast_object(hocket_comm* comm,
                            const hocket_object* object,
                            int32_t root,
                            const hocket_call_options* options,
                            hocket_object** result) {
  return guarded("hocket_broadcast_object", [&] {
    const Collective call(comm, options);
    if (result == nullptr) call.refuse()("result is null; it takes the object");
    *result =
        made_of(broadcast_object(call.comm(), read_object(call.refuse(), object), call.root(root)));
  });
}

int hocket_gather_object(hocket_comm* comm,
                         const hocket_object* object,
                         int32_t root,
                         const hocket_call_options* options,
                         hocket_object** results,
                         size_t length) {
  return guarded("hocket_gather_object", [&] {
    const Collective call(comm, options);
    if (call.comm().rank() == root) check_room(call.refuse(), results, length, call.ranks());
    give(gather_object(call.comm(), read_object(call.refuse(), object), call.root(root)), results);
  });
}

int hocket_all_gather_object(hocket_comm* comm,
                             const hocket_object* object,
                             const hocket_call_options* options,
                             hocket_object** results,
                             size_t length) {
  return guarded("hocket_all_gather_object", [&] {
    const Collective call(comm, options);
    check_room(call.refuse(), results, length, call.ranks());
    give(all_gather_object(call.comm(), read_object(call.refuse(), object), call.plain()), results);
  });
}

int hocket_send_object(hocket_comm* comm,
                       const hocket_object* object,
                       int32_t destination,
                       int32_t tag,
                       const hocket_call_options* options) {
  return guarded("hocket_send_object", [&] {
    const Refusal refuse;
    hocket::Communicator& c = of(comm, "comm").comm;
    send_object(c,
                read_object(refuse, object),
                destination,
                hocket::capi::with_tag(call_options(refuse, options), tag));
  });
}

int hocket_recv_object(hocket_comm* comm,
                       int32_t source,
                       int32_t tag,
                       const hocket_call_options* options,
                       hocket_object** result,
                       int32_t* from) {
  return guarded("hocket_recv_object", [&] {
    const Refusal refuse;
    hocket::Communicator& c = of(comm, "comm").comm;
    hocket_object*& got = place(result, "result");
    hocket::ReceivedObject came =
        recv_object(c, source, hocket::capi::with_tag(call_options(refuse, options), tag));
    got = made_of(std::move(came.object));
    if (from != nullptr) *from = came.from.source;
  });
}

int hocket_scatter_object(hocket_comm* comm,
                          const hocket_object* const* objects,
                          size_t length,
                          int32_t root,
                          const hocket_call_options* options,
                          hocket_object** result) {
  return guarded("hocket_scatter_object", [&] {
    const Collective call(comm, options);
    if (result == nullptr) call.refuse()("result is null; it takes the object");
    std::vector<Object> all;
    if (call.comm().rank() == root) {
      check_list(call.refuse(), objects, length, sizeof *objects, "objects");
      if (length != call.ranks()) {
        call.refuse()("length is " + std::to_string(length) + ", and there are " +
                      std::to_string(call.ranks()) + " ranks");
      }
      for (std::size_t i = 0; i < length; ++i)
        all.push_back(read_object(call.refuse(), objects[i]));
    }
    *result = made_of(scatter_object(call.comm(), all, call.root(root)));
  });
}
