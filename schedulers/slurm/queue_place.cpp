#include "schedulers/slurm/queue_place.hpp"

#include "schedulers/query.hpp"
#include "src/base/strings.hpp"

namespace dlrun {
namespace {

constexpr std::size_t kFields = 4;  // id, partition, expected start, reason

// Elements of an array that wait together are one line: "17_[1-3]".
bool is_of_job(std::string_view listed, std::string_view job_id) {
  return listed == job_id || (listed.starts_with(job_id) && listed.substr(job_id.size()).starts_with("_"));
}

}  // namespace

Argv slurm_queue_command() {
  return {"squeue", "-h", "-t", "PENDING", "--sort=-p", "-o", "%i|%P|%S|%r"};
}

std::optional<QueuePlace> slurm_queue_place(std::string_view printed, std::string_view job_id) {
  std::vector<std::vector<std::string>> before;
  for (const std::string& line : split(printed, '\n')) {
    std::vector<std::string> job = split(trim(line), '|');
    if (job.size() != kFields) continue;
    if (!is_of_job(job[0], job_id)) {
      before.push_back(std::move(job));
      continue;
    }
    QueuePlace out{.position = 1, .start = parse_calendar(job[2], "%Y-%m-%dT%H:%M:%S"), .reason = job[3]};
    for (const auto& other : before)
      if (other[1] == job[1]) ++*out.position;
    return out;
  }
  return std::nullopt;
}

}  // namespace dlrun
