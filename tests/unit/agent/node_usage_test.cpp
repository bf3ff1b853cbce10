// How busy a node is, from what the kernel tells.
#include "src/agent/node_usage.hpp"

#include <doctest/doctest.h>

using namespace dlrun;
using namespace dlrun::agent;

namespace {

NodeCounters at(const char* cpu, const char* received) {
  return read_counters(std::string("cpu  ") + cpu + " 0 0\ncpu0 1 2 3\n",
                       std::string("Inter-|   Receive\n face |bytes\n    lo: 9 0 0 0 0 0 0 0 9 0\n  eth0: ") +
                           received + " 1 0 0 0 0 0 0 500 1\n",
                       "MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable: 400 kB\n");
}

}  // namespace

TEST_CASE("processors, network and memory between two looks") {
  const Json usage =
      usage_between(at("10 0 10 70 10 0 0 0", "1000"), at("40 0 20 120 20 0 0 0", "3000"), Seconds(2));
  CHECK(usage.at("cpu") == doctest::Approx(0.4));
  CHECK(usage.at("received_per_second") == doctest::Approx(1000));
  CHECK(usage.at("sent_per_second") == doctest::Approx(0));
  CHECK(usage.at("memory_used") == 600 * 1024);
  CHECK(usage.at("memory_total") == 1000 * 1024);
}

TEST_CASE("what the kernel does not tell is null") {
  const NodeCounters none = read_counters("", "", "");
  for (const Json& value : usage_between(none, none, Seconds(1))) CHECK(value.is_null());
  // Counters that went back, as after an interface was replaced.
  CHECK(usage_between(at("1 0 0 9 0 0 0 0", "900"), at("2 0 0 9 0 0 0 0", "100"), Seconds(1))
            .at("received_per_second")
            .is_null());
}

TEST_CASE("this machine has processors and memory") {
  NodeUsageMeter meter;
  CHECK(meter.measure().at("memory_total") > 0);
}
