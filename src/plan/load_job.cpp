#include "src/plan/load_job.hpp"

#include <system_error>

#include "src/base/named_file.hpp"
#include "src/base/split_words.hpp"

namespace dlrun::plan {
namespace {

Result<yaml::Node> read_layer(const std::filesystem::path& file) {
  return yaml::parse(TRY(read_named_file(file)), file.string());
}

// command: python train.py --lr 0.1, as the list that more words can be added to.
void split_command(yaml::Node& tree) {
  const yaml::Node* command = tree.find("command");
  if (command == nullptr || command->kind != yaml::Kind::scalar) return;
  // What does not split is told by read_job_spec().
  if (const auto words = split_words(command->scalar); words && !words->empty())
    tree.set("command", yaml::list(*words, command->source));
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

}  // namespace

Result<yaml::Node> load_job_tree(const JobSources& sources) {
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
  yaml::Node tree = TRY(merge_layers(std::move(layers)));
  for (const Override& override : sources.overrides) TRY(apply_override(tree, override));
  split_command(tree);
  TRY(append_words(tree, sources.words, "the command line"));
  return tree;
}

Result<JobSpec> load_job(const JobSources& sources, const std::filesystem::path& here) {
  const yaml::Node tree = TRY(load_job_tree(sources));
  std::filesystem::path base = here;
  if (sources.job_file) base = (here / *sources.job_file).lexically_normal().parent_path();
  return read_job_spec(tree, base);
}

}  // namespace dlrun::plan
