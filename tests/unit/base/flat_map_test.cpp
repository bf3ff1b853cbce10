#include "src/base/flat_map.hpp"

#include <string>

#include <doctest/doctest.h>

using namespace dlrun;

TEST_CASE("a flat map is sorted by keys, each of which it has once") {
  FlatMap<std::string, int> map{{"b", 2}, {"a", 1}, {"b", 3}};
  map["c"] = 4;
  CHECK_FALSE(map.emplace("a", 9).second);
  std::string seen;
  for (const auto& [key, value] : map) seen += key + std::to_string(value);
  CHECK(seen == "a1b2c4");
  CHECK(map.at("c") == 4);
  CHECK_THROWS_AS((void)map.at("d"), std::out_of_range);
}

TEST_CASE("entries leave a flat map by key and by condition, and another's come where none is") {
  FlatMap<std::string, int> map{{"a", 1}, {"b", 2}, {"c", 3}};
  CHECK(map.erase("b") == 1);
  CHECK(map.erase("b") == 0);
  map.merge({{"c", 9}, {"d", 4}});
  CHECK(map == FlatMap<std::string, int>{{"a", 1}, {"c", 3}, {"d", 4}});
  map.erase_if([](const auto& entry) { return entry.second > 2; });
  CHECK(map.contains("a"));
  CHECK(map.find("d") == map.end());
  CHECK(map.size() == 1);
}
