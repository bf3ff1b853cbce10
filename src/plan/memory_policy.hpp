// MemoryPolicy: on which NUMA nodes the memory of a rank lies, and whether it uses huge pages. The agent
// applies it when it starts the rank; what a node does not have is an error there, never another policy.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/base/enum_names.hpp"
#include "src/base/json_fwd.hpp"
#include "src/base/result.hpp"

namespace dlrun::plan {

enum class HugePages { as_the_system, on, off };
inline constexpr auto kHugePages = enum_names<HugePages>(
    {{HugePages::as_the_system, "system"}, {HugePages::on, "on"}, {HugePages::off, "off"}});

struct MemoryPolicy {
  // "local": bound to the NUMA nodes of the rank's cores; "interleave": spread over all; "0,2-3": bound to
  // these; empty: as the system has it.
  std::string numa;
  HugePages huge_pages = HugePages::as_the_system;
  bool is_set() const { return !numa.empty() || huge_pages != HugePages::as_the_system; }
  friend bool operator==(const MemoryPolicy&, const MemoryPolicy&) = default;
};

/// What is wrong with the text of `numa`; empty: nothing.
std::string check_numa(std::string_view text);

Json to_json(const MemoryPolicy& policy);
Result<MemoryPolicy> memory_policy_from_json(const Json& json, std::string_view where);

}  // namespace dlrun::plan
