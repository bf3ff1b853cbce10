#include "src/report/page/run_files.hpp"

#include "src/base/file.hpp"
#include "src/base/utc.hpp"
#include "src/chain/folder.hpp"
#include "src/report/run_folder.hpp"

namespace dlrun::report {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

void read_metrics(const fs::path& path, RunFiles& run) {
  run.metrics.begin_file();
  const auto read =
      for_each_line(metrics_file(path), [&](std::string_view line) { run.metrics.add_line(line); });
  if (!read) run.problems.push_back(read.error().text());
}

std::optional<Instant> first_event(const LinkFiles& link) {
  if (link.events.empty()) return std::nullopt;
  return parse_utc(field<std::string>(link.events.front(), "time", "events.jsonl").value_or(""));
}

Result<void> read_link(const fs::path& path, RunFiles& run) {
  RunFolder folder = TRY(read_run_folder(path));
  run.problems.insert(run.problems.end(), folder.problems.begin(), folder.problems.end());
  LinkFiles link{.path = path, .plan = std::move(folder.plan), .record = std::move(folder.record)};
  link.spec = read_or_null(path / "spec.json", run.problems);
  link.events = read_events(link.path, run.problems);
  read_metrics(path, run);
  if (const auto began = first_event(link); began && link.record.is_null())
    link.unrecorded = job::read_unrecorded_run(path, *began);
  run.links.push_back(std::move(link));
  return {};
}

// The folder of a chain may have been moved, with the run directories in it.
fs::path directory_of(const job::Link& link, const fs::path& chain) {
  const fs::path beside = chain / fs::path(link.run_directory).filename();
  return is_there(beside) ? beside : fs::path(link.run_directory);
}

Result<RunFiles> read_chain(const fs::path& path) {
  RunFiles run{.path = path, .chain = TRY(job::ChainFolder(path).read())};
  for (const job::Link& link : run.chain->links) {
    const fs::path folder = directory_of(link, path);
    if (auto read = read_link(folder, run); read) continue;
    run.problems.push_back(fmt::format("link {}: {} has no run", link.number, folder.string()));
    run.links.push_back({.path = folder});
  }
  return run;
}

}  // namespace

Result<RunFiles> read_run_files(const fs::path& path) {
  const FolderKind kind = kind_of(path);
  if (kind == FolderKind::chain) return read_chain(path);
  RunFiles run{.path = path};
  const auto links = kind == FolderKind::submission ? link_directories(path) : std::vector<fs::path>{path};
  if (links.empty())
    return fail(Error{.kind = ErrorKind::input,
                      .what = fmt::format("the job of {} has not run yet", path.string()),
                      .where = {},
                      .hint = "dlrun list shows the runs of this folder",
                      .also = {}});
  TRY(read_link(links.back(), run));
  return run;
}

}  // namespace dlrun::report
