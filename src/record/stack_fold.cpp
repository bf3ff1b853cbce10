#include "src/record/stack_fold.hpp"

#include <algorithm>
#include <array>

#include "src/base/strings.hpp"

namespace dlrun::job {
namespace {

constexpr std::size_t kMaxShownGroups = 3;

bool starts_with_any(std::string_view text, std::span<const std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view each) { return text.starts_with(each); });
}

bool is_communication(const StackFrame& frame) {
  static constexpr std::array<std::string_view, 3> names{"MPI_", "PMPI_", "nccl"};
  return frame.place.find(".py:") == std::string::npos && starts_with_any(frame.function, names);
}

// Libraries in which everybody waits, and the interpreter of Python.
bool is_of_the_system(const StackFrame& frame) {
  static constexpr std::array<std::string_view, 9> files{
      "libc.so", "libc-", "libpthread", "ld-linux", "[vdso", "libstdc++", "libgcc_s", "libpython", "python3"};
  static constexpr std::array<std::string_view, 4> folders{"/site-packages/", "/dist-packages/",
                                                           "/lib/python3", "<frozen"};
  return frame.function == "?" || starts_with_any(frame.place, files) ||
         std::any_of(folders.begin(), folders.end(),
                     [&](std::string_view each) { return frame.place.find(each) != std::string::npos; });
}

// The stack that says where the rank is, and the number of the frame that says it.
struct Telling {
  const StackFrames* frames = nullptr;
  std::size_t frame = 0;
};

std::optional<std::size_t> communication_in(const StackFrames& frames) {
  for (std::size_t i = frames.size(); i > 0; --i)
    if (is_communication(frames[i - 1])) return i - 1;
  return std::nullopt;
}

Telling telling_of(const RankStack& stack) {
  if (const auto call = communication_in(stack.native)) return {&stack.native, *call};
  if (const auto frame = telling_frame(stack.python)) return {&stack.python, *frame};
  if (const auto frame = telling_frame(stack.native)) return {&stack.native, *frame};
  return {};
}

// PMPI_Allreduce is how a library spells MPI_Allreduce inside.
std::string shown_name(const std::string& function) {
  return function.starts_with("PMPI_") ? function.substr(1) : function;
}

std::string place_of(const RankStack& stack) {
  if (const Telling telling = telling_of(stack); telling.frames != nullptr)
    return (stack.state == 'T' ? "stopped, in " : "in ") +
           shown_name((*telling.frames)[telling.frame].function);
  if (!stack.waits.empty()) return "waiting in the kernel in " + stack.waits;
  if (stack.state == 'T') return "stopped, as by SIGSTOP";
  if (stack.state == 'R') return "running";
  return "at an unknown place";
}

// What is behind the telling frame differs from one look to the next, as where a call polls.
std::string key_of(const RankStack& stack) {
  std::string key = place_of(stack);
  const Telling telling = telling_of(stack);
  if (telling.frames == nullptr) return key;
  for (std::size_t i = telling.frame; i < telling.frames->size(); ++i)
    key += "\n" + (*telling.frames)[i].function + " " + (*telling.frames)[i].place;
  return key;
}

std::string key_of(const StackFrames& frames) {
  std::string key;
  for (const StackFrame& frame : frames) key += frame.function + " " + frame.place + "\n";
  return key;
}

}  // namespace

std::optional<std::size_t> telling_frame(const StackFrames& frames) {
  if (const auto call = communication_in(frames)) return call;
  for (std::size_t i = 0; i < frames.size(); ++i)
    if (!is_of_the_system(frames[i])) return i;
  return frames.empty() ? std::nullopt : std::optional<std::size_t>(0);
}

std::string ranks_as_ranges(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  std::string out;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (!out.empty()) out += ",";
    out += last == i ? std::to_string(ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[last]);
    i = last + 1;
  }
  return out;
}

std::string ranks_text(const std::vector<int>& ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  return fmt::format("{} ranks ({})", ranks.size(), ranks_as_ranges(ranks));
}

void StackFold::add(const RankStack& stack, const std::string& host) {
  const int rank = stack.rank.get();
  ++ranks_;
  if (!stack.native.empty() || !stack.python.empty()) ++read_;
  Group& group = groups_[key_of(stack)];
  if (group.ranks.empty()) {
    group.first = stack;
    group.where = place_of(stack);
  }
  group.ranks.push_back(rank);
  // A node tells all its ranks together.
  if (group.hosts.empty() || group.hosts.back() != host) group.hosts.push_back(host);
  for (const ThreadStack& each : stack.threads) {
    Threads& threads = threads_[key_of(each.frames)];
    threads.count += each.count;
    threads.ranks.push_back(rank);
    threads.frames = each.frames;
  }
  for (const std::string& problem : stack.problems) problems_[problem].push_back(rank);
  if (!stack.nccl_trace.empty()) nccl_traces_[rank] = stack.nccl_trace;
}

std::vector<const StackFold::Group*> StackFold::sorted() const {
  std::vector<const Group*> out;
  for (const auto& [key, group] : groups_) out.push_back(&group);
  std::stable_sort(out.begin(), out.end(),
                   [](const Group* a, const Group* b) { return a->ranks.size() < b->ranks.size(); });
  return out;
}

Json StackFold::groups() const {
  Json out = Json::array();
  for (const Group* group : sorted())
    out.push_back({{"where", group->where},
                   {"count", group->ranks.size()},
                   {"ranks", ranks_as_ranges(group->ranks)},
                   {"hosts", group->hosts},
                   {"first",
                    {{"rank", group->first.rank.get()},
                     {"host", group->hosts.front()},
                     {"pid", group->first.pid},
                     {"program", group->first.program},
                     {"state", std::string(1, group->first.state)},
                     {"waits", group->first.waits}}},
                   {"python", to_json(group->first.python)},
                   {"native", to_json(group->first.native)}});
  return out;
}

Json StackFold::threads() const {
  Json out = Json::array();
  for (const auto& [key, threads] : threads_)
    out.push_back({{"count", threads.count},
                   {"ranks", ranks_as_ranges(threads.ranks)},
                   {"frames", to_json(threads.frames)}});
  return out;
}

Json StackFold::problems() const {
  Json out = Json::array();
  for (const auto& [problem, ranks] : problems_)
    out.push_back({{"ranks", ranks_as_ranges(ranks)}, {"count", ranks.size()}, {"problem", problem}});
  return out;
}

Json StackFold::nccl_traces() const {
  Json out = Json::array();
  for (const auto& [rank, file] : nccl_traces_) out.push_back({{"rank", rank}, {"file", file}});
  return out;
}

std::string StackFold::headline() const {
  std::string out;
  const std::vector<const Group*> groups = sorted();
  for (std::size_t i = 0; i < groups.size() && i < kMaxShownGroups; ++i)
    out += (i == 0 ? "" : "; ") + ranks_text(groups[i]->ranks) + " " + groups[i]->where;
  if (groups.size() > kMaxShownGroups)
    out += fmt::format("; and {} more places", groups.size() - kMaxShownGroups);
  return out;
}

}  // namespace dlrun::job
