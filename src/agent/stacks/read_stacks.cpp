#include "src/agent/stacks/read_stacks.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include <unistd.h>

#include "src/agent/stacks/native_stacks.hpp"
#include "src/agent/stacks/python_stacks.hpp"
#include "src/base/file.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun::agent {
namespace {

std::string nccl_trace_of(pid_t pid) {
  const std::string path =
      nccl_trace_path(split(read_file(fmt::format("/proc/{}/environ", pid)).value_or(""), '\0'));
  std::error_code problem;
  return !path.empty() && std::filesystem::exists(path, problem) ? path : std::string();
}

Result<RankStack> read_one(const std::string& word, const std::string& folder) {
  const std::size_t colon = word.find(':');
  const auto rank = TRY(parse_integer(word.substr(0, colon), 0, 1 << 30));
  const auto pid = TRY(parse_integer(colon == std::string::npos ? "" : word.substr(colon + 1), 1, 1 << 30));
  RankStack out = stack_without_frames(Rank(static_cast<int>(rank)), static_cast<pid_t>(pid));
  if (is_python_program(out.pid)) read_python_stack(out, folder);
  read_native_stacks(out);
  out.nccl_trace = nccl_trace_of(out.pid);
  return out;
}

}  // namespace

const ProcessState* program_among(const std::vector<ProcessState>& tree) {
  static constexpr std::array<std::string_view, 6> shells{"sh", "bash", "dash", "zsh", "ksh", "tcsh"};
  const auto stopped = std::find_if(tree.begin(), tree.end(), [](const ProcessState& process) {
    return process.state == 'T' || process.state == 't';
  });
  if (stopped != tree.end()) return &*stopped;
  const auto found = std::find_if(tree.begin(), tree.end(), [](const ProcessState& process) {
    return std::find(shells.begin(), shells.end(), process.name) == shells.end();
  });
  return found != tree.end() ? &*found : tree.empty() ? nullptr : &tree.front();
}

RankStack stack_without_frames(Rank rank, pid_t pid) {
  const std::vector<ProcessState> tree = states_of_tree(pid);
  RankStack out{.rank = rank, .pid = pid};
  const ProcessState* program = program_among(tree);
  if (program == nullptr) {
    out.problems.emplace_back("it has ended");
    return out;
  }
  out.pid = program->pid;
  out.program = program->name;
  out.state = program->state;
  out.waits = program->waits;
  return out;
}

std::string nccl_trace_path(const std::vector<std::string>& environment) {
  std::string prefix = "/tmp/nccl_trace_rank_", rank;
  for (const std::string& entry : environment) {
    const std::size_t end = entry.find('=');
    const std::string name = entry.substr(0, end);
    if (end == std::string::npos) continue;
    if (name == "TORCH_NCCL_DEBUG_INFO_TEMP_FILE" || name == "TORCH_FR_DUMP_TEMP_FILE")
      prefix = entry.substr(end + 1);
    if (name == "RANK") rank = entry.substr(end + 1);
  }
  return rank.empty() ? std::string() : prefix + rank;
}

Result<void> read_stacks(const std::vector<std::string>& words) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    const RankStack stack = TRY(read_one(words[i], words[0]));
    TRY(write_all(STDOUT_FILENO, to_text(to_json(stack)) + "\n", "the standard output"));
  }
  return {};
}

}  // namespace dlrun::agent
