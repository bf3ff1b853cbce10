#include "schedulers/slurm/job.hpp"

#include <algorithm>
#include <array>

#include "schedulers/hostfile/node_lists.hpp"
#include "schedulers/hostlist/hostlist.hpp"
#include "schedulers/query.hpp"
#include "schedulers/slurm/gres.hpp"
#include "src/base/strings.hpp"

namespace dlrun {
namespace {

std::string field_value(const std::vector<std::string>& words, std::string_view key) {
  for (const std::string& word : words)
    if (word.size() > key.size() && word.starts_with(key) && word[key.size()] == '=')
      return word.substr(key.size() + 1);
  return {};
}

// "     Nodes=c[1-2] CPU_IDs=0,8 Mem=200 GRES=gpu:2(IDX:0-1)"
Result<void> read_node_line(const WordLine& line, SlurmJob& job) {
  const std::string gres = field_value(line.words, "GRES");
  std::vector<int> indices;
  int count = 0;
  for (const GpuGres& entry : TRY(parse_gres(gres))) {
    count += entry.count;
    indices.insert(indices.end(), entry.indices.begin(), entry.indices.end());
  }
  std::sort(indices.begin(), indices.end());
  for (const HostName& host : TRY(expand_hostlist(field_value(line.words, "Nodes")))) {
    if (static_cast<int>(indices.size()) == count)
      job.gpus[host.get()] = indices;
    else
      job.gpus_without_index[host.get()] = count;
  }
  return {};
}

}  // namespace

bool slurm_job_is_over(std::string_view state) {
  // COMPLETING is not among them: the batch script of such a job may still be at work.
  constexpr std::array<std::string_view, 10> over{"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE",
                                                  "FAILED",    "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY",
                                                  "REVOKED",   "TIMEOUT"};
  return std::find(over.begin(), over.end(), state) != over.end();
}

Result<SlurmJob> parse_scontrol_job(std::string_view text, std::string_view job_id) {
  SlurmJob job;
  bool times_known = false, ours = false;
  for (const WordLine& line : word_lines(text)) {
    if (line.words[0].starts_with("JobId="))
      ours = field_value(line.words, "JobId") == job_id || field_value(line.words, "HetJobId") == job_id;
    if (!ours) continue;
    if (line.words[0].starts_with("Nodes=")) {
      if (auto read = read_node_line(line, job); !read)
        return fail(about_allocation(read.error(), fmt::format("scontrol show job, line {}", line.number)));
    }
    if (job.state.empty()) job.state = field_value(line.words, "JobState");
    if (!times_known && !field_value(line.words, "TimeLimit").empty())
      job.unlimited = field_value(line.words, "TimeLimit") == "UNLIMITED";
    if (const std::string end = field_value(line.words, "EndTime"); !end.empty() && !times_known) {
      times_known = true;
      if (!job.unlimited) job.end_time = parse_calendar(end, "%Y-%m-%dT%H:%M:%S");
    }
  }
  return job;
}

}  // namespace dlrun
