#include "src/chain/measured_runs.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "src/base/file.hpp"
#include "src/chain/folder.hpp"
#include "src/chain/times.hpp"

namespace dlrun::job {
namespace {

namespace fs = std::filesystem;

struct Candidate {
  fs::path record;
  fs::file_time_type written;
};

void add_record(const fs::path& record, std::vector<Candidate>& out) {
  std::error_code problem;
  const auto written = fs::last_write_time(record, problem);
  if (!problem) out.push_back({record, written});
}

// Of a run directory, and of the links of a chain.
void add_records_of(const fs::path& folder, std::vector<Candidate>& out) {
  add_record(folder / "record.json", out);
  std::error_code problem;
  for (const auto& entry : fs::directory_iterator(folder, problem))
    if (entry.is_directory(problem)) add_record(entry.path() / "record.json", out);
}

std::vector<Candidate> candidates(const fs::path& here, const fs::path& named) {
  std::vector<Candidate> out;
  std::error_code problem;
  if (!named.empty() && fs::is_regular_file(named, problem)) {
    add_record(named, out);
  } else if (!named.empty()) {
    add_records_of(named, out);
  } else {
    for (const auto& entry : fs::directory_iterator(here / "runs", problem))
      add_records_of(entry.path(), out);
  }
  std::sort(out.begin(), out.end(),
            [](const Candidate& a, const Candidate& b) { return a.written > b.written; });
  return out;
}

std::int64_t number_or_zero(const Json& json, const char* name) {
  return std::max<std::int64_t>(field<std::int64_t>(json, name, "progress").value_or(0), 0);
}

// A record of an older dlrun calls it "pace".
Json timing_of(const Json& attempt, const std::string& source) {
  for (const char* const name : {"step_timing", "pace"})
    if (auto found = field<Json>(attempt, name, source); found && !found->is_null()) return *std::move(found);
  return nullptr;
}

Result<void> check_fit(const MeasuredRun& run, const MeasureWanted& wanted) {
  if (run.name != wanted.name || run.framework != wanted.framework)
    return fail(ErrorKind::input, "{} is a run of job {} ({}), and this job is {} ({})", run.source, run.name,
                run.framework, wanted.name, wanted.framework);
  const std::size_t fewest = wanted.min_ranks > 0 ? wanted.min_ranks : wanted.ranks;
  if (run.ranks < fewest || run.ranks > wanted.ranks)
    return fail(
        ErrorKind::input, "{} has {} rank(s), and this job has {}", run.source, run.ranks,
        fewest < wanted.ranks ? fmt::format("{} to {}", fewest, wanted.ranks) : std::to_string(wanted.ranks));
  if (!run.timing.save) return fail(ErrorKind::input, "{} saved no checkpoint", run.source);
  return {};
}

Result<MeasuredRun> measured_of(const fs::path& record, const MeasureWanted& wanted) {
  MeasuredRun out =
      TRY(read_measured(TRY(parse_json(TRY(read_file(record)), record.string())), record.string()));
  TRY(check_fit(out, wanted));
  if (const auto chain = ChainFolder(record.parent_path().parent_path()).read())
    out.queue = mean_queue(*chain);
  return out;
}

}  // namespace

Result<MeasuredRun> read_measured(const Json& record, const std::string& source) {
  MeasuredRun out;
  out.source = source;
  out.name = TRY(field<std::string>(record, "name", source));
  out.framework = TRY(field<std::string>(record, "framework", source));
  const Json progress = TRY(field<Json>(record, "last_progress", source));
  out.steps = number_or_zero(progress, "steps");
  if (const auto epochs = number_or_zero(progress, "epochs"); epochs > 0)
    out.steps_per_epoch = out.steps / epochs;
  const Json attempts = TRY(field<Json>(record, "attempts", source));
  for (const Json& attempt : attempts) {  // the last one that tells
    const Json timing = timing_of(attempt, source);
    if (timing.is_null()) continue;
    out.ranks = TRY(field<Json>(attempt, "ranks", source)).size();
    out.timing = TRY(step_timing_from_json(timing, source));
  }
  if (out.timing.steps > 0) return out;
  return fail(
      Error{.kind = ErrorKind::input,
            .what = fmt::format("{} has no step timing: its program reported fewer than two steps", source),
            .where = {},
            .hint = "share/python/dlrun_client.py reports them for programs of your own",
            .also = {}});
}

Result<MeasuredRun> find_measured(const fs::path& here, const fs::path& named, const MeasureWanted& wanted) {
  std::vector<MeasuredRun> found = TRY(find_measured_sizes(
      here, named, {.name = wanted.name, .framework = wanted.framework, .ranks = wanted.ranks}));
  return std::move(found.front());
}

Result<std::vector<MeasuredRun>> find_measured_sizes(const fs::path& here, const fs::path& named,
                                                     const MeasureWanted& wanted) {
  Error problem{
      .kind = ErrorKind::input,
      .what = "no earlier run of this job measured the time of a step and of a checkpoint",
      .where = {},
      .hint = "name a run with --measured RUN, or measure now, with --probe 2min or a short dlrun run",
      .also = {}};
  constexpr std::size_t shown = 3;
  std::map<std::size_t, MeasuredRun> newest;
  for (const Candidate& candidate : candidates(here, named)) {
    auto run = measured_of(candidate.record, wanted);
    if (run)
      newest.emplace(run->ranks, *run);  // the newest come first
    else if (problem.also.size() < shown)
      problem.also.push_back(run.error().what);
  }
  std::vector<MeasuredRun> out;
  for (auto& [ranks, run] : newest) out.push_back(std::move(run));
  if (!out.empty()) return out;
  if (!named.empty())
    problem.what = fmt::format("{} has no record with the times of this job", named.string());
  return fail(std::move(problem));
}

}  // namespace dlrun::job
