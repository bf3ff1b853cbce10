#include "src/chain/folder.hpp"

#include <algorithm>

#include "src/base/file.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/run/checkpoint_files.hpp"

namespace dlrun::job {
namespace {

namespace fs = std::filesystem;

// Of a job that is not the asking one. An Error where it may still run.
Result<void> check_ended(const LeaseFile& newest, const ChainFolder& folder, const Submission& scheduler,
                         const Environment& environment, const CommandRunner& commands) {
  const auto state = commands.run({.argv = scheduler.state_command(newest.owner.job),
                                   .environment = scheduler.environment(environment),
                                   .limit = Seconds(30)});
  const auto alive = state ? scheduler.is_alive(*state) : std::nullopt;
  if (!alive.value_or(true)) return {};
  return fail(
      Error{.kind = ErrorKind::unavailable,
            .what = fmt::format("job {} is link {} of this chain and {}", newest.owner.job, newest.number,
                                alive ? "still runs" : "may still run: the scheduler does not answer"),
            .where = folder.path().string(),
            .hint = "dlrun chain status shows the chain",
            .also = {}});
}

}  // namespace

Result<Chain> ChainFolder::read() const {
  const fs::path file = folder_ / "chain.json";
  std::error_code problem;
  if (!fs::exists(file, problem) && !problem)
    return fail(Error{.kind = ErrorKind::input,
                      .what = fmt::format("{} is not a chain: it has no chain.json", folder_.string()),
                      .where = {},
                      .hint = "give the folder that dlrun submit --chain printed",
                      .also = {}});
  return chain_from_json(TRY(parse_json(TRY(read_file(file)), file.string())), file.string());
}

Result<void> ChainFolder::create(const Chain& chain) const {
  TRY(leases().create());
  return replace_file(folder_ / "chain.json", to_pretty_text(to_json(chain)), Durability::synced);
}

Result<void> ChainFolder::write(const Chain& chain, const Lease& mine) const {
  TRY(mine.check());
  return replace_file(folder_ / "chain.json", to_pretty_text(to_json(chain)), Durability::synced);
}

Result<void> ChainFolder::write_first_job(const std::string& job_id) const {
  return replace_file(folder_ / "first-job", job_id + "\n", Durability::synced);
}

std::string ChainFolder::first_job() const {
  const auto text = read_file(folder_ / "first-job");
  return text ? std::string(trim(*text)) : std::string();
}

Result<void> ChainFolder::write_presubmitted_jobs(const std::vector<std::string>& job_ids) const {
  return replace_file(folder_ / "jobs-ahead", join(job_ids, "\n") + "\n", Durability::synced);
}

std::vector<std::string> ChainFolder::presubmitted_jobs() const {
  std::vector<std::string> out;
  const auto text = read_file(folder_ / "jobs-ahead");
  for (const std::string& line : split(text ? *text : std::string(), '\n'))
    if (!trim(line).empty()) out.emplace_back(trim(line));
  return out;
}

StopRequest ChainFolder::stop_requested() const {
  std::error_code problem;
  return fs::exists(folder_ / "stop", problem) ? StopRequest::stop : StopRequest::none;
}

Result<void> ChainFolder::request_stop() const {
  return replace_file(folder_ / "stop", "", Durability::synced);
}

std::vector<std::string> waiting_jobs(const ChainFolder& folder, const Chain& chain) {
  std::vector<std::string> out;
  const auto add = [&](const std::string& job) {
    const auto is_it = [&](const Link& link) { return link.job_id == job; };
    const bool had_its_turn =
        job != chain.queued_job && std::any_of(chain.links.begin(), chain.links.end(), is_it);
    if (!job.empty() && !had_its_turn && std::find(out.begin(), out.end(), job) == out.end())
      out.push_back(job);
  };
  add(chain.queued_job);
  if (chain.links.empty()) add(folder.first_job());
  for (const std::string& job : folder.presubmitted_jobs()) add(job);
  return out;
}

Result<Lease> take_over(const ChainFolder& folder, const Submission& scheduler, const LeaseOwner& owner,
                        const Environment& environment, const CommandRunner& commands,
                        const LeaseTimes& times) {
  const LeaseFile newest = TRY(folder.leases().newest());
  const bool of_another =
      newest.number > 0 && !newest.released && !newest.owner.job.empty() && newest.owner.job != owner.job;
  if (of_another && !scheduler.is_job_id(newest.owner.job))
    return fail(Error{.kind = ErrorKind::input,
                      .what = fmt::format("'{}' is not a job id of {}", newest.owner.job, scheduler.name()),
                      .where = folder.leases().path().string(),
                      .hint = "the newest file there was changed; remove it if no job of the chain runs"});
  if (of_another) TRY(check_ended(newest, folder, scheduler, environment, commands));
  return take_lease({.folder = folder.leases().path(),
                     .owner = owner,
                     .what = fmt::format("the chain in {}", folder.path().string()),
                     .in_use = ErrorKind::unavailable,
                     .hint = "dlrun chain status shows the chain; this second start of the job has no effect",
                     .times = times,
                     .life = [&](const LeaseOwner& other) {
                       // A process that outlives its job can only be about to end; and it is told.
                       if (of_another && other.job == newest.owner.job) return Life::ended;
                       return life_of(other.process, folder.path());
                     }});
}

Result<void> check_job_ids(const Submission& scheduler, const ChainFolder& folder, const Chain& chain) {
  const auto check = [&](const std::string& id, const char* file) -> Result<void> {
    if (id.empty() || scheduler.is_job_id(id)) return {};
    return fail(Error{.kind = ErrorKind::input,
                      .what = fmt::format("'{}' is not a job id of {}", id, scheduler.name()),
                      .where = (folder.path() / file).string(),
                      .hint = "the file was changed; cancel the jobs with the scheduler's commands"});
  };
  TRY(check(chain.queued_job, "chain.json"));
  for (const Link& link : chain.links) TRY(check(link.job_id, "chain.json"));
  TRY(check(folder.first_job(), "first-job"));
  for (const std::string& job : folder.presubmitted_jobs()) TRY(check(job, "jobs-ahead"));
  return {};
}

std::vector<fs::path> all_chains(const fs::path& here) {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code problem, ignored;
  for (const auto& entry : fs::directory_iterator(here / "runs", problem)) {
    const auto written = fs::last_write_time(entry.path() / "chain.json", ignored);
    if (!ignored) found.emplace_back(written, entry.path());
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<fs::path> out;
  for (auto& [written, path] : found) out.push_back(std::move(path));
  return out;
}

Result<fs::path> newest_chain(const fs::path& here) {
  const std::vector<fs::path> chains = all_chains(here);
  if (!chains.empty()) return chains.front();
  std::error_code problem;
  const fs::directory_iterator readable(here / "runs", problem);
  if (problem && problem != std::errc::no_such_file_or_directory)
    return fail(ErrorKind::io, "cannot read {}: {}", (here / "runs").string(), problem.message());
  return fail(Error{.kind = ErrorKind::usage,
                    .what = fmt::format("there is no chain below {}", (here / "runs").string()),
                    .where = {},
                    .hint = "give its folder: dlrun chain status DIR",
                    .also = {}});
}

std::string checkpoint_mark(const CheckpointPlace& place) {
  if (!place.files.empty()) return mark_of_files(place.files);
  std::string newest;
  fs::file_time_type when = fs::file_time_type::min();
  std::error_code problem, ignored;
  for (const auto& entry : fs::directory_iterator(place.folder, problem)) {
    const auto written = entry.last_write_time(ignored);
    if (ignored || entry.path().filename().string().starts_with('.') || written < when) continue;
    newest = entry.path().filename().string(), when = written;
  }
  return newest.empty() ? newest : fmt::format("{}@{}", newest, when.time_since_epoch().count());
}

}  // namespace dlrun::job
