// Finds adapters by name in an ordered list of folders. A folder that is not there has no adapters; an
// adapter that does not read is an error, never a reason to look on.
#include <algorithm>
#include <set>
#include <system_error>

#include "src/base/file.hpp"
#include "src/base/strings.hpp"
#include "src/plan/adapter.hpp"
#include "src/plan/job_spec.hpp"

namespace dlrun::plan {
namespace {

namespace fs = std::filesystem;

Result<Adapter> load(const fs::path& file) {
  Adapter adapter = TRY(parse_adapter(TRY(read_file(file)), file.string()));
  if (adapter.name != file.stem().string())
    return fail(Error{.kind = ErrorKind::input,
                      .what = fmt::format("the adapter calls itself '{}' and its file '{}'", adapter.name,
                                          file.stem().string()),
                      .where = file.string(),
                      .hint = "name the file after the framework"});
  return adapter;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> out;
  std::error_code problem;
  for (fs::directory_iterator it(folder, problem), end; !problem && it != end; it.increment(problem))
    if (it->path().extension() == ".yaml") out.push_back(it->path().stem().string());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

AdapterPath adapter_path(const std::optional<fs::path>& framework_dir, const fs::path& user_config,
                         const fs::path& installed_data) {
  AdapterPath out;
  if (framework_dir) out.folders.push_back(*framework_dir);
  if (!user_config.empty()) out.folders.push_back(user_config / "frameworks");
  out.folders.push_back(installed_data / "frameworks");
  return out;
}

Result<Adapter> find_adapter(const AdapterPath& path, const std::string& name, const std::string& asked_at) {
  std::vector<std::string> known, looked;
  std::error_code problem;
  for (const fs::path& folder : path.folders) {
    const fs::path file = folder / (name + ".yaml");
    if (as_job_name(name) == name && fs::exists(file, problem)) return load(file);
    for (std::string& other : names_in(folder)) known.push_back(std::move(other));
    looked.push_back(folder.string());
  }
  return fail(
      Error{.kind = ErrorKind::input,
            .what = fmt::format("framework '{}' is not known", name),
            .where = asked_at,
            .hint = known.empty() ? "no adapters in " + join(looked, ", ") : did_you_mean(name, known)});
}

Result<std::vector<Adapter>> all_adapters(const AdapterPath& path) {
  std::set<std::string> names;
  for (const fs::path& folder : path.folders)
    for (const std::string& name : names_in(folder)) names.insert(name);
  std::vector<Adapter> out;
  for (const std::string& name : names) out.push_back(TRY(find_adapter(path, name)));
  return out;
}

}  // namespace dlrun::plan
