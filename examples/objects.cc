// Objects: structured values between ranks, without a format of one's own.
#include <hocket/hocket.h>

#include <cstdio>
#include <vector>

#include "check.h"

using examples::expect_equal;
using hocket::Object;

int main() try {
  hocket::World world = hocket::init();
  hocket::Communicator& comm = world.communicator();
  const int rank = comm.rank();
  const int n = comm.size();

  // The settings of rank 0, for all.
  Object settings;
  if (rank == 0) {
    settings = Object{{"rate", 0.1},
                      {"layers", Object::list({784, 64, 10})},
                      {"start", Object::array(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3})}};
  }
  settings = hocket::broadcast_object(comm, settings, {.root = 0});
  expect_equal(settings["rate"].as_double(), 0.1, "the rate");
  expect_equal(settings["layers"][1].as_integer(), 64, "the second layer");
  const hocket::ObjectArray& start = settings["start"].as_array();
  expect_equal(start.shape.size(), 2u, "the dimensions of the array");
  expect_equal(static_cast<const float*>(start.view().data())[5], 6.0f, "its last element");

  // Each rank's report, on all ranks.
  const Object mine{{"rank", rank}, {"name", "voice " + std::to_string(rank)}};
  const std::vector<Object> reports = hocket::all_gather_object(comm, mine);
  for (int r = 0; r < n; ++r) {
    expect_equal(reports[r]["rank"].as_integer(), r, "a report's rank");
    expect_equal(reports[r]["name"].as_string(), "voice " + std::to_string(r), "its name");
  }
  const std::vector<Object> at_last = hocket::gather_object(comm, mine, {.root = n - 1});
  expect_equal(at_last.size(), rank == n - 1 ? reports.size() : 0u, "reports gathered here");

  // Work of different size for each rank.
  std::vector<Object> parts;
  if (rank == 0) {
    for (int r = 0; r < n; ++r) parts.push_back(std::string(static_cast<std::size_t>(r), 'x'));
  }
  const Object part = hocket::scatter_object(comm, parts, {.root = 0});
  expect_equal(part.as_string().size(), static_cast<std::size_t>(rank), "the length of my part");

  if (rank == 0) std::printf("settings and parts handed out, %zu reports read\n", reports.size());
  return 0;
} catch (const std::exception& error) {
  return examples::failed(error);
}
