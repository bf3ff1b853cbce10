// The PMI-1 service on its sockets, with shell scripts as ranks: good clients, and such as send rubbish.
#include <doctest/doctest.h>

#include "tests/unit/mpi/world.hpp"

namespace dlrun::test {

namespace {

WorldEnd run_script(std::vector<int> node_of_rank, const std::string& script) {
  WorldSpec spec;
  spec.mpi = plan::MpiProtocol::pmi1;
  spec.node_of_rank = std::move(node_of_rank);
  spec.argv = {"bash", "-c", script};
  return run_world(spec);
}

// ask LINE: sends a request and reads its reply.
const std::string client = R"sh(ask() { echo "$1" >&$PMI_FD; read -r reply <&$PMI_FD; }
ask 'cmd=init pmi_version=1 pmi_subversion=1'
)sh";

}  // namespace

TEST_CASE("two nodes hand each other their values in a barrier") {
  const WorldEnd end = run_script({0, 1}, client + R"sh(
ask "cmd=put kvsname=x key=card$PMI_RANK value=value-of-$PMI_RANK"
ask 'cmd=barrier_in'
ask "cmd=get kvsname=x key=card$((1 - PMI_RANK))"
echo "$PMI_RANK of $PMI_SIZE: $reply"
ask 'cmd=finalize'
)sh");
  CHECK(end.output.find("0 of 2: cmd=get_result rc=0 msg=success value=value-of-1") != std::string::npos);
  CHECK(end.output.find("1 of 2: cmd=get_result rc=0 msg=success value=value-of-0") != std::string::npos);
  CHECK(end.exchanges == 1);
  for (const RankEnd& rank : end.ranks) CHECK(rank.finalized);
}

TEST_CASE("the last words of a rank are heard even where it is gone at once") {
  const WorldEnd end = run_script({0}, client + "echo 'cmd=abort exitcode=9' >&$PMI_FD\nexit 0\n");
  CHECK(end.abort_code == 9);
  CHECK(end.abort_reason == "called MPI_Abort with code 9");
}

TEST_CASE("MPICH 4.2 aborts with a text, which it prints as well") {
  const WorldEnd end = run_script(
      {0}, client +
               "echo 'cmd=abort exitcode=7 message=application called MPI_Abort(x, 7) - process 0' "
               ">&$PMI_FD\nexit 0\n");
  CHECK(end.abort_code == 7);
  CHECK(end.abort_reason == "called MPI_Abort with code 7");
}

TEST_CASE("an abort code that no process can exit with is cut as the system would cut it, and never 0") {
  const WorldEnd cut = run_script({0}, client + "echo 'cmd=abort exitcode=741986063' >&$PMI_FD\nexit 0\n");
  CHECK(cut.abort_code == 15);
  CHECK(cut.abort_reason == "called MPI_Abort with code 741986063");
  const WorldEnd zero = run_script({0}, client + "echo 'cmd=abort exitcode=256' >&$PMI_FD\nexit 0\n");
  CHECK(zero.abort_code == 1);
}

TEST_CASE("rubbish ends the service of that rank, which the log says, and nothing else") {
  const WorldEnd end = run_script({0, 0}, client + R"sh(
if [ $PMI_RANK = 0 ]; then ask 'cmd=finalize'; touch $TMPDIR/done; exit 0; fi
until [ -e $TMPDIR/done ]; do sleep 0.01; done
echo 'GET / HTTP/1.1' >&$PMI_FD
read -r reply <&$PMI_FD || echo 'no more service'
exit 0
)sh");
  CHECK(end.log == "rank 1: PMI-1 service ended: not a PMI-1 request: 'GET / HTTP/1.1'\n");
  CHECK(end.output.find("no more service") != std::string::npos);
  CHECK(end.ranks[0].finalized);
  CHECK(!end.ranks[1].finalized);
}

TEST_CASE("a rank that asks and never reads is served no longer") {
  const WorldEnd end = run_script({0}, client + "yes cmd=get_maxes >&$PMI_FD\nexit 0\n");
  CHECK(end.log == "rank 0: PMI-1 service ended: it does not read the replies to its PMI-1 requests\n");
}

TEST_CASE("a line without an end does not grow for ever") {
  const WorldEnd end = run_script({0}, client + "head -c 1000000 /dev/zero | tr '\\0' x >&$PMI_FD\nexit 0\n");
  CHECK(end.log.starts_with("rank 0: PMI-1 service ended: not a PMI-1 request: 'xxxx"));
}

}  // namespace dlrun::test
