#include "src/plan/frozen_job.hpp"

#include <algorithm>
#include <map>

#include "src/base/fields.hpp"
#include "src/base/file.hpp"
#include "src/base/json.hpp"
#include "src/base/named_file.hpp"
#include "src/base/strings.hpp"
#include "src/plan/job_spec.hpp"
#include "src/plan/load_job.hpp"
#include "src/plan/secret_words.hpp"
#include "src/plan/secrets.hpp"

namespace dlrun::plan {
namespace {

namespace fs = std::filesystem;
using yaml::Kind;
using yaml::Node;

constexpr const char* kFrozenSchema = "dlrun.frozen-job/1";

Node* frozen_child(Node* node, std::string_view key) {
  if (node == nullptr) return nullptr;
  if (node->kind == Kind::list) {
    for (std::size_t i = 0; i < node->items.size(); ++i)
      if (std::to_string(i) == key) return &node->items[i];
  }
  for (auto& [name, value] : node->entries)
    if (name == key) return &value;
  return nullptr;
}

// "environment.set.HF_TOKEN", "command.3"
Node* node_at(Node& root, std::string_view path) {
  Node* out = &root;
  for (const std::string& key : split(path, '.')) out = frozen_child(out, key);
  return out;
}

// A text of the tree that has a secret's value, and what may be kept of it.
struct HiddenText {
  std::string path, shown;
};

void hide_lines(const Node* lines, const std::string& path, const std::vector<std::string>& patterns,
                std::vector<HiddenText>& out) {
  if (lines == nullptr) return;
  const auto hide = [&](const Node& line, const std::string& at) {
    std::string shown = without_secret_values(line.scalar, patterns);
    if (line.kind == Kind::scalar && shown != line.scalar) out.push_back({at, std::move(shown)});
  };
  hide(*lines, path);
  for (std::size_t i = 0; i < lines->items.size(); ++i) hide(lines->items[i], fmt::format("{}.{}", path, i));
}

void hide_words(const Node* command, const std::vector<std::string>& patterns, std::vector<HiddenText>& out) {
  if (command == nullptr) return;
  Argv argv;
  for (const Node& word : command->items) argv.push_back(word.scalar);
  const Argv shown = without_secret_values(argv, patterns);
  for (std::size_t i = 0; i < argv.size(); ++i)
    if (shown[i] != argv[i]) out.push_back({fmt::format("command.{}", i), shown[i]});
}

std::vector<HiddenText> hidden_texts(Node& tree, const std::vector<std::string>& patterns) {
  std::vector<HiddenText> out;
  if (const Node* set = node_at(tree, "environment.set"))
    for (const auto& [name, value] : set->entries)
      if (value.kind == Kind::scalar && is_secret(name, patterns))
        out.push_back({"environment.set." + name, std::string(kHidden)});
  for (const char* path : {"environment.setup", "environment.teardown"})
    hide_lines(node_at(tree, path), path, patterns, out);
  hide_words(node_at(tree, "command"), patterns, out);
  return out;
}

std::vector<std::string> patterns_of(Node& tree) {
  const Node* patterns = node_at(tree, "environment.secrets");
  return patterns == nullptr
             ? std::vector<std::string>{}
             : yaml::as_text_list(*patterns, "environment.secrets").value_or(std::vector<std::string>{});
}

// "job.yaml" of "job.yaml:4:9"; empty where the source is no place in a file.
std::string file_of(const std::string& source) {
  std::string_view rest = source;
  for (int field = 0; field < 2; ++field) {
    const std::size_t colon = rest.rfind(':');
    if (colon == rest.npos || colon + 1 == rest.size() ||
        rest.find_first_not_of("0123456789", colon + 1) != rest.npos)
      return {};
    rest = rest.substr(0, colon);
  }
  return std::string(rest);
}

tl::unexpected<Error> typed_secret(const std::string& path, const std::string& source) {
  return fail(
      Error{.kind = ErrorKind::usage,
            .what = fmt::format("{} (from {}) has the value of a secret, which a submission does not keep",
                                path, source),
            .where = {},
            .hint = "write it into the job file, or read it where the job runs, as in environment.setup: "
                    "[\"export HF_TOKEN=$(cat ~/.hf-token)\"]"});
}

tl::unexpected<Error> secret_is_gone(const std::string& path, const std::string& file, std::string why) {
  return fail(Error{.kind = ErrorKind::input,
                    .what = fmt::format("the secret in {} cannot be read from {}: {}", path, file, why),
                    .where = {},
                    .hint = "the values of secrets are not copied into a submission: keep the file unchanged "
                            "until the job has started, or submit again"});
}

Result<void> restore_secret(Node& tree, const std::string& path, const std::string& file,
                            std::map<std::string, Node>& read) {
  if (!read.contains(file)) {
    const auto text = read_file(file);
    if (!text) return secret_is_gone(path, file, text.error().what);
    read[file] = TRY(yaml::parse(*text, file));
    split_command(read[file]);
  }
  const Node* value = node_at(read[file], path);
  Node* target = node_at(tree, path);
  if (value == nullptr || value->kind != Kind::scalar || target == nullptr)
    return secret_is_gone(path, file, "it is no longer there");
  target->scalar = value->scalar;
  target->style = value->style;
  return {};
}

Result<void> restore_secrets(Node& tree, const Json& secrets, const std::string& where) {
  std::map<std::string, Node> read;
  std::vector<std::pair<HiddenText, std::string>> expected;
  for (const Json& secret : secrets) {
    const auto path = TRY(field<std::string>(secret, "path", where));
    const auto file = TRY(field<std::string>(secret, "file", where));
    const Node* frozen = node_at(tree, path);
    expected.push_back({{path, frozen == nullptr ? "" : frozen->scalar}, file});
  }
  for (const auto& [text, file] : expected) TRY(restore_secret(tree, text.path, file, read));
  // A line that is another one now is not what was submitted.
  const std::vector<HiddenText> now = hidden_texts(tree, patterns_of(tree));
  for (const auto& [text, file] : expected)
    if (std::none_of(now.begin(), now.end(), [&, &text = text](const HiddenText& one) {
          return one.path == text.path && one.shown == text.shown;
        }))
      return secret_is_gone(text.path, file, "the file was changed at that line");
  return {};
}

}  // namespace

Result<std::string> freeze_job(const JobSpec& spec, const std::optional<fs::path>& job_file,
                               const fs::path& here) {
  Node tree = spec.tree;
  Json secrets = Json::array();
  for (const HiddenText& text : hidden_texts(tree, spec.environment.rules.secrets)) {
    Node& node = *node_at(tree, text.path);
    const std::string file = file_of(node.source);
    if (file.empty()) return typed_secret(text.path, node.source);
    secrets.push_back({{"path", text.path}, {"file", (here / file).lexically_normal().string()}});
    node.scalar = text.shown;
    node.style = yaml::Style::quoted;
  }
  const Json out{
      {"schema", kFrozenSchema},
      {"job-file", job_file ? Json((here / *job_file).lexically_normal().string()) : Json(nullptr)},
      {"base-directory", spec.base_directory.string()},
      {"job", yaml::to_json_with_sources(tree)},
      {"secrets", std::move(secrets)}};
  std::string text = to_pretty_text(out);
  // JSON cannot hold other bytes, and a job that is not what was typed must not run.
  if (const auto again = parse_json(text, "spec.json"); !again || *again != out)
    return fail(Error{.kind = ErrorKind::input,
                      .what = "the job has bytes that are not UTF-8, and cannot be submitted",
                      .where = job_file ? job_file->string() : std::string(),
                      .hint = "write the job file and its arguments in UTF-8"});
  return text;
}

Result<FrozenJob> read_frozen_job(const fs::path& file) {
  const std::string where = file.string();
  const Json json = TRY(parse_json(TRY(read_named_file(file)), where));
  if (const auto schema = TRY(field<std::string>(json, "schema", where)); schema != kFrozenSchema)
    return fail(ErrorKind::input, "{}: schema '{}' is not {}", where, schema, kFrozenSchema);
  FrozenJob out;
  out.tree = TRY(yaml::from_json_with_sources(TRY(field<Json>(json, "job", where))));
  out.base_directory = TRY(field<std::string>(json, "base-directory", where));
  if (const Json job_file = TRY(field<Json>(json, "job-file", where)); !job_file.is_null())
    out.job_file = TRY(field<std::string>(json, "job-file", where));
  TRY(restore_secrets(out.tree, TRY(field<Json>(json, "secrets", where)), where));
  return out;
}

}  // namespace dlrun::plan
