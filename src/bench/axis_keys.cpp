#include "src/bench/axis_keys.hpp"

#include <algorithm>
#include <map>

#include "src/base/json.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/plan/load_job.hpp"

namespace dlrun::bench {
namespace {

using plan::Override;

// A short name, the key of the job, and the key with frameworks other than the builtin one: empty where they
// have none.
struct AxisName {
  std::string_view name, builtin, others;
};
constexpr std::string_view kServerCount = "roles.ps.count";
constexpr AxisName kAxisNames[] = {
    {"nodes", "resources.nodes", "resources.nodes"},
    {"tasks-per-node", "resources.tasks-per-node", "resources.tasks-per-node"},
    {"gpus", "resources.gpus-per-node", "resources.gpus-per-node"},
    {"threads", "environment.set.OMP_NUM_THREADS", "environment.set.OMP_NUM_THREADS"},
    {"memory", "launch.memory", "launch.memory"},
    {"tensor-parallel", "parallel.tensor", "parallel.tensor"},
    {"pipeline-parallel", "parallel.pipeline", "parallel.pipeline"},
    {"batch", "train.batch", ""},
    {"global-batch", "train.batch", ""},
    {"servers", "train.parameter-server.servers", kServerCount},
    {"parameter-server.servers", "train.parameter-server.servers", kServerCount},
    {"placement", "train.parameter-server.placement", "roles.ps.placement"},
    {"algorithm", "train.allreduce.algorithm", ""},
    {"bucket", "train.allreduce.bucket", ""},
    {"dtype", "train.allreduce.dtype", ""},
    {"data", "train.data", ""},
};

constexpr std::int64_t kMaxThreads = 1 << 20;

const AxisName* find_name(std::string_view key) {
  const auto found = std::find_if(std::begin(kAxisNames), std::end(kAxisNames),
                                  [&](const AxisName& row) { return row.name == key; });
  return found == std::end(kAxisNames) ? nullptr : found;
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const AxisName& row : kAxisNames) out.emplace_back(row.name);
  return out;
}

bool is_builtin(const plan::JobSpec& spec) {
  return spec.framework == "builtin";
}

// Servers are counted where the job has them: as processes of their own, or on ranks.
bool counts_role(const AxisName& name, const plan::JobSpec& spec) {
  return name.others == kServerCount && std::any_of(spec.roles.begin(), spec.roles.end(),
                                                    [](const auto& role) { return role.name == "ps"; });
}

Override override_of(std::string path, const plan::BenchValue& value) {
  const bool is_text = value.value.style == yaml::Style::quoted;
  return {std::move(path), value.value.scalar, value.source,
          is_text ? Override::Reading::text : Override::Reading::yaml};
}

// Made-up data that take as long to compute as the real ones: only the user can tell their shape.
Result<std::string> synthetic_section(const plan::BenchValue& value, const plan::JobSpec& spec) {
  if (!spec.bench || !spec.bench->synthetic)
    return bad_input(value.source, "the axis 'data' has 'synthetic', and the shape of such data is not set",
                     "give it as bench: {synthetic: {shape: [3, 224, 224], classes: 1000}}");
  Json section = yaml::to_json(*spec.bench->synthetic);
  if (section.is_object()) section["format"] = "synthetic";
  return dlrun::to_text(section);
}

// data: real | synthetic
Result<std::vector<Override>> data_override(const plan::BenchValue& value, const plan::JobSpec& spec) {
  const yaml::Node* const data = spec.train.find("data");
  const yaml::Node* const format = data == nullptr ? nullptr : data->find("format");
  const std::string has = format == nullptr ? "" : format->scalar;
  if (value.value.scalar == "real" && has != "synthetic") return std::vector<Override>{};
  if (value.value.scalar == "real")
    return bad_input(value.source, "the axis 'data' has 'real', and the data of the job are synthetic",
                     "set train.data to the real data");
  if (value.value.scalar != "synthetic")
    return bad_input(value.source, fmt::format("the axis 'data' has no value '{}'", value.value.scalar),
                     "write --axis data=real,synthetic");
  if (has == "synthetic") return std::vector<Override>{};
  std::string section = TRY(synthetic_section(value, spec));
  // Sections are laid over each other: that of the real data goes first.
  return std::vector<Override>{{"train.data", "null", value.source},
                               {"train.data", std::move(section), value.source, Override::Reading::yaml}};
}

}  // namespace

Result<void> check_axis(const std::string& key, const std::string& source) {
  if (find_name(key) != nullptr) return {};
  const std::string top = key.substr(0, key.find('.'));
  if (key.find('.') != std::string::npos && top != "bench") return {};
  if (top == "bench")
    return bad_input(source, fmt::format("the axis '{}' would change the benchmark itself", key));
  std::string hint = did_you_mean(key, names());
  if (nearest(key, names()).empty())
    hint += "; or any key of the job file with its section, as train.optimizer.lr";
  return bad_input(source, fmt::format("unknown axis '{}'", key), std::move(hint));
}

Result<std::string> job_key_of(const plan::BenchValue& value, const plan::JobSpec& spec) {
  const AxisName* const name = find_name(value.key);
  if (name == nullptr) return value.key;
  const bool as_others = !is_builtin(spec) || counts_role(*name, spec);
  const std::string_view path = as_others ? name->others : name->builtin;
  if (!path.empty()) return std::string(path);
  return bad_input(value.source,
                   fmt::format("the axis '{}' needs framework: builtin, not {}", value.key, spec.framework),
                   "the program can read a variable: --axis environment.set.BATCH=32,64");
}

Result<void> check_value(const plan::BenchValue& value) {
  TRY(check_axis(value.key, value.source));
  if (value.key == "threads") TRY(yaml::as_integer(value.value, "the axis 'threads'", 1, kMaxThreads));
  return {};
}

Result<void> check_distinct(const plan::BenchPoint& point, const plan::JobSpec& spec) {
  std::map<std::string, std::string> axis_of_path;
  for (const plan::BenchValue& value : point) {
    const std::string path = TRY(job_key_of(value, spec));
    const auto [other, is_new] = axis_of_path.try_emplace(path, value.key);
    if (!is_new)
      return bad_input(value.source,
                       fmt::format("the axes '{}' and '{}' both set {}", other->second, value.key, path),
                       "remove one of the two");
  }
  return {};
}

Result<std::vector<Override>> overrides_of(const plan::BenchPoint& point, const plan::JobSpec& spec) {
  std::vector<Override> out;
  for (const plan::BenchValue& value : point) {
    TRY(check_axis(value.key, value.source));
    const std::string path = TRY(job_key_of(value, spec));
    if (value.key == "data") {
      for (Override& one : TRY(data_override(value, spec))) out.push_back(std::move(one));
    } else if (value.key != "global-batch") {
      out.push_back(override_of(path, value));
    }
  }
  return out;
}

Result<std::optional<Override>> global_batch_of(const plan::BenchPoint& point, const plan::JobSpec& spec,
                                                int ranks) {
  const auto found =
      std::find_if(point.begin(), point.end(), [](const auto& value) { return value.key == "global-batch"; });
  if (found == point.end()) return std::optional<Override>();
  const std::int64_t whole = TRY(yaml::as_integer(found->value, "global-batch", 1, std::int64_t{1} << 40));
  if (spec.train.find("global-batch") != nullptr)  // and divides it by itself
    return std::optional(Override{"train.global-batch", std::to_string(whole), found->source});
  std::int64_t parts = ranks, accumulate = 1;
  const auto read_count = [&](const char* key, std::int64_t& into) {
    const yaml::Node* const node = spec.train.find(key);
    if (node == nullptr) return;
    if (const auto count = parse_integer(node->scalar, 1, 1 << 16)) into = *count;
  };
  read_count("shards", parts);
  read_count("accumulate", accumulate);
  if (whole % (parts * accumulate) != 0)
    return bad_input(found->source,
                     fmt::format("global-batch {} cannot be divided by {} ranks or shards{}", whole, parts,
                                 accumulate == 1 ? "" : fmt::format(" x accumulate {}", accumulate)));
  return std::optional(Override{"train.batch", std::to_string(whole / (parts * accumulate)), found->source});
}

std::vector<Override> measuring_overrides(const plan::BenchSpec& bench, const plan::JobSpec& spec) {
  if (!is_builtin(spec)) return {};
  const std::string source = bench.source.empty() ? "dlrun bench" : bench.source;
  if (bench.epochs)
    return {{"train.benchmark", "null", source},
            {"train.epochs", std::to_string(*bench.epochs), bench.source}};
  std::vector<Override> out;
  for (const char* path : {"train.epochs", "train.stop-at", "elastic"}) out.push_back({path, "null", source});
  const yaml::Node* const own = spec.train.find("benchmark");
  const auto set = [&](const std::string& key, const std::optional<std::uint64_t>& wanted,
                       std::uint64_t usual) {
    if (wanted || own == nullptr || own->find(key) == nullptr)
      out.push_back({"train.benchmark." + key, std::to_string(wanted.value_or(usual)), source});
  };
  set("warmup", bench.warmup, 10);
  set("steps", bench.steps, 100);
  set("repeat", std::nullopt, 1);
  return out;
}

}  // namespace dlrun::bench
