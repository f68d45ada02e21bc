// The implementation of a Prepared.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "calls/world/communicator_impl.h"

namespace hocket::world {

// A resource: a checked call, its storage, and its communicator.
class PreparedCall : public std::enable_shared_from_this<PreparedCall> {
 public:
  PreparedCall(std::shared_ptr<CommunicatorImpl> impl, const call::Request& request)
      : impl_(std::move(impl)), request_(request) {}
  // Functions for a call that is not a plain collective.
  struct Ways {
    std::function<void()> run;
    std::function<std::shared_ptr<call::Operation>()> start;
  };
  PreparedCall(std::shared_ptr<CommunicatorImpl> impl, Ways ways)
      : impl_(std::move(impl)), ways_(std::move(ways)) {}
  void prepare() { plan_ = impl_->prepare(request_, storage_); }
  void run() {
    if (ways_.run) {
      ways_.run();
    } else {
      impl_->run_prepared(plan_, request_);
    }
  }
  std::shared_ptr<call::Operation> start() {
    if (ways_.start) return ways_.start();
    return impl_->start_prepared(plan_, request_, shared_from_this());
  }

 private:
  std::shared_ptr<CommunicatorImpl> impl_;
  call::Request request_;
  call::CallStorage storage_;
  AnyPlan plan_;
  Ways ways_;
};

}  // namespace hocket::world
