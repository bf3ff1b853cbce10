// Finds adapters by name in an ordered list of folders. A folder that is not there has no adapters; an
// adapter that does not read is an error, never a reason to look on.
#include <algorithm>
#include <set>
#include <system_error>

#include "src/base/fields.hpp"
#include "src/base/file.hpp"
#include "src/base/strings.hpp"
#include "src/plan/adapter.hpp"
#include "src/plan/job_spec.hpp"

namespace dlrun::plan {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> out;
  std::error_code problem;
  for (fs::directory_iterator it(folder, problem), end; !problem && it != end; it.increment(problem))
    if (it->path().extension() == ".yaml") out.push_back(it->path().stem().string());
  std::sort(out.begin(), out.end());
  return out;
}

Result<fs::path> find_file(const AdapterPath& path, const std::string& name, const std::string& asked_at) {
  std::vector<std::string> known, searched;
  std::error_code problem;
  for (const fs::path& folder : path.folders) {
    const fs::path file = folder / (name + ".yaml");
    if (as_job_name(name) == name && fs::exists(file, problem)) return file;
    for (std::string& other : names_in(folder)) known.push_back(std::move(other));
    searched.push_back(folder.string());
  }
  return fail(
      Error{.kind = ErrorKind::input,
            .what = fmt::format("framework '{}' is not known", name),
            .where = asked_at,
            .hint = known.empty() ? "no adapters in " + join(searched, ", ") : did_you_mean(name, known)});
}

// The file, merged over the adapter that it extends. `chain` lists the adapters so far.
Result<yaml::Node> load_tree(const AdapterPath& path, const fs::path& file, std::vector<std::string> chain) {
  yaml::Node tree = TRY(yaml::parse(TRY(read_file(file)), file.string()));
  const yaml::Node* extends = tree.find("extends");
  if (extends == nullptr) return tree;
  const std::string name = TRY(yaml::as_text(*extends, "extends"));
  chain.push_back(file.stem().string());
  if (std::find(chain.begin(), chain.end(), name) != chain.end())
    return yaml::error_at(
        *extends, fmt::format("adapters extend each other in a cycle: {} -> {}", join(chain, " -> "), name));
  const yaml::Node parent = TRY(load_tree(path, TRY(find_file(path, name, extends->source)), chain));
  return extend_adapter(parent, tree);
}

Result<Adapter> load(const AdapterPath& path, const fs::path& file) {
  Adapter adapter = TRY(parse_adapter(TRY(load_tree(path, file, {})), file.string()));
  if (adapter.name != file.stem().string())
    return fail(Error{.kind = ErrorKind::input,
                      .what = fmt::format("the adapter has the name '{}' and its file '{}'", adapter.name,
                                          file.stem().string()),
                      .where = file.string(),
                      .hint = "name the file after the framework"});
  return adapter;
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
  return load(path, TRY(find_file(path, name, asked_at)));
}

Result<Adapter> load_adapter(AdapterPath path, const fs::path& file) {
  path.folders.insert(path.folders.begin(), file.has_parent_path() ? file.parent_path() : fs::path("."));
  return load(path, file);
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
