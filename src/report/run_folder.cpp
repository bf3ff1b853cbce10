#include "src/report/run_folder.hpp"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

#include "src/base/file.hpp"
#include "src/base/regular_file.hpp"

namespace dlrun::report {
namespace {

namespace fs = std::filesystem;

bool has(const fs::path& folder, const char* name) {
  std::error_code problem;
  return fs::is_regular_file(folder / name, problem);
}

Result<std::string> read_bounded(const fs::path& file) {
  const RegularFile open = TRY(open_regular_file(file));
  return read_all(open.fd.get(), file, kMaxJsonBytes);
}

}  // namespace

// Writers replace these files at once, so that a half of one is a damaged one.
Json read_or_null(const fs::path& file, std::vector<std::string>& problems) {
  std::error_code problem;
  if (!fs::exists(file, problem)) return nullptr;
  const auto text = read_bounded(file);
  auto value = text ? parse_json(*text, file.string()) : Result<Json>(tl::unexpected(text.error()));
  if (value) return std::move(*value);
  problems.push_back(value.error().text());
  return nullptr;
}

// A submission's spec.json is a frozen job, and a run's the job itself; so the script tells them apart.
FolderKind kind_of(const fs::path& folder) {
  if (has(folder, "chain.json")) return FolderKind::chain;
  if (has(folder, "status.json") || has(folder, "plan.json") || has(folder, "record.json"))
    return FolderKind::run;
  return has(folder, "job.sh") && has(folder, "spec.json") ? FolderKind::submission : FolderKind::none;
}

bool is_closed(const fs::path& folder) {
  return ::faccessat(AT_FDCWD, (folder / "").c_str(), X_OK, AT_EACCESS) != 0 && errno == EACCES;
}

Error closed_error(const fs::path& folder) {
  return {.kind = ErrorKind::input,
          .what = fmt::format("cannot look into {}: {}", folder.string(), system_reason(EACCES)),
          .hint = "its owner can open it: chmod go+rx"};
}

Result<RunFolder> read_run_folder(const fs::path& path, Depth depth) {
  if (is_closed(path)) return fail(closed_error(path));
  if (kind_of(path) != FolderKind::run)
    return fail(Error{.kind = ErrorKind::input,
                      .what = fmt::format("{} is no run directory: it has no plan.json", path.string()),
                      .where = {},
                      .hint = "dlrun list shows the runs of this folder",
                      .also = {}});
  RunFolder out{.path = path, .plan = {}, .allocation = {}, .status = {}, .record = {}};
  if (depth == Depth::whole) {
    out.plan = read_or_null(path / "plan.json", out.problems);
    out.allocation = read_or_null(path / "allocation.json", out.problems);
  }
  out.status = read_or_null(path / "status.json", out.problems);
  // Last: a run that ends while it is read has its record.
  out.record = read_or_null(path / "record.json", out.problems);
  return out;
}

std::vector<Json> read_events(const fs::path& run_directory, std::vector<std::string>& problems) {
  auto events = read_json_lines(run_directory / "events.jsonl");
  if (!events) {
    problems.push_back(events.error().text());
    return {};
  }
  if (events->unreadable > 0)
    problems.push_back(fmt::format("{}: {} of {} lines could not be read",
                                   (run_directory / "events.jsonl").string(), events->unreadable,
                                   events->unreadable + events->values.size()));
  return std::move(events->values);
}

fs::path metrics_file(const fs::path& run_directory) {
  return run_directory / "metrics.jsonl";
}

std::vector<fs::path> link_directories(const fs::path& chain_folder) {
  std::vector<fs::path> out;
  std::error_code problem;
  for (const auto& entry : fs::directory_iterator(chain_folder, problem))
    if (entry.path().filename().string().starts_with("link-") && kind_of(entry.path()) == FolderKind::run)
      out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace dlrun::report
