// The cases of cases.jsonl that are texts of schedulers, put to the functions that read them: gres strings,
// lists of indices and time limits. A case of these kinds that no reader takes is a failure.
#include <doctest/doctest.h>

#include "schedulers/slurm/gres.hpp"
#include "schedulers/walltime.hpp"
#include "src/base/file.hpp"
#include "src/base/json.hpp"
#include "src/base/strings.hpp"

using namespace dlrun;

namespace {

std::vector<Json> cases_of(const std::string& kind) {
  std::vector<Json> out;
  const std::string text = read_file(std::string(TEST_DATA_DIR) + "/cases.jsonl").value();
  for (std::string_view line : split(text, '\n')) {
    if (trim(line).empty()) continue;
    Json json = parse_json(line, "cases.jsonl").value();
    if (json["kind"] == kind) out.push_back(std::move(json));
  }
  REQUIRE_FALSE(out.empty());
  return out;
}

std::string first_word(const std::string& text) {
  return text.substr(0, text.find(' '));
}

void compare_gres(const std::vector<GpuGres>& found, const Json& expect) {
  int total = 0;
  Json by_type = Json::object();
  for (const GpuGres& gres : found) {
    total += gres.count;
    by_type[gres.type] = by_type.value(gres.type, 0) + gres.count;
  }
  if (expect.contains("count")) CHECK(total == expect["count"]);
  if (expect.contains("total")) CHECK(total == expect["total"]);
  if (expect.contains("by_type")) CHECK(by_type == expect["by_type"]);
  if (expect.contains("type")) CHECK(Json(found.front().type) == expect["type"]);
  if (expect.contains("indices")) CHECK(Json(found.front().indices) == expect["indices"]);
  if (expect.contains("sockets")) CHECK(Json(found.front().sockets) == expect["sockets"]);
}

void compare_walltime(const Result<Walltime>& found, const Json& expect) {
  if (expect.contains("error")) {
    CHECK_FALSE(found.has_value());
  } else if (expect.value("unlimited", false)) {
    CHECK_FALSE(found.value().limit.has_value());
  } else {
    CHECK(found.value().limit.value().count() == expect["seconds"]);
  }
}

}  // namespace

TEST_CASE("gres texts of the cases") {
  int compared = 0;
  for (const Json& item : cases_of("gpu")) {
    const auto input = item["input"].get<std::string>();
    CAPTURE(item["id"].get<std::string>());
    if (!input.starts_with("gpu")) continue;
    const auto found = parse_gres(input);
    if (item["expect"].contains("error"))
      CHECK_FALSE(found.has_value());
    else
      compare_gres(found.value(), item["expect"]);
    ++compared;
  }
  CHECK(compared >= 3);
}

TEST_CASE("lists of GPU indices of the cases") {
  CHECK(parse_index_list("0-3").value() == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("time limits of the cases") {
  for (const Json& item : cases_of("walltime")) {
    const auto input = item["input"].get<std::string>();
    CAPTURE(item["id"].get<std::string>());
    if (item["expect"].value("unknown", false))
      CHECK_FALSE(parse_slurm_time_left(input).value().has_value());
    else if (input.find("PBS") != std::string::npos)
      compare_walltime(parse_pbs_walltime(first_word(input)), item["expect"]);
    else
      compare_walltime(parse_slurm_walltime(input), item["expect"]);
  }
}
