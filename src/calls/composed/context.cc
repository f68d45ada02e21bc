#include "hocket/context.h"

#include <mutex>

#include "hocket/error.h"

namespace hocket {
namespace {

// The process's context. It is global, because libraries that do not know each other must find it.
struct Current {
  std::mutex mutex;
  std::shared_ptr<Context> context;

  static Current& instance() {
    static Current* const current = new Current;  // outlives all destructors
    return *current;
  }
};

template <typename Join>
std::shared_ptr<Context> make_current(const ContextOptions& options, Join&& join) {
  Current& current = Current::instance();
  const std::lock_guard lock(current.mutex);
  if (current.context) {
    throw InvalidArgument("the context has been initialized already; finalize it first");
  }
  const InitOptions with{.timeout = options.timeout,
                         .deadline = options.deadline,
                         .engines = options.engines,
                         .library_folders = options.library_folders};
  current.context = std::make_shared<Context>(join(with), options);
  return current.context;
}

}  // namespace

Context::Context(World world, ContextOptions options)
    : world_(std::move(world)), options_(std::move(options)) {}

std::shared_ptr<Context> Context::initialize(Bootstrap& group, const ContextOptions& options) {
  return make_current(options, [&](const InitOptions& with) { return init(group, with); });
}

std::shared_ptr<Context> Context::initialize(const ContextOptions& options) {
  return make_current(options, [](const InitOptions& with) { return init(with); });
}

std::shared_ptr<Context> Context::current() {
  Current& current = Current::instance();
  const std::lock_guard lock(current.mutex);
  return current.context;
}

void Context::finalize() {
  std::shared_ptr<Context> context;
  {
    Current& current = Current::instance();
    const std::lock_guard lock(current.mutex);
    context.swap(current.context);
  }
  if (context && !context->communicator().status()) context->communicator().barrier();
}

}  // namespace hocket
