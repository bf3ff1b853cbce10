#include "schedulers/node_identity.hpp"

#include <doctest/doctest.h>

using namespace dlrun;

namespace {

std::vector<HostName> hosts_of(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

// The position found, -1 for none, -2 for an error.
int found(const std::vector<std::string>& nodes, std::string_view name) {
  const auto result = NodeFinder(hosts_of(nodes)).find(name);
  if (!result) return -2;
  return *result ? static_cast<int>(**result) : -1;
}

int found_machine(const std::vector<std::string>& nodes, const MachineNames& machine) {
  const auto result = find_machine(NodeFinder(hosts_of(nodes)), machine);
  if (!result) return -2;
  return *result ? static_cast<int>(**result) : -1;
}

}  // namespace

TEST_CASE("a short name and a full one are the same node") {
  CHECK(found({"n1.c.example", "n2.c.example"}, "n2") == 1);
  CHECK(found({"n1", "n2"}, "n2.c.example") == 1);
  CHECK(found({"n1.c", "n2.c"}, "n2.c.example") == 1);
  CHECK(found({"N1.C.Example"}, "n1.c.example.") == 0);
  CHECK(found({"n1", "n11"}, "n1") == 0);
  CHECK(found({"n11", "n1.b"}, "n1") == 1);
}

TEST_CASE("names of different domains are never one node because their first labels are equal") {
  CHECK(found({"n1.a.example"}, "n1.b.example") == -1);
  CHECK(found({"n1.a.example", "n1.b.example"}, "n1.b.example") == 1);
}

TEST_CASE("a short name that may mean several nodes is an error that shows them") {
  const auto result = NodeFinder(hosts_of({"n1.a.example", "n2", "n1.b.example"})).find("n1");
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().kind == ErrorKind::allocation);
  CHECK(result.error().text() ==
        "host n1 may be any of n1.a.example, n1.b.example\n  hint: use the full name");
  CHECK(found({"n1", "n1.a.example"}, "n1") == 0);  // spelled exactly so
}

TEST_CASE("an address is never shortened at a dot") {
  CHECK(found({"10.0.0.1", "10.0.0.2"}, "10.0.0.2") == 1);
  CHECK(found({"10.0.0.1", "10.0.0.2"}, "10.0.0.3") == -1);
  CHECK(found({"10.0.0.1", "10.1.0.2"}, "10") == -1);
  CHECK(first_label("10.0.0.1") == "10.0.0.1");
  CHECK(first_label("fe80::1") == "fe80::1");
  CHECK(first_label("1.2.3.089") == "1.2.3.089");
}

TEST_CASE("a machine that calls itself by another network's name is the only node with its first label") {
  const MachineNames machine{.names = {"node2527.cluster.os.example"}, .addresses = {}};
  CHECK(found_machine({"node2527.cluster.vsc.example", "node2532.cluster.vsc.example"}, machine) == 0);
  CHECK(found_machine({"node2527.a.example", "node2527.b.example"}, machine) == -1);
  CHECK(found_machine({"node2532.cluster.vsc.example"}, machine) == -1);
}

TEST_CASE("a machine is found by any of its names, then by its addresses") {
  const MachineNames machine{.names = {"n2", "n2.c.example"}, .addresses = {"10.0.0.2", "192.168.0.2"}};
  CHECK(found_machine({"10.0.0.1", "10.0.0.2"}, machine) == 1);
  CHECK(found_machine({"n1.c.example", "n2.c.example"}, machine) == 1);
  CHECK(found_machine({"n2.c.example", "n2.d.example"}, machine) == -2);  // as n2 it may be both
  CHECK(found_machine({"n1", "n3"}, machine) == -1);
}

TEST_CASE("which names are this machine without doubt") {
  const MachineNames machine{.names = {"n2.c.example"}, .addresses = {"10.0.0.2"}};
  for (const char* name : {"localhost", "localhost.localdomain", "127.0.0.1", "127.0.1.1", "::1", "n2",
                           "n2.c.example", "10.0.0.2"})
    CHECK(is_machine(name, machine));
  for (const char* name : {"n2.d.example", "n1", "10.0.0.1", "localhost1", "n", "128.0.0.1"})
    CHECK_FALSE(is_machine(name, machine));
}

TEST_CASE("spellings of a list that are the same node") {
  using Positions = std::vector<std::size_t>;
  CHECK(same_nodes(hosts_of({"a", "b", "a", "a"})).value() == Positions{0, 1, 0, 0});
  CHECK(same_nodes(hosts_of({"n1", "n1.c.example", "n2.c.example", "n2"})).value() == Positions{0, 0, 2, 2});
  CHECK(same_nodes(hosts_of({"n1.a", "n1.b"})).value() == Positions{0, 1});
  CHECK(same_nodes(hosts_of({"n1.a", "n1.a.b", "n1"})).value() == Positions{0, 0, 0});
  CHECK(same_nodes(hosts_of({"10.0.0.1", "10.0.0.10", "10.0.0.1"})).value() == Positions{0, 1, 0});
  const auto doubtful = same_nodes(hosts_of({"n1.a", "n1", "n1.b.c"}));
  REQUIRE_FALSE(doubtful.has_value());
  CHECK(doubtful.error().text() == "host n1 may be n1.a or n1.b.c\n  hint: use one spelling per node");
}

TEST_CASE("kinds of addresses") {
  for (const char* name :
       {"10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "fd00::1"})
    CHECK(is_private_address(name));
  for (const char* name :
       {"172.32.0.1", "203.0.113.5", "2001:db8::1", "100.128.0.1", "ten.0.0.1", "1.2.3.089"})
    CHECK_FALSE(is_private_address(name));
}

TEST_CASE("this machine has a name, and it is itself") {
  const MachineNames machine = this_machine();
  REQUIRE_FALSE(machine.names.empty());
  CHECK(is_machine(machine.names.front(), machine));
}
