#include "src/run/attempts.hpp"

#include <doctest/doctest.h>

#include "src/base/exit_code.hpp"

using namespace dlrun;
using namespace dlrun::job;

namespace {

Outcome rank_failed(const std::string& host, int code = 1) {
  Outcome out;
  out.exit_code = code;
  out.first_failure = FirstFailure{.rank = Rank(0),
                                   .role = "worker",
                                   .host = host,
                                   .code = code,
                                   .reason = {},
                                   .last_lines = {},
                                   .log_path = {}};
  return out;
}

Outcome node_lost(const std::string& host) {
  Outcome out;
  out.exit_code = to_int(ExitCode::lost);
  out.first_failure = FirstFailure{
      .rank = {}, .role = {}, .host = host, .code = 71, .reason = {}, .last_lines = {}, .log_path = {}};
  out.bad_hosts = {host};
  return out;
}

Allocation five() {
  Allocation out;
  for (int i = 1; i <= 5; ++i)
    out.nodes.push_back({.host = HostName(fmt::format("n{}", i)), .cpus = {}, .gpus = {}});
  return out;
}

std::vector<std::string> hosts(const Result<Allocation>& allocation) {
  std::vector<std::string> out;
  for (const AllocatedNode& node : allocation.value().nodes) out.push_back(node.host.get());
  return out;
}

}  // namespace

TEST_CASE("a lost node is left out, and the spare takes its place") {
  Attempts attempts(2, 4);
  CHECK(attempts.should_retry(node_lost("n2")));
  CHECK(hosts(attempts.without_bad_nodes(five())) == std::vector<std::string>{"n1", "n3", "n4", "n5"});
}

TEST_CASE("without a spare it stops rather than run smaller") {
  Attempts attempts(5, 4);
  CHECK(attempts.should_retry(node_lost("n2")));
  CHECK(attempts.should_retry(node_lost("n3")));
  const auto left = attempts.without_bad_nodes(five());
  REQUIRE_FALSE(left.has_value());
  CHECK(left.error().kind == ErrorKind::lost);
  CHECK(
      left.error().what ==
      "there is no spare node for another attempt: the run needs 4, and without n2, n3 the allocation has 3");
}

TEST_CASE("a node whose ranks fail twice in a row is left out where there is a spare") {
  Attempts attempts(9, 4);
  CHECK(attempts.should_retry(rank_failed("n1")));
  CHECK(attempts.left_out(five()).empty());
  CHECK(attempts.should_retry(rank_failed("n2")));
  CHECK(attempts.left_out(five()).empty());
  CHECK(attempts.should_retry(rank_failed("n2")));
  CHECK(attempts.left_out(five()) == std::set<std::string>{"n2"});
}

TEST_CASE("without a spare a node whose ranks fail is tried again as often as retries say") {
  Attempts attempts(9, 5);
  for (int i = 0; i < 9; ++i) {
    CHECK(attempts.should_retry(rank_failed("n2")));
    CHECK(attempts.left_out(five()).empty());
    CHECK(hosts(attempts.without_bad_nodes(five())).size() == 5);
  }
  CHECK_FALSE(attempts.should_retry(rank_failed("n2")));
}

TEST_CASE("a lost node takes the spare before one whose ranks fail") {
  Attempts attempts(9, 4);
  CHECK(attempts.should_retry(rank_failed("n2")));
  CHECK(attempts.should_retry(rank_failed("n2")));
  CHECK(attempts.should_retry(node_lost("n5")));
  CHECK(hosts(attempts.without_bad_nodes(five())) == std::vector<std::string>{"n1", "n2", "n3", "n4"});
}

TEST_CASE("retries are counted") {
  Attempts attempts(1, 1);
  CHECK(attempts.should_retry(rank_failed("n1")));
  CHECK_FALSE(attempts.should_retry(rank_failed("n1")));
  CHECK_FALSE(Attempts(0, 1).should_retry(rank_failed("n1")));
}

TEST_CASE("what another attempt cannot mend is over") {
  Attempts attempts(3, 1);
  Outcome interrupted = rank_failed("n1");
  interrupted.interrupted_by = 15;
  CHECK_FALSE(attempts.should_retry(interrupted));
  CHECK_FALSE(attempts.should_retry(Outcome{}));
  for (const ExitCode code : {ExitCode::again, ExitCode::input, ExitCode::io})
    CHECK_FALSE(attempts.should_retry(rank_failed("n1", to_int(code))));
}
