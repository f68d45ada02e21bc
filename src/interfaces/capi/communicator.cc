// Joining, communicators, groups.
#include <algorithm>
#include <string_view>

#include "hocket/admission.h"
#include "hocket/audit.h"
#include "hocket/launch.h"
#include "interfaces/capi/options.h"

using hocket::Communicator;
using hocket::InvalidArgument;
using hocket::World;
using hocket::capi::another_handle;
using hocket::capi::guarded;
using hocket::capi::of;
using hocket::capi::place;
using hocket::capi::Refusal;

namespace {

std::vector<std::string> split_names(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    if (end != 0) names.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return names;
}

hocket::InitOptions init_options(const hocket_init_options* given) {
  const Refusal refuse;
  const hocket_init_options o = hocket::capi::read(refuse, given, "hocket_init_options");
  hocket::InitOptions options;
  if (o.ranks != 0) {
    options.size = o.ranks;
    options.rank = o.rank;
  }
  if (o.address != nullptr) options.address = o.address;
  if (o.key_file != nullptr) options.key = hocket::Key::from_file(o.key_file);
  options.timeout = hocket::capi::duration(refuse, o.timeout_ns, "options->timeout_ns");
  options.deadline = hocket::capi::duration(refuse, o.deadline_ns, "options->deadline_ns");
  if (o.engines != nullptr) options.engines = split_names(o.engines);
  if (o.name != nullptr) options.name = o.name;
  if (o.join != nullptr) options.join = o.join;
  return options;
}

void copy_ranks(std::span<const int> from, std::int32_t* to, std::size_t length) {
  place(to, "the array");
  if (length < from.size()) {
    throw InvalidArgument("length is " + std::to_string(length) + ", and the communicator has " +
                          std::to_string(from.size()) + " ranks");
  }
  std::copy(from.begin(), from.end(), to);
}

// Makes a handle of the communicator that `make` returns. A null `made` is refused before the call.
template <typename Make>
void make_group(hocket_comm* comm, hocket_comm** made, const Make& make) {
  hocket_comm& parent = of(comm, "comm");
  const Refusal refuse(parent.comm);
  if (made == nullptr) refuse("the place for the new communicator is null");
  *made = new hocket_comm{.comm = make(parent.comm, refuse), .world = parent.world};
}

}  // namespace

int hocket_init(const hocket_init_options* options, hocket_comm** world) {
  return guarded("hocket_init", [&] {
    hocket_comm*& result = place(world, "world");
    auto joined = std::make_shared<World>(hocket::init(init_options(options)));
    Communicator comm = another_handle(joined->communicator());
    result = new hocket_comm{.comm = std::move(comm), .world = std::move(joined)};
  });
}

int hocket_comm_rank(const hocket_comm* comm, int* rank) {
  return guarded("hocket_comm_rank", [&] { place(rank, "rank") = of(comm, "comm").comm.rank(); });
}

int hocket_comm_size(const hocket_comm* comm, int* size) {
  return guarded("hocket_comm_size", [&] { place(size, "size") = of(comm, "comm").comm.size(); });
}

int hocket_comm_epoch(const hocket_comm* comm, int* epoch) {
  return guarded("hocket_comm_epoch",
                 [&] { place(epoch, "epoch") = of(comm, "comm").comm.epoch(); });
}

int hocket_comm_name(const hocket_comm* comm, const char** name) {
  return guarded("hocket_comm_name",
                 [&] { place(name, "name") = of(comm, "comm").comm.name().c_str(); });
}

int hocket_comm_world_ranks(const hocket_comm* comm, int32_t* ranks, size_t length) {
  return guarded("hocket_comm_world_ranks",
                 [&] { copy_ranks(of(comm, "comm").comm.world_ranks(), ranks, length); });
}

int hocket_comm_hosts(const hocket_comm* comm, int32_t* hosts, size_t length) {
  return guarded("hocket_comm_hosts",
                 [&] { copy_ranks(of(comm, "comm").comm.hosts(), hosts, length); });
}

int hocket_comm_deadline(const hocket_comm* comm, int64_t* deadline_ns) {
  return guarded("hocket_comm_deadline", [&] {
    place(deadline_ns, "deadline_ns") = of(comm, "comm").comm.deadline().count();
  });
}

int hocket_comm_set_deadline(hocket_comm* comm, int64_t deadline_ns) {
  return guarded("hocket_comm_set_deadline", [&] {
    Communicator& of_comm = of(comm, "comm").comm;
    if (deadline_ns <= 0) {
      throw InvalidArgument("deadline_ns is " + std::to_string(deadline_ns) +
                            ", expected nanoseconds, or HOCKET_FOREVER");
    }
    of_comm.set_deadline(hocket::Duration(deadline_ns));
  });
}

int hocket_comm_audited(const hocket_comm* comm, int* audited) {
  return guarded("hocket_comm_audited", [&] {
    place(audited, "audited") = hocket::is_audited(of(comm, "comm").comm) ? 1 : 0;
  });
}

int hocket_comm_set_audited(hocket_comm* comm, int audited) {
  return guarded("hocket_comm_set_audited",
                 [&] { hocket::set_audited(of(comm, "comm").comm, audited != 0); });
}

int hocket_comm_status(const hocket_comm* comm) {
  return guarded("hocket_comm_status", [&] {
    if (auto status = of(comm, "comm").comm.status()) throw hocket::Error(std::move(*status));
  });
}

int hocket_comm_abort(hocket_comm* comm, const char* reason) {
  return guarded("hocket_comm_abort",
                 [&] { of(comm, "comm").comm.abort(reason == nullptr ? "" : reason); });
}

int hocket_comm_dump(const hocket_comm* comm, const char* directory) {
  return guarded("hocket_comm_dump",
                 [&] { of(comm, "comm").comm.dump(directory == nullptr ? "" : directory); });
}

int hocket_comm_close(hocket_comm* comm) {
  return guarded("hocket_comm_close", [&] {
    hocket_comm& closed = of(comm, "comm");
    // Closing the communicator of all ranks closes the world.
    if (closed.world->communicator().impl() == closed.comm.impl()) {
      closed.world->close();
    } else {
      closed.comm.close();
    }
  });
}

void hocket_comm_free(hocket_comm** comm) { hocket::capi::release(comm); }

int hocket_new_group(hocket_comm* comm,
                     const int32_t* ranks,
                     size_t length,
                     const hocket_call_options* options,
                     hocket_comm** group) {
  return guarded("hocket_new_group", [&] {
    make_group(comm, group, [&](Communicator& parent, const Refusal& refuse) {
      hocket::capi::check_list(refuse, ranks, length, sizeof *ranks, "ranks");
      return parent.new_group(std::span(ranks, length), call_options(refuse, options));
    });
  });
}

int hocket_split(hocket_comm* comm,
                 int32_t color,
                 int32_t key,
                 const hocket_call_options* options,
                 hocket_comm** group) {
  return guarded("hocket_split", [&] {
    make_group(comm, group, [&](Communicator& parent, const Refusal& refuse) {
      return parent.split({.color = color, .key = key}, call_options(refuse, options));
    });
  });
}

int hocket_duplicate(hocket_comm* comm, const hocket_call_options* options, hocket_comm** copy) {
  return guarded("hocket_duplicate", [&] {
    make_group(comm, copy, [&](Communicator& parent, const Refusal& refuse) {
      return parent.duplicate(call_options(refuse, options));
    });
  });
}

int hocket_intra_node(hocket_comm* comm, hocket_comm** group) {
  return guarded("hocket_intra_node", [&] {
    make_group(comm, group, [](Communicator& parent, const Refusal&) {
      return another_handle(parent.intra_node());
    });
  });
}

int hocket_inter_node(hocket_comm* comm, hocket_comm** group) {
  return guarded("hocket_inter_node", [&] {
    make_group(comm, group, [](Communicator& parent, const Refusal&) {
      return another_handle(parent.inter_node());
    });
  });
}

int hocket_rebuild(hocket_comm* comm, const hocket_rebuild_options* options, hocket_comm** next) {
  return guarded("hocket_rebuild", [&] {
    hocket_comm& old = of(comm, "comm");
    const Refusal refuse = Refusal::of_rebuild(old.comm);
    if (next == nullptr) refuse("next is null; it takes the result");
    hocket_comm*& result = *next;
    const hocket_rebuild_options o = hocket::capi::read(refuse, options, "hocket_rebuild_options");
    const hocket::RebuildOptions how{
        .deadline = hocket::capi::duration(refuse, o.deadline_ns, "options->deadline_ns"),
        .exclude_missing = o.exclude_missing != 0,
        .allow_minority = o.allow_minority != 0};
    const bool is_world = old.world->communicator().impl() == old.comm.impl();
    Communicator made = is_world ? another_handle(old.world->rebuild(how)) : old.comm.rebuild(how);
    result = new hocket_comm{.comm = std::move(made), .world = old.world};
  });
}

int hocket_admit(hocket_comm* comm, const hocket_admit_options* options, hocket_comm** next) {
  return guarded("hocket_admit", [&] {
    hocket_comm& members = of(comm, "comm");
    const Refusal refuse = Refusal::of_rebuild(members.comm);
    if (next == nullptr) refuse("next is null; it takes the result");
    const hocket_admit_options o = hocket::capi::read(refuse, options, "hocket_admit_options");
    const hocket::AdmitOptions how{
        .newcomers = o.newcomers == 0 ? 1 : o.newcomers,
        .patience = hocket::capi::duration(refuse, o.patience_ns, "options->patience_ns"),
        .keep_ranks = o.close_up == 0,
        .rebuild = {
            .deadline = hocket::capi::duration(refuse, o.deadline_ns, "options->deadline_ns"),
            .exclude_missing = o.exclude_missing != 0,
            .allow_minority = o.allow_minority != 0}};
    auto world = std::make_shared<hocket::World>(hocket::admit(members.comm, how));
    Communicator made = another_handle(world->communicator());
    *next = new hocket_comm{.comm = std::move(made), .world = std::move(world)};
  });
}

int hocket_comm_newcomers(const hocket_comm* comm,
                          std::int32_t* ranks,
                          std::size_t length,
                          std::size_t* count) {
  return guarded("hocket_comm_newcomers", [&] {
    const std::vector<int>& newcomers = of(comm, "comm").world->launch().newcomers;
    place(count, "count") = newcomers.size();
    const std::size_t written = std::min(length, newcomers.size());
    if (written != 0) std::copy_n(newcomers.begin(), written, &place(ranks, "ranks"));
  });
}
