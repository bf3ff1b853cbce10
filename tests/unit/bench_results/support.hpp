// A bench.json as `dlrun bench` writes it, small enough to be read here.
#pragma once

#include <doctest/doctest.h>

#include "src/bench/results/cells.hpp"

namespace dlrun::test {

// Whether braces around one value are a list or the value itself, compilers see in two ways.
inline Json as_list(Json value) {
  return value.is_array() ? value : Json::array({std::move(value)});
}

inline Json bench_json(Json axes, Json points, const char* mode = "rate") {
  return {{"schema", 1},
          {"name", "flowers"},
          {"created", "2026-11-30T01:00:00Z"},
          {"dlrun", "0.1.0"},
          {"framework", "builtin"},
          {"mode", mode},
          {"unit", "images/s"},
          {"axes", as_list(std::move(axes))},
          {"machine", {{"cpu", "EPYC 7742"}, {"gpu", nullptr}, {"host_count", 4}}},
          {"points", as_list(std::move(points))}};
}

inline Json done(Json values, double rate, int repeat = 0, int ranks = 1) {
  return {{"id", "0001"},         {"values", std::move(values)},
          {"repeat", repeat},     {"ranks", ranks},
          {"status", "done"},     {"why", nullptr},
          {"run", "points/0001"}, {"rate", rate}};
}

inline Json failed(Json values, const char* status, const char* why) {
  return {{"id", "0002"},     {"values", std::move(values)},
          {"repeat", 0},      {"ranks", nullptr},
          {"status", status}, {"why", why},
          {"run", nullptr},   {"rate", nullptr}};
}

inline bench::results::Bench bench_of(const Json& json) {
  const auto bench = bench::results::parse_bench(json, "bench.json");
  REQUIRE_MESSAGE(bench.has_value(), (bench ? std::string() : bench.error().text()));
  return *bench;
}

}  // namespace dlrun::test
