// Graphs: the work that a stream got while it was captured, which can be replayed.
#include "fake.h"

using namespace hocket::cuda;

struct CUgraph_st {
  std::vector<std::function<void()>> work;
};
struct CUgraphExec_st {
  std::vector<std::function<void()>> work;
};

namespace fake {
namespace {

Result instantiate(GraphExec* made, Graph graph, unsigned long long) {
  *made = new CUgraphExec_st{graph->work};
  return Result::kSuccess;
}
Result launch(GraphExec graph, Stream stream) {
  for (const auto& work : graph->work) {
    const Result result = enqueue(stream, work);
    if (result != Result::kSuccess) return result;
  }
  return Result::kSuccess;
}
Result exec_destroy(GraphExec graph) {
  delete graph;
  return Result::kSuccess;
}
Result destroy(Graph graph) {
  delete graph;
  return Result::kSuccess;
}

}  // namespace

Graph make_graph(std::vector<std::function<void()>> work) {
  return new CUgraph_st{std::move(work)};
}

std::vector<Entry> graph_functions() {
  return {entry("cuGraphInstantiateWithFlags", instantiate),
          entry("cuGraphLaunch", launch),
          entry("cuGraphExecDestroy", exec_destroy),
          entry("cuGraphDestroy", destroy)};
}

}  // namespace fake
