// The key-value store: server and client.
#include "hocket/store.h"

#include <nanobind/stl/optional.h>

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "arguments.h"
#include "communicator_object.h"
#include "docstrings.h"
#include "hocket/error.h"

namespace hocket::python {
namespace {

// The state of Python's `Store`. Like `close`, its destructor waits for the server's last answer.
struct StoreHandle {
  StoreHandle(std::shared_ptr<Store> a_store, Duration its_timeout)
      : store(std::move(a_store)), timeout(its_timeout) {}
  StoreHandle(StoreHandle&&) noexcept = default;
  ~StoreHandle() {
    if (store) without_gil_or_signals([this] { store.reset(); });
  }

  std::shared_ptr<Store> store;
  Duration timeout;  // the default for calls that wait
};

// The state of Python's `StoreServer`.
struct ServerHandle {
  ServerHandle(const char* address, int port, nb::handle key, const char* job, bool trust_network) {
    StoreServer::Options options{.address = address, .port = port, .job = job};
    if (!key.is_none()) options.key = key_argument(key);
    options.trust_network = trust_network;
    without_gil([&] { server = std::make_unique<StoreServer>(options); });
  }
  ~ServerHandle() {
    if (server) without_gil_or_signals([this] { server.reset(); });
  }
  ServerHandle(const ServerHandle&) = delete;
  ServerHandle& operator=(const ServerHandle&) = delete;
  std::unique_ptr<StoreServer> server;
};

nb::bytes to_python(const Bytes& value) { return nb::bytes(value.data(), value.size()); }

nb::object to_python(const std::optional<Bytes>& value) {
  return value ? nb::object(to_python(*value)) : nb::none();
}

// Returns shared ownership, because another thread may close the handle during the call.
std::shared_ptr<Store> open(const StoreHandle& handle) {
  if (!handle.store) throw InvalidArgument("the store's client is closed");
  return handle.store;
}

Duration wait_limit(const StoreHandle& handle, nb::handle timeout) {
  return duration_argument(timeout, "timeout").value_or(handle.timeout);
}

StoreHandle connect(
    const char* address, nb::handle key, const char* job, nb::handle timeout, bool trust_network) {
  StoreClientOptions options{
      .address = address, .job = job, .role = StoreRole::kObserver, .trust_network = trust_network};
  if (!key.is_none()) options.key = key_argument(key);
  options.timeout = duration_argument(timeout, "timeout").value_or(options.timeout);
  return {without_gil([&] { return connect_store(options); }), options.timeout};
}

void bind_server(nb::module_& module) {
  using nb::arg;
  nb::class_<ServerHandle>(module, "StoreServer", docstring_of("StoreServer"))
      .def(nb::init<const char*, int, nb::handle, const char*, bool>(),
           arg("address") = "127.0.0.1",
           arg("port") = 0,
           arg("key") = nb::none(),
           arg("job") = "",
           arg("trust_network") = false,
           nb::sig("def __init__(self, address: str = '127.0.0.1', port: int = 0, "
                   "key: Optional[Union[bytes, str, PathLike[str]]] = None, job: str = '', "
                   "trust_network: bool = False) -> None"))
      .def_prop_ro(
          "address",
          [](const ServerHandle& s) {
            if (!s.server) throw InvalidArgument("the store's server is closed");
            return nb::str(s.server->address().c_str());
          },
          nb::sig("def address(self) -> str"),
          "The address for `connect_store`, such as \"127.0.0.1:40123\".")
      .def(
          "close",
          [](ServerHandle& s) {
            const auto server = std::move(s.server);
            if (server) without_gil([&] { server->close(); });
          },
          nb::sig("def close(self) -> None"),
          "Stop serving. May be called again.");
}

void bind_client(nb::module_& module) {
  using nb::arg;
  nb::class_<StoreHandle>(
      module, "Store", "A client of a `StoreServer`; made by `connect_store`. Keys are str.")
      .def(
          "set",
          [](StoreHandle& s, nb::handle name, const nb::bytes& value) {
            const std::string key = text_argument(name, "key");
            const auto store = open(s);
            const auto bytes = bytes_of(value);
            without_gil([&] { store->set(key, bytes); });
          },
          arg("key"),
          arg("value"),
          nb::sig("def set(self, key: str, value: bytes) -> None"),
          "Set a key.")
      .def(
          "get",
          [](StoreHandle& s, nb::handle name, nb::handle timeout) {
            const std::string key = text_argument(name, "key");
            const auto store = open(s);
            const Duration limit = wait_limit(s, timeout);
            return to_python(without_gil([&] { return store->get(key, limit); }));
          },
          arg("key"),
          arg("timeout") = nb::none(),
          nb::sig("def get(self, key: str, timeout: Timeout = None) -> bytes"),
          "The value, once it is there.")
      .def(
          "try_get",
          [](StoreHandle& s, nb::handle name) {
            const std::string key = text_argument(name, "key");
            const auto store = open(s);
            return to_python(without_gil([&] { return store->try_get(key); }));
          },
          arg("key"),
          nb::sig("def try_get(self, key: str) -> Optional[bytes]"),
          "The value, if it is there.")
      .def(
          "add",
          [](StoreHandle& s, nb::handle name, std::int64_t amount) {
            const std::string key = text_argument(name, "key");
            const auto store = open(s);
            return without_gil([&] { return store->add(key, amount); });
          },
          arg("key"),
          arg("amount"),
          nb::sig("def add(self, key: str, amount: int) -> int"),
          "Add to a counter, which begins at 0; return the new value.")
      .def(
          "compare_and_set",
          [](StoreHandle& s,
             nb::handle name,
             std::optional<nb::bytes> expected,
             const nb::bytes& desired) {
            const std::string key = text_argument(name, "key");
            const auto store = open(s);
            std::optional<std::span<const std::byte>> wanted;
            if (expected) wanted = bytes_of(*expected);
            const auto bytes = bytes_of(desired);
            return to_python(
                without_gil([&] { return store->compare_and_set(key, wanted, bytes); }));
          },
          arg("key"),
          arg("expected").none(),
          arg("desired"),
          nb::sig("def compare_and_set(self, key: str, expected: Optional[bytes], "
                  "desired: bytes) -> Optional[bytes]"),
          docstring_of("Store.compare_and_set"))
      .def(
          "erase",
          [](StoreHandle& s, nb::handle name) {
            const std::string key = text_argument(name, "key");
            const auto store = open(s);
            return without_gil([&] { return store->erase(key); });
          },
          arg("key"),
          nb::sig("def erase(self, key: str) -> bool"),
          "Erase a key. True if it existed.")
      .def(
          "close",
          [](StoreHandle& s) {
            const auto store = std::move(s.store);
            if (store) without_gil([&] { store->close(); });
          },
          nb::sig("def close(self) -> None"),
          "Close the connection. May be called again.");
}

}  // namespace

void bind_store(nb::module_& module) {
  using nb::arg;
  bind_server(module);
  bind_client(module);
  module.def("connect_store",
             &connect,
             arg("address"),
             arg("key") = nb::none(),
             arg("job") = "",
             arg("timeout") = nb::none(),
             arg("trust_network") = false,
             nb::sig("def connect_store(address: str, "
                     "key: Optional[Union[bytes, str, PathLike[str]]] = None, job: str = '', "
                     "timeout: Timeout = None, trust_network: bool = False) -> Store"),
             docstring_of("connect_store"));
}

}  // namespace hocket::python
