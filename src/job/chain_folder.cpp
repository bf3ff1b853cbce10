#include "src/job/chain_folder.hpp"

#include <algorithm>

#include "src/base/file.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

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
  if (!fs::exists(file, problem))
    return fail(Error{.kind = ErrorKind::input,
                      .what = fmt::format("{} is no chain: it has no chain.json", folder_.string()),
                      .where = {},
                      .hint = "name the folder that dlrun submit --chain told",
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

Result<void> ChainFolder::write_jobs_ahead(const std::vector<std::string>& job_ids) const {
  return replace_file(folder_ / "jobs-ahead", join(job_ids, "\n") + "\n", Durability::synced);
}

std::vector<std::string> ChainFolder::jobs_ahead() const {
  std::vector<std::string> out;
  const auto text = read_file(folder_ / "jobs-ahead");
  for (const std::string& line : split(text ? *text : std::string(), '\n'))
    if (!trim(line).empty()) out.emplace_back(trim(line));
  return out;
}

StopWish ChainFolder::stop_wish() const {
  std::error_code problem;
  return fs::exists(folder_ / "stop", problem) ? StopWish::stop : StopWish::none;
}

Result<void> ChainFolder::wish_stop() const {
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
  for (const std::string& job : folder.jobs_ahead()) add(job);
  return out;
}

Result<Lease> take_over(const ChainFolder& folder, const Submission& scheduler, const LeaseOwner& owner,
                        const Environment& environment, const CommandRunner& commands,
                        const LeaseTimes& times) {
  const LeaseFile newest = TRY(folder.leases().newest());
  const bool of_another =
      newest.number > 0 && !newest.released && !newest.owner.job.empty() && newest.owner.job != owner.job;
  if (of_another) TRY(check_ended(newest, folder, scheduler, environment, commands));
  return take_lease({.folder = folder.leases().path(),
                     .owner = owner,
                     .what = fmt::format("the chain in {}", folder.path().string()),
                     .in_use = ErrorKind::unavailable,
                     .hint = "dlrun chain status shows the chain; this second start of it changes nothing",
                     .times = times,
                     .life = [&](const LeaseOwner& other) {
                       // A process that outlives its job can only be about to end; and it is told.
                       if (of_another && other.job == newest.owner.job) return Life::ended;
                       return life_of(other.process, folder.path());
                     }});
}

Result<fs::path> newest_chain(const fs::path& here) {
  fs::path newest;
  fs::file_time_type when = fs::file_time_type::min();
  std::error_code problem, ignored;
  for (const auto& entry : fs::directory_iterator(here / "runs", problem)) {
    const fs::path file = entry.path() / "chain.json";
    const auto written = fs::last_write_time(file, ignored);
    if (ignored || written < when) continue;
    newest = entry.path(), when = written;
  }
  if (!newest.empty()) return newest;
  return fail(Error{.kind = ErrorKind::usage,
                    .what = fmt::format("there is no chain below {}", (here / "runs").string()),
                    .where = {},
                    .hint = "name its folder: dlrun chain status DIR",
                    .also = {}});
}

std::string checkpoint_mark(const fs::path& folder) {
  std::string newest;
  fs::file_time_type when = fs::file_time_type::min();
  std::error_code problem, ignored;
  for (const auto& entry : fs::directory_iterator(folder, problem)) {
    const auto written = entry.last_write_time(ignored);
    if (ignored || entry.path().filename().string().starts_with('.') || written < when) continue;
    newest = entry.path().filename().string(), when = written;
  }
  return newest.empty() ? newest : fmt::format("{}@{}", newest, when.time_since_epoch().count());
}

}  // namespace dlrun::job
