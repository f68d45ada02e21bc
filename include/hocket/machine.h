// The capabilities of this machine that hocket uses, found by trials, and the problems that were
// found.
//
// This header is for tools (`hocket doctor`); communication does not need it. All types are values.
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
  int allowed = 0;  // processors that this process may use
  int cores = 0;    // cores of the allowed processors
  int packages = 0;
  int numa_nodes = 0;
  // processors' worth of time that the cgroup grants; absent: unlimited
  std::optional<double> quota;
  int spinning_ranks = 0;  // ranks that can spin while they wait; with more ranks they yield
  struct Cache {
    std::string name;       // "L2"
    std::size_t bytes = 0;  // of one cache
    int instances = 0;
  };
  std::vector<Cache> caches;
};

struct Memory {
  std::size_t total = 0;
  std::size_t available = 0;
  std::optional<std::size_t> limit;  // the cgroup's limit; absent: none
  std::string shmem_huge_pages;      // the kernel's setting for shared memory: "advise"
};

// A resource limit of this process, as `ulimit` shows it.
struct Limit {
  std::string option;                 // "-n"
  std::string name;                   // "open files"
  std::optional<std::uint64_t> soft;  // absent: unlimited
  std::optional<std::uint64_t> hard;
};

// A function of the kernel, and whether a trial of it succeeded.
struct Feature {
  std::string name;  // "futex_waitv"
  bool works = false;
  bool required = false;
  std::string purpose;  // how hocket uses it, and what it does without it
  std::string error;    // the error, if it does not work
};

struct NetworkInterface {
  std::string name;
  std::vector<std::string> addresses;
  bool up = false;
  bool loopback = false;
  std::optional<int> megabits;  // per second
};

// A library or Python package, found or not.
struct Software {
  std::string name;
  std::string version;  // empty: not found
  std::string where;
  std::string note;  // hocket's use of it, or why hocket does not use it; may be empty
  bool found() const noexcept { return !version.empty(); }
};

struct Engine {
  std::string name;
  bool available = false;
  std::string note;  // the calls that it carries, or why it is not available
};

struct Problem {
  bool stops_hocket = false;  // false: hocket is slower, or reports less
  std::string what;
  std::string mend;
};

struct Machine {
  std::string host;
  std::string kernel;
  std::string core_pattern;  // destination of core dumps, as the kernel's setting says
  Processors processors;
  Memory memory;
  std::vector<Limit> limits;
  std::vector<Feature> features;
  std::vector<NetworkInterface> interfaces;
  std::vector<Software> libraries;
  std::vector<Software> python;  // the interpreter first, then packages; empty: no Python in PATH
};

// Inspects the machine. It starts short-lived processes, so call it while the process has only one
// thread. It takes tens of milliseconds, and more with `with_python`. It does not throw for missing
// features.
// @param with_python True: also look at Python and its packages.
Machine inspect_machine(bool with_python = true);

// Returns the folders below sys.path in which Python packages install libraries that hocket can
// use. Pass the existing ones as InitOptions::library_folders. Starts Python.
std::vector<std::string> package_library_folders();

// Returns the problems of a machine, the worst first. Any thread may call it.
std::vector<Problem> find_problems(const Machine& machine);

// Returns the engines of this build, best first, and whether they can run on this machine.
std::vector<Engine> find_engines(const Machine& machine);

// An environment variable that hocket reads.
struct Setting {
  std::string name;
  std::string meaning;               // with its values and default
  std::optional<std::string> value;  // the current value; of a key only the file's name is shown
};
// Returns all environment variables that hocket reads.
std::vector<Setting> settings();

}  // namespace hocket
