// Topologies of processes: grids and graphs.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "interfaces/mpi/communicators.h"
#include "mpi_calls.h"

namespace hocket::mpi {
namespace {

Topology& topology_of(Comm& comm, int kind) {
  require(comm.topology != nullptr && comm.topology->kind == kind,
          MPI_ERR_TOPOLOGY,
          "comm has no topology of this kind");
  return *comm.topology;
}
Topology& topology_of(MPI_Comm handle, int kind) { return topology_of(comm_of(handle), kind); }

std::int64_t product(const std::vector<int>& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

std::vector<int> place_of(const Topology& grid, int rank) {
  std::vector<int> place(grid.dims.size());
  for (std::size_t i = place.size(); i-- > 0;) {
    place[i] = rank % grid.dims[i];
    rank /= grid.dims[i];
  }
  return place;
}
// Returns the rank at a position of a grid; MPI_PROC_NULL beyond the end of a dimension.
int rank_at(const Topology& grid, std::vector<int> place) {
  int rank = 0;
  for (std::size_t i = 0; i < place.size(); ++i) {
    const int extent = grid.dims[i];
    if (place[i] < 0 || place[i] >= extent) {
      if (!grid.periods[i]) return MPI_PROC_NULL;
      place[i] = (place[i] % extent + extent) % extent;
    }
    rank = rank * extent + place[i];
  }
  return rank;
}
int shifted(const Topology& grid, int rank, int direction, int displacement) {
  std::vector<int> place = place_of(grid, rank);
  place[static_cast<std::size_t>(direction)] += displacement;
  return rank_at(grid, std::move(place));
}

void set_grid_neighbours(Topology& grid, int rank) {
  for (int i = 0; i < static_cast<int>(grid.dims.size()); ++i) {
    for (const int step : {-1, 1}) grid.sources.push_back(shifted(grid, rank, i, step));
  }
  grid.destinations = grid.sources;
}

// Makes a communicator of the ranks below `size`, with a topology.
std::shared_ptr<Comm> with_topology(Comm& old,
                                    std::int64_t size,
                                    Topology topology,
                                    const std::function<void(Topology&, int rank)>& finish) {
  require(!old.is_inter(), MPI_ERR_COMM, "comm has two groups");
  require(size <= old.size(), MPI_ERR_ARG, "the topology has more ranks than comm");
  auto made = split(old, old.rank < size ? 0 : -1, old.rank);
  if (made == nullptr) return nullptr;
  finish(topology, made->rank);
  made->topology = std::make_shared<Topology>(std::move(topology));
  make_inner(*made);
  return made;
}

std::vector<int> listed(const int* values, int count) {
  return count <= 0 ? std::vector<int>{} : std::vector<int>(values, values + count);
}

void copy_out(const std::vector<int>& values, int room, int* out) {
  std::copy_n(
      values.begin(), std::min<std::size_t>(values.size(), static_cast<std::size_t>(room)), out);
}

std::pair<int, int> edges_of(const Topology& graph, int rank) {
  require(rank >= 0 && rank < static_cast<int>(graph.index.size()),
          MPI_ERR_RANK,
          "rank is not in the graph");
  const int first = rank == 0 ? 0 : graph.index[static_cast<std::size_t>(rank - 1)];
  return {first, graph.index[static_cast<std::size_t>(rank)]};
}

}  // namespace
}  // namespace hocket::mpi

namespace hocket::mpi::call {

void Topo_test(MPI_Comm comm, int* status) {
  Comm& c = comm_of(comm);
  *status = c.topology == nullptr ? MPI_UNDEFINED : c.topology->kind;
}

namespace {

// Finds extents with a given product, largest first, such that the largest and the smallest differ
// as little as possible. A value.
class ClosestExtents {
 public:
  ClosestExtents(int nodes, std::size_t dims) : tried_(dims) {
    for (int d = 1; d <= nodes / d; ++d) {
      if (nodes % d != 0) continue;
      divisors_.push_back(d);
      if (d != nodes / d) divisors_.push_back(nodes / d);
    }
    std::ranges::sort(divisors_);
    divide(nodes, nodes, 0);
  }
  const std::vector<int>& found() const noexcept { return best_; }

 private:
  void divide(int left, int most, std::size_t place) {
    if (place + 1 == tried_.size()) {
      if (left > most) return;
      tried_[place] = left;
      if (best_.empty() || spread(tried_) < spread(best_)) best_ = tried_;
      return;
    }
    const auto places = static_cast<double>(tried_.size() - place);
    for (const int extent : divisors_) {
      const bool is_enough = std::pow(extent, places) * 1.001 >= left;
      if (extent > most || left % extent != 0 || !is_enough) continue;
      tried_[place] = extent;
      if (may_be_better(left / extent, place + 1)) divide(left / extent, extent, place + 1);
    }
  }
  // Returns whether the extents from `place` on can all be large enough for a smaller spread.
  bool may_be_better(int left, std::size_t place) const {
    if (best_.empty()) return true;
    const int least = tried_.front() - spread(best_) + 1;
    const auto places = static_cast<double>(tried_.size() - place);
    return least <= 1 || std::pow(least, places) <= left * 1.001;
  }
  static int spread(const std::vector<int>& extents) { return extents.front() - extents.back(); }

  std::vector<int> divisors_, tried_, best_;
};

}  // namespace

void Dims_create(int nnodes, int ndims, int* dims) {
  require(nnodes > 0 && ndims >= 0, MPI_ERR_DIMS, "nnodes or ndims is negative");
  std::int64_t left = nnodes;
  std::vector<int> open;
  for (int i = 0; i < ndims; ++i) {
    require(dims[i] >= 0, MPI_ERR_DIMS, "dims has a negative one");
    if (dims[i] == 0) {
      open.push_back(i);
      continue;
    }
    require(left % dims[i] == 0, MPI_ERR_DIMS, "nnodes is no multiple of the dims that are given");
    left /= dims[i];
  }
  require(!open.empty() || left == 1, MPI_ERR_DIMS, "the dims do not make up nnodes");
  if (open.empty()) return;
  const std::vector<int> extents = ClosestExtents(static_cast<int>(left), open.size()).found();
  for (std::size_t i = 0; i < open.size(); ++i) dims[open[i]] = extents[i];
}

void Cart_create(
    MPI_Comm comm_old, int ndims, const int* dims, const int* periods, int, MPI_Comm* comm_cart) {
  require(ndims >= 0, MPI_ERR_DIMS, "ndims is negative");
  Topology grid{.kind = MPI_CART, .dims = listed(dims, ndims), .periods = listed(periods, ndims)};
  for (const int extent : grid.dims) require(extent > 0, MPI_ERR_DIMS, "dims has one below 1");
  const std::int64_t size = product(grid.dims);
  *comm_cart =
      publish(with_topology(comm_of(comm_old), size, std::move(grid), set_grid_neighbours));
}
void Cartdim_get(MPI_Comm comm, int* ndims) {
  *ndims = static_cast<int>(topology_of(comm, MPI_CART).dims.size());
}
void Cart_get(MPI_Comm comm, int maxdims, int* dims, int* periods, int* coords) {
  const Topology& grid = topology_of(comm, MPI_CART);
  copy_out(grid.dims, maxdims, dims);
  copy_out(grid.periods, maxdims, periods);
  copy_out(place_of(grid, comm_of(comm).rank), maxdims, coords);
}
void Cart_rank(MPI_Comm comm, const int* coords, int* rank) {
  const Topology& grid = topology_of(comm, MPI_CART);
  *rank = rank_at(grid, listed(coords, static_cast<int>(grid.dims.size())));
  require(*rank != MPI_PROC_NULL, MPI_ERR_ARG, "coords lie outside the grid");
}
void Cart_coords(MPI_Comm comm, int rank, int maxdims, int* coords) {
  const Topology& grid = topology_of(comm, MPI_CART);
  require(rank >= 0 && rank < comm_of(comm).size(), MPI_ERR_RANK, "rank is not in comm");
  copy_out(place_of(grid, rank), maxdims, coords);
}
void Cart_shift(MPI_Comm comm, int direction, int disp, int* rank_source, int* rank_dest) {
  const Topology& grid = topology_of(comm, MPI_CART);
  require(direction >= 0 && direction < static_cast<int>(grid.dims.size()),
          MPI_ERR_ARG,
          "direction is no dimension");
  *rank_source = shifted(grid, comm_of(comm).rank, direction, -disp);
  *rank_dest = shifted(grid, comm_of(comm).rank, direction, disp);
}
void Cart_sub(MPI_Comm comm, const int* remain_dims, MPI_Comm* newcomm) {
  Comm& c = comm_of(comm);
  const Topology& grid = topology_of(c, MPI_CART);
  const std::vector<int> place = place_of(grid, c.rank);
  Topology part{.kind = MPI_CART};
  int color = 0;
  for (std::size_t i = 0; i < grid.dims.size(); ++i) {
    if (remain_dims[i]) {
      part.dims.push_back(grid.dims[i]);
      part.periods.push_back(grid.periods[i]);
    } else {
      color = color * grid.dims[i] + place[i];
    }
  }
  auto made = split(c, color, c.rank);
  set_grid_neighbours(part, made->rank);
  made->topology = std::make_shared<Topology>(std::move(part));
  make_inner(*made);
  *newcomm = publish(std::move(made));
}
void Cart_map(MPI_Comm comm, int ndims, const int* dims, const int*, int* newrank) {
  Comm& c = comm_of(comm);
  const std::int64_t size = product(listed(dims, ndims));
  require(size > 0 && size <= c.size(), MPI_ERR_DIMS, "the grid has more ranks than comm");
  *newrank = c.rank < size ? c.rank : MPI_UNDEFINED;
}

void Graph_create(
    MPI_Comm comm_old, int nnodes, const int* index, const int* edges, int, MPI_Comm* comm_graph) {
  require(nnodes >= 0, MPI_ERR_ARG, "nnodes is negative");
  Topology graph{.kind = MPI_GRAPH, .index = listed(index, nnodes)};
  if (nnodes > 0) graph.edges = listed(edges, index[nnodes - 1]);
  *comm_graph = publish(
      with_topology(comm_of(comm_old), nnodes, std::move(graph), [](Topology& made, int rank) {
        const auto [first, last] = edges_of(made, rank);
        made.sources.assign(made.edges.begin() + first, made.edges.begin() + last);
        made.destinations = made.sources;
      }));
}
void Graphdims_get(MPI_Comm comm, int* nnodes, int* nedges) {
  const Topology& graph = topology_of(comm, MPI_GRAPH);
  *nnodes = static_cast<int>(graph.index.size());
  *nedges = static_cast<int>(graph.edges.size());
}
void Graph_get(MPI_Comm comm, int maxindex, int maxedges, int* index, int* edges) {
  const Topology& graph = topology_of(comm, MPI_GRAPH);
  copy_out(graph.index, maxindex, index);
  copy_out(graph.edges, maxedges, edges);
}
void Graph_neighbors_count(MPI_Comm comm, int rank, int* nneighbors) {
  const auto [first, last] = edges_of(topology_of(comm, MPI_GRAPH), rank);
  *nneighbors = last - first;
}
void Graph_neighbors(MPI_Comm comm, int rank, int maxneighbors, int* neighbors) {
  const Topology& graph = topology_of(comm, MPI_GRAPH);
  const auto [first, last] = edges_of(graph, rank);
  copy_out({graph.edges.begin() + first, graph.edges.begin() + last}, maxneighbors, neighbors);
}
void Graph_map(MPI_Comm comm, int nnodes, const int*, const int*, int* newrank) {
  Comm& c = comm_of(comm);
  require(nnodes > 0 && nnodes <= c.size(), MPI_ERR_ARG, "the graph has more ranks than comm");
  *newrank = c.rank < nnodes ? c.rank : MPI_UNDEFINED;
}

namespace {
bool has_weights(const int* weights) { return weights != MPI_UNWEIGHTED; }
std::vector<int> weights_of(const int* weights, int count) {
  if (weights == MPI_UNWEIGHTED || weights == MPI_WEIGHTS_EMPTY) return {};
  return listed(weights, count);
}
}  // namespace

void Dist_graph_create_adjacent(MPI_Comm comm_old,
                                int indegree,
                                const int* sources,
                                const int* sourceweights,
                                int outdegree,
                                const int* destinations,
                                const int* destweights,
                                MPI_Info,
                                int,
                                MPI_Comm* comm_dist_graph) {
  Comm& old = comm_of(comm_old);
  require(indegree >= 0 && outdegree >= 0, MPI_ERR_ARG, "a degree is negative");
  Topology graph{.kind = MPI_DIST_GRAPH,
                 .sources = listed(sources, indegree),
                 .destinations = listed(destinations, outdegree),
                 .source_weights = weights_of(sourceweights, indegree),
                 .destination_weights = weights_of(destweights, outdegree),
                 .is_weighted = has_weights(sourceweights) || has_weights(destweights)};
  *comm_dist_graph =
      publish(with_topology(old, old.size(), std::move(graph), [](Topology&, int) {}));
}

// Each rank may pass edges between any two ranks. All ranks get all edges, and keep their own.
void Dist_graph_create(MPI_Comm comm_old,
                       int n,
                       const int* sources,
                       const int* degrees,
                       const int* destinations,
                       const int* weights,
                       MPI_Info,
                       int,
                       MPI_Comm* comm_dist_graph) {
  Comm& old = comm_of(comm_old);
  struct Edge {
    int source, destination, weight;
  };
  std::vector<Edge> own;
  for (int i = 0, k = 0; i < n; ++i) {
    for (int j = 0; j < degrees[i]; ++j, ++k) {
      const bool weighted = weights != MPI_UNWEIGHTED && weights != MPI_WEIGHTS_EMPTY;
      own.push_back({sources[i], destinations[k], weighted ? weights[k] : 1});
    }
  }
  const std::uint64_t count = own.size() * sizeof(Edge);
  std::vector<std::uint64_t> counts(static_cast<std::size_t>(old.size()));
  old.net->all_gather(scalar(count), counts);
  const std::vector<std::size_t> parts(counts.begin(), counts.end());
  std::vector<Edge> all(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}) /
                        sizeof(Edge));
  old.net->all_gather_v(ConstArrayView(own.data(), count, DType::kUInt8),
                        ArrayView(all.data(), all.size() * sizeof(Edge), DType::kUInt8),
                        {.counts = parts});
  Topology graph{.kind = MPI_DIST_GRAPH, .is_weighted = has_weights(weights)};
  for (const Edge& edge : all) {
    if (edge.destination == old.rank) {
      graph.sources.push_back(edge.source);
      graph.source_weights.push_back(edge.weight);
    }
    if (edge.source == old.rank) {
      graph.destinations.push_back(edge.destination);
      graph.destination_weights.push_back(edge.weight);
    }
  }
  *comm_dist_graph =
      publish(with_topology(old, old.size(), std::move(graph), [](Topology&, int) {}));
}
void Dist_graph_neighbors_count(MPI_Comm comm, int* indegree, int* outdegree, int* weighted) {
  const Topology& graph = topology_of(comm, MPI_DIST_GRAPH);
  *indegree = static_cast<int>(graph.sources.size());
  *outdegree = static_cast<int>(graph.destinations.size());
  *weighted = graph.is_weighted;
}
void Dist_graph_neighbors(MPI_Comm comm,
                          int maxindegree,
                          int* sources,
                          int* sourceweights,
                          int maxoutdegree,
                          int* destinations,
                          int* destweights) {
  const Topology& graph = topology_of(comm, MPI_DIST_GRAPH);
  copy_out(graph.sources, maxindegree, sources);
  copy_out(graph.destinations, maxoutdegree, destinations);
  if (sourceweights != MPI_UNWEIGHTED && sourceweights != MPI_WEIGHTS_EMPTY) {
    copy_out(graph.source_weights, maxindegree, sourceweights);
  }
  if (destweights != MPI_UNWEIGHTED && destweights != MPI_WEIGHTS_EMPTY) {
    copy_out(graph.destination_weights, maxoutdegree, destweights);
  }
}

}  // namespace hocket::mpi::call
