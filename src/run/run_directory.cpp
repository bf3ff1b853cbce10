#include "src/run/run_directory.hpp"

#include <cerrno>
#include <set>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/file.hpp"
#include "src/base/unique_fd.hpp"
#include "src/base/units.hpp"
#include "src/plan/plan_text.hpp"
#include "src/plan/run_directory.hpp"
#include "src/plan/secrets.hpp"
#include "src/render/node_script.hpp"

namespace dlrun::job {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNameAnother = "name a folder that can be written with --run-dir";

Result<void> with_hint(Result<void> made) {
  if (!made) made.error().hint = kNameAnother;
  return made;
}

tl::unexpected<Error> is_in_use(const fs::path& directory) {
  std::error_code ignored;
  return fail(Error{.kind = ErrorKind::io,
                    .what = fmt::format("the run directory {} is {}", directory.string(),
                                        fs::is_directory(directory, ignored) ? "in use" : "no folder"),
                    .where = {},
                    .hint = "name another with --run-dir, or leave the flag away for a new one",
                    .also = {}});
}

// Something has the name: an empty folder will do.
Result<void> take_empty(const fs::path& directory) {
  std::error_code problem;
  if (fs::is_directory(directory, problem) && fs::is_empty(directory, problem) && !problem)
    return with_hint(make_directories(directory, Access::owner_only));
  if (problem && problem != std::errc::no_such_file_or_directory)
    return fail({.kind = ErrorKind::io,
                 .what = fmt::format("cannot read {}: {}", directory.string(), problem.message()),
                 .hint = kNameAnother});
  if (fs::is_symlink(directory, problem) && !fs::exists(directory, problem))
    return fail({.kind = ErrorKind::io,
                 .what = fmt::format("the run directory {} is a link to {}, which does not exist",
                                     directory.string(), fs::read_symlink(directory, problem).string()),
                 .hint = "make the folder, or name another with --run-dir"});
  return is_in_use(directory);
}

Result<void> make_new(const fs::path& directory) {
  if (directory.has_parent_path()) TRY(with_hint(make_directories(directory.parent_path(), Access::shared)));
  if (::mkdir(directory.c_str(), 0700) == 0) return {};
  const int reason = errno;
  if (reason == EEXIST) return take_empty(directory);
  return fail({.kind = ErrorKind::io,
               .what = fmt::format("cannot create {}: {}", directory.string(), system_reason(reason)),
               .hint = kNameAnother});
}

// Of two starts that found the folder empty, one has it: who makes the file, and finds the folder with
// nothing else. From then on it is not empty.
Result<void> take_for_this_run(const fs::path& directory) {
  const fs::path mark = directory / ".claimed";
  std::error_code problem;
  if (const UniqueFd made(::open(mark.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)); !made) {
    const int reason = errno;
    if (reason == EEXIST) return is_in_use(directory);
    return fail({.kind = ErrorKind::io,
                 .what = fmt::format("cannot create {}: {}", mark.string(), system_reason(reason)),
                 .hint = kNameAnother});
  }
  int entries = 0;
  for (fs::directory_iterator at(directory, problem), end; !problem && at != end; at.increment(problem))
    ++entries;
  if (!problem && entries == 1) fs::create_directory(directory / "logs", problem);
  std::error_code ignored;
  fs::remove(mark, ignored);
  if (problem)
    return fail({.kind = ErrorKind::io,
                 .what = fmt::format("cannot write {}: {}", directory.string(), problem.message()),
                 .hint = kNameAnother});
  return entries == 1 ? Result<void>() : is_in_use(directory);
}

}  // namespace

namespace {

using WriteFile = Result<void> (*)(const fs::path&, std::string_view);

Result<void> write_scripts(const plan::Plan& plan, const render::Template& script, const fs::path& folder,
                           WriteFile write) {
  const render::NodeScripts scripts(plan, script);
  for (const plan::NodePlan& node : plan.nodes) {
    const fs::path name = fs::path(plan::node_script_path(plan, node.index)).filename();
    TRY(write(folder / name, TRY(scripts.render(node.index))));
  }
  return {};
}

// A folder that is new is written beside and renamed as a whole: one rename in place of thousands.
Result<void> write_new_folder(const plan::Plan& plan, const render::Template& script,
                              const fs::path& folder) {
  const fs::path beside = folder.string() + fmt::format(".tmp{}", ::getpid());
  std::error_code problem;
  TRY(make_directories(beside, Access::shared));
  auto written = write_scripts(plan, script, beside, write_new_file);
  if (written) fs::rename(beside, folder, problem);
  if (written && !problem) return {};
  std::error_code ignored;
  fs::remove_all(beside, ignored);
  if (!written) return written;
  return fail(ErrorKind::io, "cannot create {}: {}", folder.string(), problem.message());
}

}  // namespace

Result<void> write_node_scripts(const plan::Plan& plan, const fs::path& data, const fs::path& folder) {
  const render::Template script = TRY(render::load_node_template(data));
  const fs::path whole = folder.filename().empty() ? folder.parent_path() : folder;  // "scripts/"
  std::error_code problem;
  if (!fs::exists(whole, problem)) return write_new_folder(plan, script, whole);
  TRY(make_directories(whole, Access::shared));
  return write_scripts(plan, script, whole, [](const fs::path& path, std::string_view content) {
    return replace_file(path, content, Durability::none);
  });
}

Result<void> write_adapter_files(const plan::Plan& plan, const fs::path& directory) {
  for (const auto& [name, content] : plan.files) {
    const fs::path file = directory / name;
    TRY(make_directories(file.parent_path(), Access::shared));
    TRY(replace_file(file, content, Durability::none));
  }
  return {};
}

Result<void> write_allocation(const Prepared& job) {
  return replace_file(fs::path(job.plan.run_directory) / "allocation.json",
                      to_pretty_text(to_json(job.allocation)), Durability::none);
}

Result<void> write_plan(const Prepared& job, const fs::path& data) {
  const fs::path directory = job.plan.run_directory;
  TRY(replace_file(directory / "plan.json", plan::to_pretty_text(plan::without_secrets(job.plan)),
                   Durability::none));
  TRY(write_node_scripts(job.plan, data, directory / "nodes"));
  return write_adapter_files(job.plan, directory);
}

namespace {

Result<void> move(const fs::path& from, const fs::path& to) {
  std::error_code problem;
  fs::rename(from, to, problem);
  if (problem)
    return fail(ErrorKind::io, "cannot move {} to {}: {}", from.string(), to.string(), problem.message());
  return {};
}

}  // namespace

Result<std::optional<Lease>> claim_run_directory(const fs::path& directory,
                                                 const std::optional<JobStart>& start, RunStatus& status) {
  const bool again = start && is_of_earlier_start(directory, *start);
  if (!again) {
    TRY(make_new(directory));
    TRY(take_for_this_run(directory));
  }
  if (!start) return std::optional<Lease>();
  const auto waiting = [&](const std::string& owner, Seconds wait) {
    status.note(fmt::format("the run directory is in use by {}: waiting {} for it to end", owner,
                            format_duration(wait)));
  };
  Lease lease = TRY(take_run_directory(directory, *start, waiting));
  if (again) {
    // Another process of this start may have been quicker.
    if (!is_of_earlier_start(directory, *start)) TRY(make_new(directory));
    const fs::path kept = TRY(keep_earlier_start(directory));
    status.note(fmt::format("{} has started job {} again: what its earlier start left is in {}",
                            start->scheduler, start->job_id, kept.string()));
  }
  TRY(write_job_start(directory, *start));
  return std::optional<Lease>(std::move(lease));
}

void give_up_run_directory(const Prepared& job, NameBefore before) {
  const auto first_part = [](const fs::path& name) { return name.empty() ? name : *name.begin(); };
  std::set<fs::path> others{first_part(job.spec.launch.metrics_file)};
  for (const auto& [name, content] : job.plan.files) others.insert(first_part(name));
  std::vector<fs::path> ours;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(job.plan.run_directory, ignored))
    if (const fs::path name = entry.path().filename(); plan::is_own_file(name) || others.contains(name))
      ours.push_back(entry.path());
  for (const fs::path& path : ours) fs::remove_all(path, ignored);
  if (before == NameBefore::free) fs::remove(job.plan.run_directory, ignored);
}

Result<void> write_run_directory(const Prepared& job, const fs::path& data) {
  const fs::path directory = job.plan.run_directory;
  for (const char* name : {"logs", "log-times"}) TRY(make_directories(directory / name, Access::shared));
  TRY(replace_file(directory / "spec.json", to_pretty_text(plan::to_json(job.spec)), Durability::none));
  TRY(write_allocation(job));
  return write_plan(job, data);
}

Result<void> write_further_attempt(const Prepared& job, const fs::path& data) {
  const fs::path directory = job.plan.run_directory;
  const fs::path before = directory / "attempts" / std::to_string(job.plan.attempt - 1);
  TRY(make_directories(before, Access::shared));
  for (const char* name : {"plan.json", "nodes"}) TRY(move(directory / name, before / name));
  return write_plan(job, data);
}

}  // namespace dlrun::job
