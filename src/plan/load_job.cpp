#include "src/plan/load_job.hpp"

#include <system_error>

#include "src/base/named_file.hpp"
#include "src/base/split_words.hpp"
#include "src/plan/renamed_keys.hpp"
#include "src/plan/script_word.hpp"

namespace dlrun::plan {
namespace {

Result<yaml::Node> read_layer(const std::filesystem::path& file, std::vector<std::string>& warnings) {
  yaml::Node out = TRY(yaml::parse(TRY(read_named_file(file)), file.string()));
  TRY(rename_keys(out, warnings));
  return out;
}

// "$$" of split_words(), where no variables are expanded.
void unescape_dollars(std::string& word) {
  for (std::size_t at = 0; (at = word.find("$$", at)) != std::string::npos; ++at) word.erase(at, 1);
}

Result<void> add_if_there(std::vector<yaml::Node>& layers, const std::optional<std::filesystem::path>& file,
                          std::vector<std::string>& warnings) {
  std::error_code problem;
  if (!file || !std::filesystem::exists(*file, problem)) return {};
  layers.push_back(TRY(read_layer(*file, warnings)));
  return {};
}

// A job without a name has its file's: it names the run directory.
yaml::Node name_layer(const std::filesystem::path& job_file) {
  yaml::Node out;
  out.kind = yaml::Kind::map;
  const std::string name = as_job_name(job_file.stem().string());
  if (!name.empty()) out.set("name", yaml::scalar(name, "the job file's name"));
  return out;
}

Result<yaml::Node> merged_files(const JobSources& sources, std::vector<std::string>& warnings) {
  std::vector<yaml::Node> layers{default_layer()};
  if (sources.job_file) layers.push_back(name_layer(*sources.job_file));
  if (sources.site) layers.push_back(sources.site->preset.settings);
  TRY(add_if_there(layers, sources.site_file, warnings));
  TRY(add_if_there(layers, sources.user_file, warnings));
  if (sources.job_file) {
    layers.push_back(TRY(read_layer(*sources.job_file, warnings)));
    if (layers.back().kind == yaml::Kind::null)
      return fail(Error{
          .kind = ErrorKind::input, .what = "the job file is empty", .where = sources.job_file->string()});
  }
  return merge_layers(std::move(layers));
}

Result<JobSpec> read_tree(yaml::Node tree, const std::filesystem::path& base, const JobSources& sources) {
  ExpandedTree expanded = TRY(expand_variables(tree, sources.variables, sources.scheduler_variables));
  JobSpec spec = TRY(read_job_spec(expanded.tree, base));
  spec.expansions = std::move(expanded.changes);
  // The tree stays as it was written: a submitted job expands it where it runs.
  for (const char* key : {"name", "framework"})
    if (const auto* given = tree.find(key); given == nullptr || given->kind == yaml::Kind::null)
      tree.set(key, *spec.tree.find(key));
  spec.tree = std::move(tree);
  return spec;
}

}  // namespace

void split_command(yaml::Node& tree) {
  const yaml::Node* command = tree.find("command");
  if (command == nullptr || command->kind != yaml::Kind::scalar) return;
  // What does not split is told by read_job_spec().
  auto words = split_words(command->scalar);
  if (!words || words->empty()) return;
  if (const auto script = script_word(*words)) unescape_dollars((*words)[*script]);
  tree.set("command", yaml::list(*words, command->source));
}

Result<yaml::Node> load_job_tree(const JobSources& sources, std::vector<std::string>& warnings) {
  yaml::Node tree = sources.frozen ? sources.frozen->tree : TRY(merged_files(sources, warnings));
  if (sources.frozen) TRY(rename_keys(tree, warnings));
  for (Override override : sources.overrides) {
    override.path = renamed_key(override.path, warnings);
    TRY(apply_override(tree, override));
  }
  rename_values(tree, warnings);
  split_command(tree);
  TRY(append_words(tree, sources.words, kCommandLine));
  return tree;
}

Result<JobSpec> load_job(const JobSources& sources, const std::filesystem::path& here) {
  std::vector<std::string> warnings;
  yaml::Node tree = TRY(load_job_tree(sources, warnings));
  std::filesystem::path base = here;
  if (sources.job_file) base = (here / *sources.job_file).lexically_normal().parent_path();
  if (sources.frozen) base = sources.frozen->base_directory;
  JobSpec spec = TRY(read_tree(std::move(tree), base, sources));
  spec.warnings = std::move(warnings);
  return spec;
}

Result<JobSpec> override_job(const JobSpec& spec, const JobSources& sources,
                             const std::vector<Override>& overrides) {
  yaml::Node tree = spec.tree;
  for (const Override& override : overrides) TRY(apply_override(tree, override));
  JobSpec out = TRY(read_tree(std::move(tree), spec.base_directory, sources));
  out.warnings = spec.warnings;
  return out;
}

}  // namespace dlrun::plan
