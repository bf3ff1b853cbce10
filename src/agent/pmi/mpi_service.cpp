#include "src/agent/pmi/mpi_service.hpp"

#include "src/agent/pmi/native_service.hpp"
#include "src/agent/pmi/pmi1_service.hpp"
#include "src/agent/pmi/pmix_service.hpp"

namespace dlrun::agent {

namespace {

// What a process that exits with `code` would show, and never 0: MPICH aborts with numbers like 741986063 for
// faults of its own.
int exit_code_of(int code) {
  const int shown = code & 0xff;
  return shown == 0 ? 1 : shown;
}

// MPICH sends no text, Open MPI "N/A" unless the program has given one.
std::string abort_reason(int code, const std::string& said) {
  const std::string reason = fmt::format("called MPI_Abort with code {}", code);
  return said.empty() || said == "N/A" ? reason : reason + ": " + said;
}

// Fences and barriers are of all nodes: one without ranks would never answer.
Result<void> check_shape(const plan::NodeSlice& slice) {
  const auto nodes = static_cast<int>(slice.plan.nodes.size());
  std::vector<int> ranks(slice.plan.nodes.size(), 0);
  for (const int node : slice.node_of_rank) {
    if (node < 0 || node >= nodes)
      return fail(ErrorKind::internal, "a rank is on node {} of a plan with {} nodes", node, nodes);
    ++ranks[static_cast<std::size_t>(node)];
  }
  for (const plan::NodePlan& node : slice.plan.nodes)
    if (ranks[static_cast<std::size_t>(node.index.get())] == 0)
      return fail(
          Error{.kind = ErrorKind::input,
                .what = fmt::format("{} has no rank, and every node of an MPI job needs one", node.host),
                .hint = "use fewer nodes, or --mpi none"});
  return {};
}

}  // namespace

void apply(const MpiBootstrap& bootstrap, Environment& environment) {
  for (const auto& [name, value] : bootstrap.set) environment.set(name, value);
  for (const auto& [name, value] : bootstrap.defaults)
    if (!environment.find(name)) environment.set(name, value);
}

Result<std::unique_ptr<MpiService>> make_mpi_service(const plan::NodeSlice& slice, const Environment& own,
                                                     const std::string& scratch, EventLoop& loop,
                                                     MpiService::Callbacks callbacks) {
  if (slice.plan.mpi == plan::MpiProtocol::none) return nullptr;
  if (slice.plan.mpi == plan::MpiProtocol::native)
    return make_engine_service(slice, own, std::move(callbacks));
  TRY(check_shape(slice));
  callbacks.aborted = [tell = std::move(callbacks.aborted)](Rank rank, int code, const std::string& said) {
    tell(rank, exit_code_of(code), abort_reason(code, said));
  };
  if (slice.plan.mpi == plan::MpiProtocol::pmi1) return make_pmi1_service(slice, loop, std::move(callbacks));
  return make_pmix_service(slice, scratch, loop, std::move(callbacks));
}

}  // namespace dlrun::agent
