#include "src/plan/load_job.hpp"

#include <system_error>

#include "src/base/file.hpp"

namespace dlrun::plan {
namespace {

Result<yaml::Node> read_layer(const std::filesystem::path& file) {
  return yaml::parse(TRY(read_file(file)), file.string());
}

Result<void> add_if_there(std::vector<yaml::Node>& layers, const std::optional<std::filesystem::path>& file) {
  std::error_code problem;
  if (!file || !std::filesystem::exists(*file, problem)) return {};
  layers.push_back(TRY(read_layer(*file)));
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

Result<yaml::Node> merged_files(const JobSources& sources) {
  std::vector<yaml::Node> layers{default_layer()};
  if (sources.job_file) layers.push_back(name_layer(*sources.job_file));
  TRY(add_if_there(layers, sources.site_file));
  TRY(add_if_there(layers, sources.user_file));
  if (sources.job_file) {
    layers.push_back(TRY(read_layer(*sources.job_file)));
    if (layers.back().kind == yaml::Kind::null)
      return fail(Error{
          .kind = ErrorKind::input, .what = "the job file is empty", .where = sources.job_file->string()});
  }
  return merge_layers(std::move(layers));
}

}  // namespace

Result<yaml::Node> load_job_tree(const JobSources& sources) {
  yaml::Node tree = sources.frozen ? sources.frozen->tree : TRY(merged_files(sources));
  for (const Override& override : sources.overrides) TRY(apply_override(tree, override));
  TRY(append_words(tree, sources.words, "the command line"));
  return tree;
}

Result<JobSpec> load_job(const JobSources& sources, const std::filesystem::path& here) {
  const yaml::Node tree = TRY(load_job_tree(sources));
  std::filesystem::path base = here;
  if (sources.job_file) base = (here / *sources.job_file).lexically_normal().parent_path();
  if (sources.frozen) base = sources.frozen->base_directory;
  return read_job_spec(tree, base);
}

}  // namespace dlrun::plan
