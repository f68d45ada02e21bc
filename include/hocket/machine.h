// What this machine can do for hocket, found by trying, and what stands in the way.
//
// For tools (`hocket doctor`); nothing here is needed to communicate. All types are values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hocket/abi.h"

namespace hocket {

struct Processors {
  std::string model;
  int online = 0;   // processors (hardware threads) of the machine
  int allowed = 0;  // of these, what this process may use
  int cores = 0;    // that the allowed ones belong to
  int packages = 0;
  int numa_nodes = 0;
  std::optional<double> quota;  // processors' worth of time that the cgroup grants; absent: all
  int spinning_ranks = 0;       // ranks that may spin while they wait; if there are more, they yield
  struct Cache {
    std::string name;       // "L2"
    std::size_t bytes = 0;  // of one
    int instances = 0;
  };
  std::vector<Cache> caches;
};

struct Memory {
  std::size_t total = 0;
  std::size_t available = 0;
  std::optional<std::size_t> limit;  // the cgroup's; absent: none
  std::string shmem_huge_pages;      // the kernel's setting for shared memory: "advise"
};

// A limit of this process, as `ulimit` shows it.
struct Limit {
  std::string option;                 // "-n"
  std::string name;                   // "open files"
  std::optional<std::uint64_t> soft;  // absent: unlimited
  std::optional<std::uint64_t> hard;
};

// Something that the kernel was asked to do.
struct Feature {
  std::string name;  // "futex_waitv"
  bool works = false;
  bool required = false;
  std::string purpose;  // what hocket does with it, and instead of it
  std::string error;    // where it does not work
};

struct NetworkInterface {
  std::string name;
  std::vector<std::string> addresses;
  bool up = false;
  bool loopback = false;
  std::optional<int> megabits;  // a second
};

// A library or Python package that is there, or is not.
struct Software {
  std::string name;
  std::string version;  // empty: not found
  std::string where;
  std::string note;  // what it would be used for, or why it would not be; may be empty
  bool found() const noexcept { return !version.empty(); }
};

struct Engine {
  std::string name;
  bool available = false;
  std::string note;  // what it carries, or why it is not available
};

struct Problem {
  bool stops_hocket = false;  // else it is slower, or says less
  std::string what;
  std::string mend;
};

struct Machine {
  std::string host;
  std::string kernel;
  std::string core_pattern;  // where the kernel puts a dying process's memory
  Processors processors;
  Memory memory;
  std::vector<Limit> limits;
  std::vector<Feature> features;
  std::vector<NetworkInterface> interfaces;
  std::vector<Software> libraries;
  std::vector<Software> python;  // the interpreter first, then packages; empty: no Python in PATH
};

// Looks, and tries. Starts short-lived processes, so it wants to be called while there is one
// thread; takes some tens of milliseconds, more with `with_python`. Does not throw for what is not
// there.
Machine inspect_machine(bool with_python = true);

// Where Python's packages keep libraries that hocket can use, each below an entry of sys.path. What
// of it is there goes into InitOptions::library_folders.
std::vector<std::string> package_library_folders();

// What is wrong, the worst first. Pure.
std::vector<Problem> find_problems(const Machine& machine);

// The engines of this build, best first, and whether this machine lets them run.
std::vector<Engine> find_engines(const Machine& machine);

// A variable of the environment that hocket understands.
struct Setting {
  std::string name;
  std::string meaning;               // with its values and default
  std::optional<std::string> value;  // as it stands; a key's file is named, never read
};
std::vector<Setting> settings();

}  // namespace hocket
