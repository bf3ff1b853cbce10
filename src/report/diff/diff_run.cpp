#include "src/report/diff/diff_run.hpp"

#include "src/report/run_folder.hpp"

namespace dlrun::report {
namespace {

namespace fs = std::filesystem;

Result<fs::path> run_directory_of(const RunEntry& entry) {
  if (entry.kind == FolderKind::run) return entry.path;
  const std::vector<fs::path> links = link_directories(entry.path);
  if (!links.empty()) return links.back();
  return fail(Error{.kind = ErrorKind::usage,
                    .what = entry.folder() + " has no run directory yet",
                    .where = {},
                    .hint = "dlrun status " + entry.folder(),
                    .also = {}});
}

}  // namespace

Json provenance_of_events(const std::vector<Json>& events) {
  Json out = Json::object();
  for (const Json& event : events) {
    if (field<std::string>(event, "event", "").value_or("") != "provenance") continue;
    for (const char* name : {"program", "data"})
      if (event.contains(name)) out[name] = event[name];
    if (event.contains("node")) out["nodes"].push_back(event["node"]);
  }
  return out;
}

Result<DiffRun> read_diff_run(const RunEntry& entry) {
  DiffRun out{.path = TRY(run_directory_of(entry)), .spec = {}, .plan = {}, .record = {}};
  RunFolder folder = TRY(read_run_folder(out.path));
  out.problems = std::move(folder.problems);
  out.plan = std::move(folder.plan), out.record = std::move(folder.record);
  out.spec = read_or_null(out.path / "spec.json", out.problems);
  if (!out.record.is_null()) {
    out.provenance = field<Json>(out.record, "provenance", "record").value_or(Json::object());
    return out;
  }
  out.provenance = provenance_of_events(read_events(out.path, out.problems));
  return out;
}

}  // namespace dlrun::report
