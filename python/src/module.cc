// The extension module `hocket._hocket`: arrays, options and errors between Python and the library.
#include <nanobind/nanobind.h>

#include "array.h"
#include "communicator_object.h"
#include "errors.h"
#include "immutable.h"
#include "keywords.h"

namespace nb = nanobind;

NB_MODULE(_hocket, module) {
  using namespace hocket::python;
  module.doc() = "What hocket's Python package is made of; use it through `hocket`.";
  nb::set_leak_warnings(false);  // communicators may live until the process ends
  import_numpy();
  bind_errors();
  bind_work(module);
  bind_endings(module);
  bind_immutable(module);
  CommunicatorClass cls = bind_communicator(module);
  bind_reductions(cls);
  bind_extremes(cls);
  bind_movement(cls);
  bind_parts(cls);
  bind_messages(cls);
  bind_coalesced(cls);
  bind_compression(cls);
  bind_objects(cls);
  bind_symmetric(module, cls);
  bind_world(module);
  bind_pool(module);
  bind_distribution(module);
  bind_fft(module);
  bind_matmul(module);
  bind_store(module);
  mind_keywords(module);
}
