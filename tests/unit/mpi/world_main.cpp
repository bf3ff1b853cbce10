// mpi-world PROTOCOL NODES COMMAND...: runs a command as a world of ranks under an MpiService alone, to time
// a start or to look at an MPI without the rest of dlrun. NODES is the node of each rank: 0,0,1.
#include <cstdio>
#include <cstdlib>

#include "src/base/strings.hpp"
#include "tests/unit/mpi/world.hpp"

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: mpi-world pmi1|pmix|none 0,0,1 COMMAND [ARGUMENT]...\n");
    return 64;
  }
  using dlrun::plan::MpiProtocol;
  const std::string protocol = argv[1];
  dlrun::test::WorldSpec spec;
  spec.mpi = protocol == "pmix"   ? MpiProtocol::pmix
             : protocol == "pmi1" ? MpiProtocol::pmi1
                                  : MpiProtocol::none;
  for (const std::string& node : dlrun::split(argv[2], ','))
    spec.node_of_rank.push_back(std::atoi(node.c_str()));
  spec.argv.assign(argv + 3, argv + argc);
  const dlrun::test::WorldEnd end = dlrun::test::run_world(spec);
  std::printf("%s%s%.3f s, %d exchanges, abort code %d\n", end.output.c_str(), end.log.c_str(), end.seconds,
              end.exchanges, end.abort_code);
  int worst = 0;
  for (std::size_t r = 0; r < end.ranks.size(); ++r) {
    const auto& rank = end.ranks[r];
    std::printf("rank %zu: code %d%s%s\n", r, rank.code, rank.connected ? ", connected" : "",
                rank.finalized ? ", finalized" : "");
    if (rank.code != 0) worst = rank.code;
  }
  return worst;
}
