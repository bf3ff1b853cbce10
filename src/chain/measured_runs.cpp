#include "src/chain/measured_runs.hpp"

#include <algorithm>
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

Result<void> check_fit(const MeasuredRun& run, const MeasureWanted& wanted) {
  if (run.name != wanted.name || run.framework != wanted.framework)
    return fail(ErrorKind::input, "{} is of job {} ({}), and this one is {} ({})", run.source, run.name,
                run.framework, wanted.name, wanted.framework);
  if (run.ranks != wanted.ranks)
    return fail(ErrorKind::input, "{} ran {} rank(s), and this job has {}", run.source, run.ranks,
                wanted.ranks);
  if (!run.pace.save) return fail(ErrorKind::input, "{} saved no checkpoint", run.source);
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
    const auto pace = field<Json>(attempt, "pace", source);
    if (!pace || pace->is_null()) continue;
    out.ranks = TRY(field<Json>(attempt, "ranks", source)).size();
    out.pace = TRY(pace_from_json(*pace, source));
  }
  if (out.pace.steps > 0) return out;
  return fail(
      Error{.kind = ErrorKind::input,
            .what = fmt::format("{} tells no pace: its program reported fewer than two steps", source),
            .where = {},
            .hint = "share/python/dlrun_client.py reports them for programs of your own",
            .also = {}});
}

Result<MeasuredRun> find_measured(const fs::path& here, const fs::path& named, const MeasureWanted& wanted) {
  Error problem{.kind = ErrorKind::input,
                .what = "no earlier run of this job measured what a step and a checkpoint take",
                .where = {},
                .hint =
                    "name one with --measured RUN, or measure now: --probe 2min, or dlrun run the job for a "
                    "while",
                .also = {}};
  constexpr std::size_t shown = 3;
  for (const Candidate& candidate : candidates(here, named)) {
    auto run = measured_of(candidate.record, wanted);
    if (run) return run;
    if (problem.also.size() < shown) problem.also.push_back(run.error().what);
  }
  if (!named.empty())
    problem.what = fmt::format("{} has no record that tells what this job takes", named.string());
  return fail(std::move(problem));
}

}  // namespace dlrun::job
