#include "src/report/find_run.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>

#include "src/base/file.hpp"
#include "src/base/regular_file.hpp"
#include "src/base/strings.hpp"

namespace dlrun::report {
namespace {

namespace fs = std::filesystem;

// Written when it began, and never again.
fs::file_time_type made_at(const fs::path& folder) {
  std::error_code problem;
  for (const char* name : {"spec.json", "plan.json", "status.json", "record.json", "chain.json"})
    if (const auto when = fs::last_write_time(folder / name, problem); !problem) return when;
  return {};
}

RunEntry entry_of(const fs::path& path) {
  return {path, kind_of(path), made_at(path)};
}

// The one that was asked for may be one of those into which we may not look.
std::optional<Error> closed_one(const std::string& asked, const fs::path& here) {
  for (const fs::path& folder : closed_folders(here)) {
    const std::string name = folder.filename().string();
    if (asked.empty() || folder == here / "runs" || name.starts_with(asked)) return closed_error(folder);
  }
  return std::nullopt;
}

Error no_run(const std::string& asked, const std::vector<RunEntry>& all, const fs::path& here) {
  std::vector<std::string> names;
  for (const RunEntry& entry : all)
    for (std::string name : {entry.folder(), job_name_of(entry.folder())})
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  const std::string near = nearest(asked, names);
  return Error{.kind = ErrorKind::usage,
               .what = fmt::format("there is no run '{}' below {}", asked, (here / "runs").string()),
               .where = {},
               .hint = near.empty() ? "dlrun list shows the runs of this folder; a path names any other"
                                    : fmt::format("did you mean '{}'?", near),
               .also = {}};
}

Error several(const std::string& asked, const std::vector<RunEntry>& fitting) {
  Error out{.kind = ErrorKind::usage,
            .what = fmt::format("{} runs begin with '{}'", fitting.size(), asked),
            .where = {},
            .hint = "write more of the name",
            .also = {}};
  constexpr std::size_t shown = 5;
  for (std::size_t i = 0; i < std::min(shown, fitting.size()); ++i) out.also.push_back(fitting[i].folder());
  return out;
}

template <class Fits>
std::vector<RunEntry> those(const std::vector<RunEntry>& all, Fits fits) {
  std::vector<RunEntry> out;
  std::copy_if(all.begin(), all.end(), std::back_inserter(out), fits);
  return out;
}

// A path may end with "/", as shells complete it.
Result<RunEntry> named_by_path(const fs::path& path, const std::string& asked) {
  RunEntry out = entry_of(path.has_filename() ? path : path.parent_path());
  if (out.kind != FolderKind::none) return out;
  if (is_closed(out.path)) return fail(closed_error(out.path));
  return fail(Error{.kind = ErrorKind::usage,
                    .what = fmt::format("{} is no run, submission or chain", asked),
                    .where = {},
                    .hint = "dlrun list shows the runs of this folder",
                    .also = {}});
}

std::string text_in(const fs::path& file, const char* name) {
  const auto text = read_regular_file(file);
  const auto json = text ? parse_json(*text, file.string()) : Result<Json>(fail(Error{}));
  return json ? field<std::string>(*json, name, "").value_or("") : std::string();
}

Result<RunEntry> find_open_run(const fs::path& here, const std::string& asked) {
  const std::vector<RunEntry> all = all_runs(here);
  if (asked.empty() && all.empty())
    return fail(Error{.kind = ErrorKind::usage,
                      .what = fmt::format("there is no run below {}", (here / "runs").string()),
                      .where = {},
                      .hint = "name its directory",
                      .also = {}});
  if (asked.empty()) return all.front();
  std::error_code problem;
  const auto exact = those(all, [&](const RunEntry& entry) { return entry.folder() == asked; });
  if (!exact.empty()) return exact.front();
  const fs::file_status there = fs::status(here / asked, problem);
  if (problem == std::errc::permission_denied) return fail(closed_error((here / asked).parent_path()));
  if (fs::is_directory(there)) return named_by_path((here / asked).lexically_normal(), asked);
  if (asked.find('/') != std::string::npos) return fail(no_run(asked, all, here));
  const auto of_name =
      those(all, [&](const RunEntry& entry) { return job_name_of(entry.folder()) == asked; });
  if (!of_name.empty()) return of_name.front();
  if (is_digit(asked.front())) {
    const auto of_job = those(all, [&](const RunEntry& entry) { return scheduler_job_of(entry) == asked; });
    if (!of_job.empty()) return of_job.front();
  }
  const auto begun = those(all, [&](const RunEntry& entry) { return entry.folder().starts_with(asked); });
  if (begun.size() == 1) return begun.front();
  return fail(begun.empty() ? no_run(asked, all, here) : several(asked, begun));
}

}  // namespace

std::vector<RunEntry> all_runs(const fs::path& here) {
  std::vector<RunEntry> out;
  std::error_code problem;
  for (const auto& folder : fs::directory_iterator(here / "runs", problem))
    if (RunEntry entry = entry_of(folder.path()); entry.kind != FolderKind::none)
      out.push_back(std::move(entry));
  std::sort(out.begin(), out.end(), [](const RunEntry& a, const RunEntry& b) {
    return std::pair(a.made, a.path) > std::pair(b.made, b.path);
  });
  return out;
}

std::vector<fs::path> closed_folders(const fs::path& here) {
  std::vector<fs::path> out;
  std::error_code problem;
  for (const auto& folder : fs::directory_iterator(here / "runs", problem))
    if (is_closed(folder.path())) out.push_back(folder.path());
  if (problem == std::errc::permission_denied || is_closed(here / "runs")) out = {here / "runs"};
  return out;
}

Result<RunEntry> find_run(const fs::path& here, const std::string& asked) {
  auto found = find_open_run(here, asked);
  if (found) return found;
  if (auto closed = closed_one(asked, here)) return fail(std::move(*closed));
  return found;
}

// The id is "-20261129-193333-ed15", and of an array's element has ".7" behind it.
std::string job_name_of(const std::string& folder) {
  constexpr std::string_view shape = "-dddddddd-dddddd-";
  constexpr std::string_view submitted = "submit-";
  std::string out = folder.starts_with(submitted) ? folder.substr(submitted.size()) : folder;
  for (std::size_t at = 0; at + shape.size() <= out.size(); ++at) {
    const auto fits = [&](std::size_t i) {
      return shape[i] == 'd' ? is_digit(out[at + i]) : out[at + i] == shape[i];
    };
    std::size_t same = 0;
    while (same < shape.size() && fits(same)) ++same;
    if (same == shape.size()) return out.substr(0, at);
  }
  return out;
}

std::string scheduler_job_of(const RunEntry& entry) {
  if (entry.kind == FolderKind::submission) return text_in(entry.path / "submission.json", "job_id");
  if (entry.kind == FolderKind::chain) {
    const auto text = read_regular_file(entry.path / "first-job");
    return text ? std::string(trim(*text)) : std::string();
  }
  for (const char* name : {"status.json", "record.json"})
    if (std::string job = text_in(entry.path / name, "scheduler_job_id"); !job.empty()) return job;
  return {};
}

}  // namespace dlrun::report
