// The PMI-1 wire protocol as MPICH speaks it: each request and its reply.
#include "src/agent/pmi/pmi1_protocol.hpp"

#include <random>

#include <doctest/doctest.h>

namespace dlrun::agent {

namespace {

const Rank r0(0);
const Rank r1(1);

// Two ranks of this node; what the protocol says is collected.
struct Node {
  std::map<int, std::string> replies;
  std::string events;
  std::string exchanged_key;
  std::string exchanged_blob;
  Pmi1Protocol protocol;

  explicit Node(int nodes)
      : protocol({.kvs_name = "job-1",
                  .size = 2 * nodes,
                  .nodes = nodes,
                  .process_mapping = "(vector,(0,1,2))",
                  .local_ranks = {r0, r1}},
                 {.reply = [this](Rank r, const std::string& line) { replies[r.get()] += line; },
                  .connected = [this](Rank r) { events += fmt::format("connected {};", r); },
                  .finalized = [this](Rank r) { events += fmt::format("finalized {};", r); },
                  .aborted =
                      [this](Rank r, int code, const std::string& text) {
                        events += fmt::format("aborted {} {} {};", r, code, text);
                      },
                  .exchange =
                      [this](const std::string& key, std::string blob) {
                        exchanged_key = key;
                        exchanged_blob = std::move(blob);
                      },
                  .dropped =
                      [this](Rank r, const std::string& why) {
                        events += fmt::format("dropped {}: {};", r, why);
                      }}) {}

  std::string ask(Rank rank, std::string_view line) {
    replies.clear();
    protocol.line(rank, line);
    return replies[rank.get()];
  }
};

}  // namespace

TEST_CASE("init tells that the rank's MPI has found us") {
  Node node(1);
  CHECK(node.ask(r0, "cmd=init pmi_version=1 pmi_subversion=1") ==
        "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
  CHECK(node.events == "connected 0;");
}

TEST_CASE("a client of PMI-2 is refused and named") {
  Node node(1);
  CHECK(node.ask(r1, "cmd=init pmi_version=2 pmi_subversion=0") ==
        "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n");
  CHECK(node.events == "dropped 1: the rank's MPI asks for PMI version 2, this is version 1;");
}

TEST_CASE("facts about the job") {
  Node node(2);
  CHECK(node.ask(r0, "cmd=get_maxes") == "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024 rc=0\n");
  CHECK(node.ask(r0, "cmd=get_appnum") == "cmd=appnum appnum=0 rc=0\n");
  CHECK(node.ask(r0, "cmd=get_my_kvsname") == "cmd=my_kvsname kvsname=job-1 rc=0\n");
  CHECK(node.ask(r0, "cmd=get_universe_size") == "cmd=universe_size size=4 rc=0\n");
  CHECK(node.ask(r0, "cmd=get kvsname=job-1 key=PMI_process_mapping") ==
        "cmd=get_result rc=0 msg=success value=(vector,(0,1,2))\n");
  CHECK(node.ask(r0, "cmd=get kvsname=job-1 key=PMI_hwloc_xmlfile") ==
        "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
}

TEST_CASE("a pair is seen by all after the barrier of all ranks") {
  Node node(1);
  CHECK(node.ask(r0, "cmd=put kvsname=job-1 key=P0-card value=shm#17 with a blank") ==
        "cmd=put_result rc=0 msg=success\n");
  CHECK(node.ask(r1, "cmd=get kvsname=job-1 key=P0-card").starts_with("cmd=get_result rc=-1"));
  CHECK(node.ask(r1, "cmd=barrier_in").empty());
  CHECK(node.ask(r0, "cmd=barrier_in") == "cmd=barrier_out rc=0\n");
  CHECK(node.replies[1] == "cmd=barrier_out rc=0\n");
  CHECK(node.exchanged_key.empty());
  CHECK(node.ask(r1, "cmd=get kvsname=job-1 key=P0-card") ==
        "cmd=get_result rc=0 msg=success value=shm#17 with a blank\n");
}

TEST_CASE("across nodes the barrier waits for the exchange, whose pairs become visible") {
  Node node(2);
  node.ask(r0, "cmd=put kvsname=job-1 key=a value=1");
  node.ask(r1, "cmd=barrier_in");
  CHECK(node.ask(r0, "cmd=barrier_in").empty());
  CHECK(node.exchanged_key == "pmi1/0");
  CHECK(node.exchanged_blob == "a=1\n");
  node.protocol.exchanged("pmi1/7", {"b=2\n"});
  CHECK(node.replies[1].empty());
  node.protocol.exchanged("pmi1/0", {"a=1\n", "b=2\n"});
  CHECK(node.replies[1] == "cmd=barrier_out rc=0\n");
  CHECK(node.ask(r0, "cmd=get kvsname=job-1 key=b") == "cmd=get_result rc=0 msg=success value=2\n");
  node.ask(r0, "cmd=barrier_in");
  node.ask(r1, "cmd=barrier_in");
  CHECK(node.exchanged_key == "pmi1/1");
  CHECK(node.exchanged_blob.empty());
}

TEST_CASE("the ends of a rank") {
  Node node(1);
  CHECK(node.ask(r0, "cmd=finalize") == "cmd=finalize_ack rc=0\n");
  CHECK(node.ask(r1, "cmd=abort exitcode=7 error_msg=no").empty());
  CHECK(node.events == "finalized 0;aborted 1 7 no;");
}

TEST_CASE("spawn and name publishing are refused in the protocol's own words") {
  Node node(1);
  CHECK(node.ask(r0, "mcmd=spawn").empty());
  CHECK(node.ask(r0, "nprocs=1").empty());
  CHECK(node.ask(r0, "execname=a.out").empty());
  CHECK(node.ask(r0, "endcmd") == "cmd=spawn_result rc=-1 status=-1 msg=spawn_is_not_supported\n");
  CHECK(node.ask(r0, "cmd=publish_name service=x port=y") ==
        "cmd=publish_result rc=-1 msg=name_service_is_not_supported\n");
  CHECK(node.ask(r0, "cmd=lookup_name service=x") ==
        "cmd=lookup_result rc=-1 msg=name_service_is_not_supported\n");
}

TEST_CASE("keys and values that do not fit are refused") {
  Node node(1);
  const std::string refusal = "cmd=put_result rc=-1 msg=key_or_value_is_empty_or_too_long\n";
  CHECK(node.ask(r0, "cmd=put kvsname=job-1 key= value=1") == refusal);
  CHECK(node.ask(r0, "cmd=put kvsname=job-1 key=" + std::string(64, 'k') + " value=1") == refusal);
  CHECK(node.ask(r0, "cmd=put kvsname=job-1 key=k value=" + std::string(1024, 'v')) == refusal);
}

TEST_CASE("what is no request ends the rank's service with the text seen") {
  Node node(1);
  node.ask(r0, "GET / HTTP/1.1\r");
  node.ask(r1, "cmd=dance");
  CHECK(node.events ==
        "dropped 0: not a PMI-1 request: 'GET / HTTP/1.1';dropped 1: unknown PMI-1 request 'dance';");
}

TEST_CASE("random lines are answered or end the service") {
  std::mt19937 random(1);
  const std::string letters =
      "cmd=init putgetkvsname key value barrier_in abort exitcode=-9999999999 mcmd=spawn "
      "endcmd\x01\xff\n\r\t";
  Node node(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string line = i % 2 == 0 ? "cmd=" : "";
    for (auto length = random() % 40; length > 0; --length) {
      const std::size_t at = random() % letters.size();
      line += letters.substr(at, random() % 12);
    }
    node.events.clear();
    node.ask(Rank(static_cast<int>(random() % 2)), line);
  }
  node.ask(r0, "endcmd");
  CHECK(node.ask(r0, "cmd=get_appnum") == "cmd=appnum appnum=0 rc=0\n");
}

}  // namespace dlrun::agent
