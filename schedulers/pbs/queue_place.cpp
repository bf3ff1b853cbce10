#include "schedulers/pbs/queue_place.hpp"

#include <algorithm>
#include <map>

#include "schedulers/query.hpp"
#include "src/base/strings.hpp"

namespace dlrun {
namespace {

struct ListedJob {
  std::string id;
  std::map<std::string, std::string, std::less<>> values;

  std::string value(std::string_view name) const {
    const auto found = values.find(name);
    return found == values.end() ? std::string() : found->second;
  }
  // Q: queued; W: for its time; H: on hold, or for another job; T: on its way to another server.
  bool waits() const {
    const std::string state = value("job_state");
    return state.size() == 1 && std::string_view("QWHT").find(state.front()) != std::string_view::npos;
  }
};

// "    name = value"; a line that begins with a tab goes on with the one before.
std::vector<ListedJob> listed_jobs(std::string_view printed) {
  constexpr std::string_view head = "Job Id: ", between = " = ";
  std::vector<ListedJob> out;
  std::string* last = nullptr;
  for (const std::string& line : split(printed, '\n')) {
    const std::size_t middle = line.find(between);
    if (line.starts_with(head)) {
      out.push_back({.id = std::string(trim(line.substr(head.size()))), .values = {}});
      last = nullptr;
    } else if (line.starts_with('\t') && last != nullptr) {
      *last += line.substr(1);
    } else if (!out.empty() && middle != line.npos) {
      const std::string name(trim(std::string_view(line).substr(0, middle)));
      last = &(out.back().values[name] = line.substr(middle + between.size()));
    }
  }
  return out;
}

// The list has "12[].server" for all elements of an array that wait.
std::string listed_id(std::string_view job_id) {
  const std::size_t open = job_id.find('['), close = job_id.find(']');
  if (open == job_id.npos || close == job_id.npos || close < open) return std::string(job_id);
  return std::string(job_id.substr(0, open + 1)) + std::string(job_id.substr(close));
}

}  // namespace

Argv pbs_queue_command() {
  return {"qstat", "-f"};
}

std::optional<QueuePlace> pbs_queue_place(std::string_view printed, std::string_view job_id) {
  const std::vector<ListedJob> jobs = listed_jobs(printed);
  const std::string id = listed_id(job_id);
  const auto ours =
      std::find_if(jobs.begin(), jobs.end(), [&](const ListedJob& job) { return job.id == id; });
  if (ours == jobs.end() || !ours->waits()) return std::nullopt;
  const auto before = std::count_if(jobs.begin(), ours, [&](const ListedJob& job) {
    return job.value("job_state") == "Q" && job.value("queue") == ours->value("queue");
  });
  return QueuePlace{.position = static_cast<int>(before) + 1,
                    .start = parse_calendar(ours->value("estimated.start_time"), "%a %b %d %H:%M:%S %Y"),
                    .reason = std::string(trim(ours->value("comment")))};
}

}  // namespace dlrun
