#include "src/run/requeued_run.hpp"

#include <unistd.h>

#include "schedulers/scheduler.hpp"
#include "src/base/file.hpp"
#include "src/base/json.hpp"
#include "src/base/strings.hpp"
#include "src/plan/run_directory.hpp"

namespace dlrun::job {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStartFile = "job-start.json";
constexpr const char* kStartSchema = "dlrun.job-start/1";

Result<JobStart> read_start(const fs::path& directory) {
  const std::string where = (directory / kStartFile).string();
  const Json json = TRY(parse_json(TRY(read_file(where)), where));
  if (const auto schema = TRY(field<std::string>(json, "schema", where)); schema != kStartSchema)
    return fail(ErrorKind::input, "{}: schema '{}' is not {}", where, schema, kStartSchema);
  return JobStart{.scheduler = TRY(field<std::string>(json, "scheduler", where)),
                  .job_id = TRY(field<std::string>(json, "job_id", where)),
                  .start = TRY(field<std::string>(json, "start", where))};
}

Result<fs::path> new_folder_for(const fs::path& directory) {
  for (int number = 1;; ++number) {
    const fs::path folder = directory / "restarts" / std::to_string(number);
    std::error_code problem;
    if (fs::exists(folder, problem)) continue;
    TRY(make_directories(folder, Access::shared));
    return folder;
  }
}

Result<void> rename_into(const fs::path& file, const fs::path& folder) {
  std::error_code problem;
  fs::rename(file, folder / file.filename(), problem);
  if (!problem) return {};
  return fail(ErrorKind::io, "cannot move {} to {}: {}", file.string(), folder.string(), problem.message());
}

}  // namespace

std::optional<JobStart> job_start(const Allocation& allocation, const Environment& environment,
                                  const std::optional<std::string>& session) {
  if (!allocation.job_id) return std::nullopt;
  JobStart out{allocation.scheduler, *allocation.job_id, {}};
  const VariableRules& variables = scheduler_of(allocation).variables;
  if (!variables.restart_count.empty())
    out.start = environment.get(variables.restart_count, "0");
  else if (session && variables.is_batch_job != nullptr && variables.is_batch_job(environment))
    out.start = *session;
  else
    return std::nullopt;
  return out;
}

std::optional<std::string> session_leader() {
  constexpr std::size_t start_time = 19;  // behind the name: man 5 proc
  const pid_t leader = ::getsid(0);
  const auto text = leader > 0 ? read_file(fmt::format("/proc/{}/stat", leader)) : fail(Error{});
  const auto boot = read_file("/proc/sys/kernel/random/boot_id");
  const std::size_t name_end = text ? text->rfind(") ") : std::string::npos;
  if (name_end == std::string::npos || !boot) return std::nullopt;
  const auto words = split(std::string_view(*text).substr(name_end + 2), ' ');
  if (words.size() <= start_time) return std::nullopt;
  return fmt::format("{}:{}:{}", trim(*boot), leader, words[start_time]);
}

bool is_of_earlier_start(const fs::path& directory, const JobStart& now) {
  const auto earlier = read_start(directory);
  return earlier && earlier->scheduler == now.scheduler && earlier->job_id == now.job_id &&
         earlier->start != now.start;
}

Result<Lease> take_run_directory(const fs::path& directory, const JobStart& now, WaitingForOwner waiting,
                                 LeaseTimes times) {
  return take_lease(
      {.folder = directory / ".lease",
       .owner = {.process = this_process(), .job = now.job_id, .run = {}},
       .what = fmt::format("the run directory {}", directory.string()),
       .hint = "an earlier start of this job still runs: it keeps its directory until it has ended",
       .times = times,
       .waiting = std::move(waiting)});
}

// The file that tells whose the directory is goes last: who is killed on the way goes on at the next start.
Result<fs::path> keep_earlier_start(const fs::path& directory) {
  const fs::path folder = TRY(new_folder_for(directory));
  std::vector<fs::path> files;
  std::error_code problem;
  for (const auto& entry : fs::directory_iterator(directory, problem)) {
    const fs::path name = entry.path().filename();
    if (plan::is_own_file(name) && name != "restarts" && name != ".lease" && name != kStartFile)
      files.push_back(entry.path());
  }
  if (problem) return fail(ErrorKind::io, "cannot read {}: {}", directory.string(), problem.message());
  files.push_back(directory / kStartFile);
  for (const fs::path& file : files) TRY(rename_into(file, folder));
  return folder;
}

Result<void> write_job_start(const fs::path& directory, const JobStart& now) {
  const Json json{
      {"schema", kStartSchema}, {"scheduler", now.scheduler}, {"job_id", now.job_id}, {"start", now.start}};
  return replace_file(directory / kStartFile, to_pretty_text(json), Durability::synced);
}

}  // namespace dlrun::job
