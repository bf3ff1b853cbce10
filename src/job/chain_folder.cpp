#include "src/job/chain_folder.hpp"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

#include "src/base/file.hpp"
#include "src/base/strings.hpp"
#include "src/base/unique_fd.hpp"
#include "src/base/units.hpp"
#include "src/job/checkpoint_files.hpp"

namespace dlrun::job {
namespace {

namespace fs = std::filesystem;

constexpr const char* kReleased = ".released";

fs::path lease_path(const fs::path& folder, int number) {
  return folder / "leases" / fmt::format("{:04}", number);
}

// Made by this call alone, or an errno. On a full disk nothing of it is left: an empty one would belong to
// nobody.
int make_once(const fs::path& path, std::string_view content) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (fd.get() < 0) return errno;
  if (write_all(fd.get(), content, path)) return 0;
  const int problem = errno;
  ::unlink(path.c_str());
  return problem != 0 ? problem : EIO;
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
  TRY(make_directories(folder_ / "leases", Access::shared));
  return replace_file(folder_ / "chain.json", to_pretty_text(to_json(chain)), Durability::synced);
}

Result<void> ChainFolder::write(const Chain& chain, const Lease& mine) const {
  if (const Lease newest = TRY(newest_lease()); newest.number != mine.number)
    return fail(ErrorKind::lost, "the chain in {} was taken over by job {}: this link writes nothing to it",
                folder_.string(), newest.job_id);
  return replace_file(folder_ / "chain.json", to_pretty_text(to_json(chain)), Durability::synced);
}

Result<Lease> ChainFolder::newest_lease() const {
  Lease out;
  std::error_code problem;
  for (const auto& entry : fs::directory_iterator(folder_ / "leases", problem))
    if (const auto number = parse_integer(entry.path().filename().string(), 1, 1'000'000))
      out.number = std::max(out.number, static_cast<int>(*number));
  if (problem)
    return fail(ErrorKind::io, "cannot read {}: {}", (folder_ / "leases").string(), problem.message());
  if (out.number == 0) return out;
  const fs::path file = lease_path(folder_, out.number);
  out.job_id = trim(TRY(read_file(file)));
  out.released = fs::exists(file.string() + kReleased, problem);
  return out;
}

Result<Lease> ChainFolder::take_lease(const Lease& newest, const std::string& job_id) const {
  const fs::path file = lease_path(folder_, newest.number + 1);
  const int problem = make_once(file, job_id + "\n");
  if (problem == EEXIST)
    return fail(ErrorKind::unavailable, "another link of the chain in {} started at the same time",
                folder_.string());
  if (problem != 0) return fail(ErrorKind::io, "cannot create {}: {}", file.string(), system_reason(problem));
  return Lease{newest.number + 1, job_id, false};
}

Result<void> ChainFolder::release(const Lease& mine) const {
  return replace_file(lease_path(folder_, mine.number).string() + kReleased, "", Durability::synced);
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

Result<Lease> take_over(const ChainFolder& folder, const Submission& scheduler, const std::string& job_id,
                        const Environment& environment, const CommandRunner& commands) {
  const Lease newest = TRY(folder.newest_lease());
  // The same job again was requeued: the scheduler has ended its former run.
  if (newest.number > 0 && !newest.released && newest.job_id != job_id) {
    if (!scheduler.is_job_id(newest.job_id) && newest.job_id != kStopping)
      return fail(Error{.kind = ErrorKind::input,
                        .what = fmt::format("'{}' is no job id of {}", newest.job_id, scheduler.name()),
                        .where = lease_path(folder.path(), newest.number).string(),
                        .hint = "somebody changed the file; remove it if no job of the chain runs"});
    const auto state = commands.run({.argv = scheduler.state_command(newest.job_id),
                                     .environment = scheduler.environment(environment),
                                     .limit = Seconds(30)});
    const auto alive = state ? scheduler.is_alive(*state) : std::nullopt;
    if (alive.value_or(true))
      return fail(
          Error{.kind = ErrorKind::unavailable,
                .what = fmt::format("job {} is link {} of this chain and {}", newest.job_id, newest.number,
                                    alive ? "still runs" : "may still run: the scheduler does not answer"),
                .where = folder.path().string(),
                .hint = "dlrun chain status shows the chain",
                .also = {}});
  }
  return folder.take_lease(newest, job_id);
}

Result<void> check_job_ids(const Submission& scheduler, const ChainFolder& folder, const Chain& chain) {
  const auto check = [&](const std::string& id, const char* file) -> Result<void> {
    if (id.empty() || scheduler.is_job_id(id)) return {};
    return fail(Error{.kind = ErrorKind::input,
                      .what = fmt::format("'{}' is no job id of {}", id, scheduler.name()),
                      .where = (folder.path() / file).string(),
                      .hint = "somebody changed the file; end the jobs with the scheduler's own commands"});
  };
  TRY(check(chain.queued_job, "chain.json"));
  for (const Link& link : chain.links) TRY(check(link.job_id, "chain.json"));
  TRY(check(folder.first_job(), "first-job"));
  for (const std::string& job : folder.jobs_ahead()) TRY(check(job, "jobs-ahead"));
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
  return fail(Error{.kind = ErrorKind::usage,
                    .what = fmt::format("there is no chain below {}", (here / "runs").string()),
                    .where = {},
                    .hint = "name its folder: dlrun chain status DIR",
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
