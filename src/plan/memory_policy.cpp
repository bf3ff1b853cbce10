#include "src/plan/memory_policy.hpp"

#include "src/base/json.hpp"
#include "src/base/number_list.hpp"

namespace dlrun::plan {

std::string check_numa(std::string_view text) {
  if (text == "local" || text == "interleave") return "";
  const auto nodes = parse_number_list(text, kMaxNumaNodes);
  return nodes ? "" : fmt::format("'{}' is not a policy for memory: {}", text, nodes.error().what);
}

Json to_json(const MemoryPolicy& policy) {
  return {{"numa", policy.numa}, {"huge_pages", kHugePages.name(policy.huge_pages)}};
}

Result<MemoryPolicy> memory_policy_from_json(const Json& json, std::string_view where) {
  MemoryPolicy out{.numa = TRY(field<std::string>(json, "numa", where))};
  const auto name = TRY(field<std::string>(json, "huge_pages", where));
  const auto huge_pages = kHugePages.value(name);
  if (!huge_pages)
    return bad_input(std::string(where), fmt::format("unknown value of huge_pages: '{}'", name));
  out.huge_pages = *huge_pages;
  if (const std::string problem = out.numa.empty() ? "" : check_numa(out.numa); !problem.empty())
    return bad_input(std::string(where), problem);
  return out;
}

}  // namespace dlrun::plan
