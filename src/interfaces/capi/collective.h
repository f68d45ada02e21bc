// Reads and checks the arguments of a collective call; errors are reported to all its ranks.
#pragma once

#include <memory>
#include <new>
#include <span>
#include <utility>

#include "interfaces/capi/options.h"

namespace hocket::capi {

class Collective {
 public:
  Collective(hocket_comm* comm, const hocket_call_options* options)
      : comm_(of(comm, "comm").comm), refuse_(comm_), options_(call_options(refuse_, options)) {}

  Communicator& comm() const noexcept { return comm_; }
  std::size_t ranks() const noexcept { return static_cast<std::size_t>(comm_.size()); }
  const Refusal& refuse() const noexcept { return refuse_; }

  const CallOptions& plain() const noexcept { return options_; }
  RootOptions root(int root) const { return with_root(options_, root); }
  ReduceOptions reduce(std::int32_t op) const { return with_op(options_, capi::op(refuse_, op)); }
  ReduceRootOptions reduce(std::int32_t op, int root) const {
    return {.op = capi::op(refuse_, op),
            .root = root,
            .deadline = options_.deadline,
            .stream = options_.stream};
  }

  ConstArrayView input(const hocket_array* in) const { return view(refuse_, in, "in"); }
  ArrayView output(const hocket_array* out) const { return view(refuse_, out, "out"); }
  std::span<const std::size_t> counts(const std::size_t* counts, std::size_t length) const {
    return counts == nullptr ? std::span<const std::size_t>{} : std::span(counts, length);
  }
  Parts parts(const hocket_parts* parts) const {
    if (parts == nullptr) return {};
    return {.counts = counts(parts->counts, parts->length),
            .displacements = counts(parts->displacements, parts->length)};
  }

  // Calls `verb` with one array if the call is in place, else with two.
  template <typename Verb>
  auto on(const hocket_array* in, const hocket_array* out, const Verb& verb) const {
    if (in != nullptr) return verb(input(in), output(out));
    if (out == nullptr) refuse_("in and out are both null");
    return verb(output(out));
  }

  template <typename Start>
  void start(hocket_work** work, const Start& start) const {
    start_work(refuse_, work, start);
  }
  // Makes a handle of the result of `make`. A null `prepared` is refused before the call is made.
  template <typename Make>
  void prepare(hocket_prepared** prepared,
               const Make& make,
               std::shared_ptr<const void> keep = {}) const {
    if (prepared == nullptr) refuse_("prepared is null; it takes the handle of the call");
    std::unique_ptr<hocket_prepared> made(new (std::nothrow) hocket_prepared{
        .comm = another_handle(comm_), .keep = std::move(keep), .prepared = Prepared(nullptr)});
    if (!made) refuse_("this rank got no memory for the handle of the call");
    made->prepared = make();
    *prepared = made.release();
  }

 private:
  Communicator& comm_;
  Refusal refuse_;
  CallOptions options_;
};

}  // namespace hocket::capi
