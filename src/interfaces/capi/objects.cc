// Objects: as bytes, as strings, and as encodings.
#include "interfaces/capi/collective.h"

using hocket::InvalidArgument;
using hocket::Object;
using hocket::ObjectKind;
using hocket::capi::check_list;
using hocket::capi::Collective;
using hocket::capi::guarded;
using hocket::capi::ObjectResults;
using hocket::capi::of;
using hocket::capi::place;
using hocket::capi::Refusal;

namespace {

std::span<const std::byte> as_bytes(const void* data, std::size_t length) {
  check_list(Refusal(), data, length, 1, "data");
  return {static_cast<const std::byte*>(data), length};
}

hocket_object* made_of(Object object) { return new hocket_object{.object = std::move(object)}; }

// Returns the program's object; null stands for the object none. If this rank cannot read its
// object, the other ranks learn that it has refused the call.
Object read_object(const Refusal& refuse, const hocket_object* object) {
  try {
    return object == nullptr ? Object() : of(object, "object").object;
  } catch (const InvalidArgument& error) {
    refuse(error.what());
  } catch (const std::bad_alloc&) {
    refuse("this rank got no memory for its object");
  }
}

ObjectResults results_of(Object object) {
  ObjectResults results;
  results.objects.push_back(std::move(object));
  return results;
}
ObjectResults results_of(hocket::ReceivedObject received) {
  ObjectResults results = results_of(std::move(received.object));
  results.from = received.from.source;
  return results;
}
ObjectResults results_of(std::vector<Object> objects) { return {.objects = std::move(objects)}; }

void check_room(const Refusal& refuse,
                hocket_object** results,
                std::size_t length,
                std::size_t ranks) {
  if (results != nullptr && length >= ranks) return;
  refuse(results == nullptr ? std::string("results is null")
                            : "length is " + std::to_string(length) + ", and there are " +
                                  std::to_string(ranks) + " objects");
}

// Returns the root's objects for a scatter; none on other ranks.
std::vector<Object> read_parts(const Collective& call,
                               const hocket_object* const* objects,
                               std::size_t length,
                               std::int32_t root) {
  std::vector<Object> parts;
  if (call.comm().rank() != root) return parts;
  check_list(call.refuse(), objects, length, sizeof *objects, "objects");
  if (length != call.ranks()) {
    call.refuse()("length is " + std::to_string(length) + ", and there are " +
                  std::to_string(call.ranks()) + " ranks");
  }
  for (std::size_t i = 0; i < length; ++i) parts.push_back(read_object(call.refuse(), objects[i]));
  return parts;
}

// Makes a handle of the ObjectWork that `start` returns.
template <typename Start>
void start_objects(const Refusal& refuse, hocket_work** work, const Start& start) {
  std::function<ObjectResults()> objects;
  hocket::capi::start_work(refuse, work, [&] {
    auto started = start();
    objects = [result = std::move(started.result)] { return results_of(result()); };
    return std::move(started.work);
  });
  (*work)->objects = std::move(objects);
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
    const std::vector<Object> parts = read_parts(call, objects, length, root);
    *result = made_of(scatter_object(call.comm(), parts, call.root(root)));
  });
}

int hocket_broadcast_object_async(hocket_comm* comm,
                                  const hocket_object* object,
                                  int32_t root,
                                  const hocket_call_options* options,
                                  hocket_work** work) {
  return guarded("hocket_broadcast_object_async", [&] {
    const Collective call(comm, options);
    start_objects(call.refuse(), work, [&] {
      return broadcast_object_async(
          call.comm(), read_object(call.refuse(), object), call.root(root));
    });
  });
}

int hocket_gather_object_async(hocket_comm* comm,
                               const hocket_object* object,
                               int32_t root,
                               const hocket_call_options* options,
                               hocket_work** work) {
  return guarded("hocket_gather_object_async", [&] {
    const Collective call(comm, options);
    start_objects(call.refuse(), work, [&] {
      return gather_object_async(call.comm(), read_object(call.refuse(), object), call.root(root));
    });
  });
}

int hocket_all_gather_object_async(hocket_comm* comm,
                                   const hocket_object* object,
                                   const hocket_call_options* options,
                                   hocket_work** work) {
  return guarded("hocket_all_gather_object_async", [&] {
    const Collective call(comm, options);
    start_objects(call.refuse(), work, [&] {
      return all_gather_object_async(call.comm(), read_object(call.refuse(), object), call.plain());
    });
  });
}

int hocket_scatter_object_async(hocket_comm* comm,
                                const hocket_object* const* objects,
                                size_t length,
                                int32_t root,
                                const hocket_call_options* options,
                                hocket_work** work) {
  return guarded("hocket_scatter_object_async", [&] {
    const Collective call(comm, options);
    start_objects(call.refuse(), work, [&] {
      const std::vector<Object> parts = read_parts(call, objects, length, root);
      return scatter_object_async(call.comm(), parts, call.root(root));
    });
  });
}

int hocket_send_object_async(hocket_comm* comm,
                             const hocket_object* object,
                             int32_t destination,
                             int32_t tag,
                             const hocket_call_options* options,
                             hocket_work** work) {
  return guarded("hocket_send_object_async", [&] {
    const Refusal refuse;
    hocket::Communicator& c = of(comm, "comm").comm;
    const auto how = hocket::capi::with_tag(call_options(refuse, options), tag);
    hocket::capi::start_work(refuse, work, [&] {
      return send_object_async(c, read_object(refuse, object), destination, how);
    });
  });
}

int hocket_recv_object_async(hocket_comm* comm,
                             int32_t source,
                             int32_t tag,
                             const hocket_call_options* options,
                             hocket_work** work) {
  return guarded("hocket_recv_object_async", [&] {
    const Refusal refuse;
    hocket::Communicator& c = of(comm, "comm").comm;
    const auto how = hocket::capi::with_tag(call_options(refuse, options), tag);
    start_objects(refuse, work, [&] { return recv_object_async(c, source, how); });
  });
}

int hocket_work_objects(
    hocket_work* work, hocket_object** results, size_t length, size_t* count, int32_t* from) {
  return guarded("hocket_work_objects", [&] {
    hocket_work& ended = of(work, "work");
    size_t& number = place(count, "count");
    if (!ended.objects) throw InvalidArgument("this work is no call that gives objects");
    if (!ended.work.test()) throw InvalidArgument("this work has not ended; wait for it first");
    ObjectResults came = ended.objects();
    const std::size_t given = came.objects.size();
    if (given != 0) check_room(Refusal(), results, length, given);
    give(std::move(came.objects), results);
    number = given;
    if (from != nullptr && came.from) *from = *came.from;
  });
}
