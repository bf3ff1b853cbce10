#include "src/cli/plan_table.hpp"

#include <algorithm>
#include <map>

#include "schedulers/hostlist/hostlist.hpp"
#include "src/base/quote.hpp"
#include "src/base/strings.hpp"
#include "src/cli/parallel_lines.hpp"

namespace dlrun::cli {
namespace {

constexpr std::size_t kMaxLines = 64;

using Row = std::vector<std::string>;

std::string gpus_text(const plan::RankPlan& rank) {
  if (!rank.gpus) return "-";
  return rank.gpus->empty() ? "hidden" : join(*rank.gpus, ",");
}

std::string cpus_text(const plan::RankPlan& rank) {
  return rank.cpus ? fmt::format("{}/{}", rank.cpus->share + 1, rank.cpus->of) : "-";
}

std::string port_text(const plan::RankPlan& rank) {
  return rank.port ? std::to_string(*rank.port) : "-";
}

std::string from_to(const std::string& first, const std::string& last) {
  return first == last ? first : first + "-" + last;
}

void print_rows(const std::vector<Row>& rows, Console& console) {
  std::vector<std::size_t> wide(rows.front().size(), 0);
  for (const Row& row : rows)
    for (std::size_t i = 0; i + 1 < row.size(); ++i) wide[i] = std::max(wide[i], row[i].size());
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += fmt::format("{}{:<{}}", i == 0 ? "" : "  ", row[i], wide[i]);
    console.out(&row == &rows.front() ? console.tinted_out(line, Tint::bold) : line);
  }
}

// A column before the last, the command.
void add_groups(std::vector<Row>& rows, const plan::Plan& plan,
                const std::vector<const plan::RankPlan*>& ranks) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i].insert(rows[i].end() - 1, i == 0 ? "groups" : group_ranks_text(plan, *ranks[i - 1]));
}

std::vector<Row> row_per_rank(const plan::Plan& plan) {
  std::vector<Row> rows{{"node", "host", "role", "task", "rank", "local", "GPUs", "CPUs", "port", "command"}};
  std::vector<const plan::RankPlan*> ranks;
  for (const plan::RankPlan& rank : plan.ranks) ranks.push_back(&rank);
  std::stable_sort(ranks.begin(), ranks.end(), [](auto* a, auto* b) { return a->node < b->node; });
  for (const plan::RankPlan* rank : ranks)
    rows.push_back({fmt::format("{}", rank->node),
                    plan.nodes[static_cast<std::size_t>(rank->node.get())].host.get(), rank->role,
                    std::to_string(rank->task_index), fmt::format("{}", rank->rank),
                    fmt::format("{}", rank->local_rank), gpus_text(*rank), cpus_text(*rank), port_text(*rank),
                    shell_join(rank->argv)});
  if (plan.parallel) add_groups(rows, plan, ranks);
  return rows;
}

// The ranks of one role on one node.
struct Part {
  const plan::RankPlan* first = nullptr;
  const plan::RankPlan* last = nullptr;
  int count = 0;
  std::string gpus_of_each;
  bool same_gpus = true;
  // Once, where all ranks have the same, as none.
  std::string gpus() const { return same_gpus ? gpus_text(*first) : gpus_of_each; }
  std::string shape() const {
    return fmt::format("{}|{}|{}|{}|{}|{}|{}", first->role, count, gpus(), cpus_text(*first),
                       cpus_text(*last), port_text(*first), port_text(*last));
  }
};

std::vector<std::vector<Part>> parts_by_node(const plan::Plan& plan) {
  std::vector<std::vector<Part>> out(plan.nodes.size());
  for (const plan::RankPlan& rank : plan.ranks) {
    auto& parts = out[static_cast<std::size_t>(rank.node.get())];
    if (parts.empty() || parts.back().first->role != rank.role)
      parts.push_back({.first = &rank, .last = &rank, .count = 0, .gpus_of_each = {}});
    Part& part = parts.back();
    part.last = &rank;
    ++part.count;
    const std::string gpus = gpus_text(rank);
    part.same_gpus = part.same_gpus && gpus == gpus_text(*part.first);
    part.gpus_of_each += (part.count == 1 ? "" : " | ") + gpus;
  }
  return out;
}

std::string shape_of(const std::vector<Part>& parts) {
  std::string out;
  for (const Part& part : parts) out += part.shape() + "\n";
  return out;
}

void add_folded(std::vector<Row>& rows, const plan::Plan& plan, const std::vector<std::vector<Part>>& parts,
                std::size_t begin, std::size_t end) {
  std::vector<HostName> hosts;
  for (std::size_t i = begin; i < end; ++i) hosts.push_back(plan.nodes[i].host);
  for (std::size_t p = 0; p < parts[begin].size(); ++p) {
    const Part& first = parts[begin][p];
    const plan::RankPlan& last = *parts[end - 1][p].last;
    rows.push_back({from_to(std::to_string(begin), std::to_string(end - 1)), compress_hostlist(hosts),
                    first.first->role, std::to_string(first.count),
                    from_to(fmt::format("{}", first.first->rank), fmt::format("{}", last.rank)), first.gpus(),
                    from_to(cpus_text(*first.first), cpus_text(*first.last)),
                    from_to(port_text(*first.first), port_text(*first.last))});
  }
}

std::vector<Row> row_per_shape(const plan::Plan& plan) {
  std::vector<Row> rows{{"nodes", "hosts", "role", "each", "ranks", "GPUs", "CPUs", "ports"}};
  const auto parts = parts_by_node(plan);
  std::size_t begin = 0;
  std::string shape = shape_of(parts.front());
  for (std::size_t i = 1; i <= parts.size(); ++i) {
    const std::string next = i == parts.size() ? std::string() : shape_of(parts[i]);
    if (i < parts.size() && next == shape) continue;
    add_folded(rows, plan, parts, begin, i);
    begin = i;
    shape = next;
  }
  return rows;
}

}  // namespace

void print_plan_table(const plan::Plan& plan, Console& console) {
  if (plan.ranks.size() <= kMaxLines) return print_rows(row_per_rank(plan), console);
  print_rows(row_per_shape(plan), console);
  console.out("");
  console.out(fmt::format("rank 0     {}", shell_join(plan.ranks.front().argv)));
}

}  // namespace dlrun::cli
