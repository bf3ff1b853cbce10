#include "src/agent/memory_nodes.hpp"

#include <algorithm>
#include <cerrno>

#include <sys/prctl.h>

#include "src/base/file.hpp"
#include "src/base/number_list.hpp"

namespace dlrun::agent {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxProcessors = 1 << 16;

Result<std::vector<int>> numbers_in(const fs::path& file, int limit) {
  auto out = parse_number_list(TRY(read_file(file)), limit);
  if (!out) out.error().where = file.string();
  return out;
}

// The NUMA nodes of which the rank has a processor. One without memory has none to bind to.
Result<std::vector<int>> nodes_of(const Processors& processors, const std::vector<int>& with_memory,
                                  const fs::path& nodes) {
  if (processors.empty()) return with_memory;
  std::vector<int> out;
  for (const int node : with_memory) {
    const std::vector<int> cpus =
        TRY(numbers_in(nodes / fmt::format("node{}", node) / "cpulist", kMaxProcessors));
    const bool is_near = std::any_of(processors.begin(), processors.end(), [&](int processor) {
      return std::find(cpus.begin(), cpus.end(), processor) != cpus.end();
    });
    if (is_near) out.push_back(node);
  }
  return out.empty() ? Result<std::vector<int>>(with_memory) : out;
}

std::string text_of(const std::vector<int>& nodes) {
  std::string out;
  for (const int node : nodes) out += fmt::format("{}{}", out.empty() ? "" : ",", node);
  return out;
}

Result<std::vector<int>> named_nodes(const std::string& text, const std::vector<int>& with_memory) {
  std::vector<int> out = TRY(parse_number_list(text, kMaxNumaNodes));
  for (const int node : out)
    if (std::find(with_memory.begin(), with_memory.end(), node) == with_memory.end())
      return fail(Error{
          .kind = ErrorKind::input,
          .what = fmt::format("launch.memory: {}: there is no NUMA node {} with memory here", text, node),
          .where = {},
          .hint = fmt::format("this node has {}; local and interleave fit all nodes", text_of(with_memory)),
          .also = {}});
  return out;
}

}  // namespace

Result<std::optional<MemoryBinding>> memory_binding(const plan::MemoryPolicy& policy,
                                                    const Processors& processors, const fs::path& nodes) {
  if (policy.numa.empty()) return std::optional<MemoryBinding>();
  const std::vector<int> with_memory = TRY(numbers_in(nodes / "has_memory", kMaxNumaNodes));
  using Policy = MemoryBinding::Policy;
  if (policy.numa == "interleave") return std::optional(MemoryBinding{Policy::interleave, with_memory});
  if (policy.numa == "local")
    return std::optional(MemoryBinding{Policy::bind, TRY(nodes_of(processors, with_memory, nodes))});
  return std::optional(MemoryBinding{Policy::bind, TRY(named_nodes(policy.numa, with_memory))});
}

// It is a property of the process's memory, which a rank inherits through vfork and exec. Huge pages for
// malloc are a variable, which the plan sets.
Result<void> apply_huge_pages(plan::HugePages use) {
  if (use != plan::HugePages::off || ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0) return {};
  return fail(ErrorKind::unavailable, "launch.huge-pages: off: {}", system_reason(errno));
}

}  // namespace dlrun::agent
