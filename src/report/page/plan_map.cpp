#include "src/report/page/plan_map.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "src/base/json.hpp"
#include "src/base/strings.hpp"

namespace dlrun::report {
namespace {

constexpr const char* kWhere = "plan.json";

const Json& at(const Json& object, const char* name) {
  static const Json null;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() ? *found : null;
}

// null: not told; "": none.
Json gpus_text(const Json& rank) {
  const auto names = field<std::vector<std::string>>(rank, "gpus", kWhere);
  return names ? Json(join(*names, ",")) : Json(nullptr);
}

struct RankEnd {
  Json processors, end, code;
};

std::map<int, RankEnd> ends_by_rank(const Json& ends) {
  std::map<int, RankEnd> out;
  for (const Json& end : ends) {
    const auto rank = field<int>(end, "rank", "record.json");
    if (!rank) continue;
    const auto cores = field<std::vector<int>>(end, "processors", "record.json");
    out[*rank] = {cores && !cores->empty() ? Json(ranges_of(*cores)) : Json(nullptr), at(end, "end"),
                  at(end, "code")};
  }
  return out;
}

// Its place in the list, which grows by names that are new.
std::size_t index_of(const std::string& name, std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) names.push_back(name);
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

Json rank_json(const Json& rank, const std::map<int, RankEnd>& ends, std::vector<std::string>& roles) {
  const int number = field<int>(rank, "rank", kWhere).value_or(-1);
  const auto end = ends.find(number);
  const RankEnd how = end == ends.end() ? RankEnd{} : end->second;
  const bool well = how.code.is_number_integer() && how.code == 0;
  return {number,
          index_of(field<std::string>(rank, "role", kWhere).value_or(""), roles),
          gpus_text(rank),
          how.processors,
          well ? Json(nullptr) : how.end,
          how.code};
}

}  // namespace

std::string ranges_of(const std::vector<int>& numbers) {
  std::string out;
  for (std::size_t first = 0, last = 0; first < numbers.size(); first = last + 1) {
    for (last = first; last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1;) ++last;
    if (!out.empty()) out += ',';
    out +=
        last == first ? std::to_string(numbers[first]) : fmt::format("{}-{}", numbers[first], numbers[last]);
  }
  return out;
}

Json plan_map_json(const Json& plan, const Json& ends, const PageLimits& limits) {
  const Json &nodes = at(plan, "nodes"), &ranks = at(plan, "ranks");
  if (!nodes.is_array() || !ranks.is_array()) return nullptr;
  const bool all = ranks.size() <= limits.ranks;
  const auto how = all ? ends_by_rank(ends) : std::map<int, RankEnd>();
  std::vector<std::vector<Json>> of_node(nodes.size());
  std::vector<std::size_t> counts(nodes.size());
  std::vector<std::string> roles;
  for (const Json& rank : ranks) {
    const auto node = field<std::size_t>(rank, "node", kWhere);
    if (!node || *node >= nodes.size()) continue;
    ++counts[*node];
    if (all) of_node[*node].push_back(rank_json(rank, how, roles));
  }
  Json map = Json::array();
  for (std::size_t node = 0; node < std::min(nodes.size(), limits.ranks); ++node)
    map.push_back({{"host", at(nodes[node], "host")}, {"count", counts[node]}, {"ranks", of_node[node]}});
  return {{"nodes", nodes.size()},
          {"ranks", ranks.size()},
          {"roles", roles},
          {"shown", all ? "ranks" : "nodes"},
          {"map", std::move(map)}};
}

}  // namespace dlrun::report
