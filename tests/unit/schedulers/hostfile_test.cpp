#include "schedulers/hostfile/hostfile.hpp"

#include <doctest/doctest.h>

#include "tests/unit/schedulers/world.hpp"

using namespace dlrun;

namespace {

Result<Allocation> nodes_of(std::string_view text) {
  return merge_entries(TRY(read_hostfile(text, "hosts")));
}

std::string file(std::string_view text) {
  return text_of(nodes_of(text));
}

std::string words(std::string_view text) {
  const auto entries = read_host_words(text);
  return entries ? text_of(merge_entries(*entries)) : "error: " + entries.error().text();
}

bool has(const std::string& text, std::string_view part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

MachineNames machine() {
  return {.names = {"n1", "n1.cluster"}, .addresses = {"203.0.113.254"}};
}

std::string warnings(std::string_view hosts) {
  return join(locality_warnings(merge_entries(*read_host_words(hosts))->nodes, machine()), "; ");
}

}  // namespace

TEST_CASE("the dialects") {
  CHECK(file("n1\nn2\n") == "n1:1 n2:1");
  CHECK(file("n1 slots=2\n\n# n9\nn2 slots = 4 max_slots=8 // spare\r\n") == "n1:2 n2:4");
  CHECK(file("n1:2\nn2:4 binding=rr") == "n1:2 n2:4");
  CHECK(file("n1 3\n\tn2\t2\n") == "n1:3 n2:2");
  CHECK(file("n[1-3] slots=8\n") == "n1:8 n2:8 n3:8");
  CHECK(words("a:2,b:3") == "a:2 b:3");
  CHECK(words("n[1-2,5]:2,x:1") == "n1:2 n2:2 n5:2 x:1");
  CHECK(words("a,b") == "a:1 b:1");
}

TEST_CASE("a count, or a name that stands again, asks for slots on all hosts") {
  const auto asked = [](std::string_view text) {
    std::string out;
    const auto found = nodes_of(text);  // lives as long as the loop
    for (const AllocatedNode& node : found->nodes)
      out += fmt::format("{} ", node.asked_slots ? std::to_string(*node.asked_slots) : "-");
    return out;
  };
  CHECK(asked("n1\nn2\n") == "- - ");
  CHECK(asked("n1 slots=1\nn2 slots=4\nn3\n") == "1 4 1 ");
  CHECK(asked("n1\nn2\nn2\n") == "1 2 ");
}

TEST_CASE("what a host has is said by gpus= and cpus=, and does not add up") {
  using Names = std::vector<std::string>;
  const Allocation nodes = nodes_of("n1 slots=2 gpus=3 cpus=64\nn2 gpus=0\nn1 slots=1 gpus=3\nn3\n").value();
  CHECK(nodes.nodes[0].slots == 3);
  CHECK(nodes.nodes[0].cpus == 64);
  CHECK(nodes.nodes[0].gpus == Names{"0", "1", "2"});
  CHECK(nodes.nodes[1].gpus == Names{});
  CHECK_FALSE(nodes.nodes[2].gpus.has_value());
  CHECK_FALSE(nodes.nodes[2].cpus.has_value());
  CHECK(merge_entries(*read_host_words("a:2,b:2 gpus=2"))->nodes[1].gpus == Names{"0", "1"});
  CHECK(has(file("n1 gpus=2\nn1 gpus=4\n"), "host n1 has gpus=4 here and 2 on line 1"));
  CHECK(has(file("n1 gpus=0,1\n"), "the number of GPUs, '0,1', is out of range [0, "));
  CHECK(has(file("n1 cpus=0\n"), "the number of cores, '0', is out of range [1, "));
}

TEST_CASE("addresses are whole names") {
  CHECK(file("10.0.0.1 slots=4\n10.0.0.2 slots=4\n") == "10.0.0.1:4 10.0.0.2:4");
  CHECK(words("[fe80::1]:2,[fe80::2]:3") == "fe80::1:2 fe80::2:3");
  CHECK(words("fe80::1,fe80::2") == "fe80::1:1 fe80::2:1");
  CHECK(has(words("[fe80::1]:2,fe80::2"), "write it as [fe80::2]:1"));
}

TEST_CASE("every spelling of a limit") {
  for (const char* name : {"max_slots", "max-slots", "slots_max", "slots-max"}) {
    CHECK(file(fmt::format("n1 {}=2\n", name)) == "n1:2");
    CHECK(has(file(fmt::format("n1 slots=4 {}=2\n", name)), "host n1 has 4 slots and max_slots=2"));
  }
}

TEST_CASE("lines of one host add up, and a copy that was not meant is told") {
  CHECK(file("n1\nn2\nn1\n") == "n1:2 n2:1");
  CHECK(nodes_of("n1\nn2\nn1\n")->warnings.empty());
  CHECK(file("n1 slots=2\nn1.cluster slots=3\n") == "n1:5");
  CHECK(has(join(nodes_of("n1 slots=2\nn2\nn1 slots=2\n")->warnings, ""), "lines 1, 3"));
  CHECK(file("n1.a slots=1\nn1.b slots=1\n") == "n1.a:1 n1.b:1");
  CHECK(has(file("n1\nn1.a\nn1.b\n"), "error: "));
}

TEST_CASE("what fits no dialect is an error with its place") {
  CHECK(has(file("w1 slots=8\nw2 lots=8\n"), "hosts:2:4"));
  CHECK(has(file("w1 lots=8\n"), "unknown word 'lots'"));
  CHECK(has(file("w1 lots=8\n"), "did you mean 'slots'?"));
  CHECK(has(file("192.168.0.11 Node1\n"), "hosts:1:14"));
  CHECK(has(file("192.168.0.11 Node1\n"), "/etc/hosts"));
  for (const char* text : {"n1 slots=\n",
                           "n1 slots\n",
                           "n1 slots=0\n",
                           "n1 slots=-1\n",
                           "n1 slots=4x\n",
                           "n1:\n",
                           "n1:0\n",
                           "=4\n",
                           "n1 = 4\n",
                           "n1 slots==4\n",
                           "n1 slots=1 slots=2\n",
                           "n1:2 slots=2\n",
                           "n[1-\n",
                           "n1,,n2\n",
                           "n1,\n",
                           "user@n1\n",
                           "n1 user=x\n",
                           "n1 port=22\n",
                           "n1 rank=0\n",
                           "n1 slots=99999999999\n",
                           "n[1-99999999999]\n",
                           "-n\n",
                           "",
                           "# none\n"})
    CHECK_MESSAGE(has(file(text), "error: "), text);
  for (const char* text : {"a:2,b", "a:0", "a:2 b:2", "a:", ":2", "a:x"})
    CHECK_MESSAGE(has(words(text), "--hosts"), text);
  for (const char* text :
       {"a]", "n[2-1]:8", "n[]", "user@n1", "-n", "a:2,b", "a:0", "a:2 b:2", "", "a=", "a,,b", "n[1-"})
    CHECK_MESSAGE(has(words(text), "\n  hint: "), text);
  for (const char* text : {"a]", "n[2-1]:8", "n[]", "user@n1", "-n", ""})
    CHECK_MESSAGE(has(words(text), "hint: write it as --hosts 'a:2,b:2' or --hosts 'n[1-4]:8'"), text);
}

TEST_CASE("--hosts takes what the manual says of it") {
  CHECK(words("n[01-02,8],rack[1-2]n[1-2]") == "n01:1 n02:1 n8:1 rack1n1:1 rack1n2:1 rack2n1:1 rack2n2:1");
  CHECK(words("n[1-2] slots=8 gpus=2 cpus=64") == "n1:8/64[0,1] n2:8/64[0,1]");
  CHECK(merge_entries(*read_host_words("a:2,b:1,a:3"))->nodes.size() == 2);
  CHECK(merge_entries(*read_host_words("a:2,b:1,a:3"))->nodes[0].slots == 5);
}

TEST_CASE("public and private addresses as two columns") {
  const auto found = nodes_of("203.0.113.1 10.0.0.1 slots=2\n203.0.113.2 10.0.0.2 slots=2\n");
  CHECK(text_of(found) == "203.0.113.1:2 203.0.113.2:2");
  CHECK(found->nodes[0].address == "10.0.0.1");
  CHECK(nodes_of("ec2-1.example address=10.0.0.1\n")->nodes[0].address == "10.0.0.1");
  CHECK(has(file("10.0.0.1 203.0.113.1\n"), "the public address comes first"));
  CHECK(has(file("a 10.0.0.1\nb 10.0.0.1\n"), "hosts a and b have the same private address 10.0.0.1"));
  CHECK(has(file("n[1-2] 10.0.0.1\n"), "one address for several hosts"));
}

TEST_CASE("public and private addresses as two files") {
  auto entries = *read_hostfile("a slots=2\nb slots=2\n", "public");
  REQUIRE(add_addresses(entries, *read_hostfile("10.0.0.1\n10.0.0.2\n", "private")));
  CHECK(merge_entries(entries)->nodes[1].address == "10.0.0.2");
  auto shorter = *read_hostfile("a\nb\n", "public");
  CHECK(has(add_addresses(shorter, *read_hostfile("10.0.0.1\n", "private")).error().text(),
            "public names 2 hosts and private names 1 addresses"));
}

TEST_CASE("an empty address stops, and the listed name is the fallback") {
  CHECK(has(file("ddp-0.ddp.ml-dev.svc.cluster.local address= slots=2\n"), "error: "));
  CHECK(has(file("ddp-0.ddp.ml-dev.svc.cluster.local address=\n"), "option 'address' has no value"));
  const auto found =
      nodes_of("ddp-0.ddp.ml-dev.svc.cluster.local slots=2\nddp-1.ddp.ml-dev.svc.cluster.local slots=2\n");
  REQUIRE(found);
  CHECK(found->nodes.size() == 2);
  CHECK(found->nodes[0].host.get() == "ddp-0.ddp.ml-dev.svc.cluster.local");
  CHECK_FALSE(found->nodes[0].address.has_value());
}

TEST_CASE("two names of this machine are told") {
  CHECK(has(warnings("localhost:8,203.0.113.254:8"), "localhost, 203.0.113.254 all name this machine"));
  CHECK(has(warnings("localhost:1,n2:1"), "localhost is listed with other hosts"));
  CHECK(warnings("n1:1,n2:1").empty());
  CHECK(warnings("localhost:4").empty());
}

TEST_CASE("a host file overrides the scheduler, and excludes other choices of nodes") {
  World world;
  world.set("SLURM_JOB_ID", "7");
  const SystemClock clock;
  const auto ask = [&](NamedHosts named, std::string_view wanted) {
    const DiscoveryContext context{world.environment,          world.commands,   clock,
                                   [] { return FoundGpus{}; }, std::move(named), machine};
    return find_allocation(context, wanted);
  };
  const auto found = ask({.host_words = "n1:2,n2:2"}, "auto");
  CHECK(text_of(found) == "n1:2 n2:2");
  CHECK(has(join(found->evidence, "; "), "SLURM_JOB_ID"));
  CHECK(has(text_of(ask({.host_words = "n1:2"}, "slurm")), "exclude each other: both set the nodes"));
  CHECK(has(text_of(ask({}, "hostfile")), "no host file is named"));
  CHECK(has(text_of(ask({.private_hostfile = "x"}, "auto")), "no host file is named"));
  CHECK(has(text_of(ask({.hostfile = "/nonexistent/hosts"}, "auto")), "/nonexistent/hosts"));
}
