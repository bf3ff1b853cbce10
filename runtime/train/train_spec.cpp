// See train_spec.hpp.
#include "runtime/train/train_spec.hpp"

#include <array>

#include "runtime/base/checksum.hpp"
#include "runtime/models/models.hpp"
#include "runtime/train/data_section.hpp"
#include "runtime/train/exchange_section.hpp"
#include "runtime/train/loss_section.hpp"
#include "runtime/train/optimizer_section.hpp"
#include "runtime/train/sync_section.hpp"
#include "src/base/fields.hpp"
#include "src/base/file.hpp"
#include "src/base/json.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun::runtime {
namespace {

using yaml::Fields;
using YamlNode = yaml::Node;

Result<Precision> read_precision(Fields& train) {
  static const std::vector<std::string> names = {"f32", "tf32", "bf16"};
  static constexpr std::array precisions{Precision::f32, Precision::tf32, Precision::bf16};
  return precisions[TRY(train.choice_or("precision", 0, names))];
}

constexpr std::int64_t kMaxBatch = 1 << 20;

Result<void> read_batch(Fields& train, TrainSpec& out) {
  out.batch = TRY(train.integer_or("batch", out.batch, 1, kMaxBatch));
  out.accumulate = static_cast<int>(TRY(train.integer_or("accumulate", 1, 1, 1 << 16)));
  const YamlNode* node = train.find("global-batch");
  if (node == nullptr) return {};
  out.global_batch = {TRY(yaml::as_integer(*node, "train.global-batch", 1, std::int64_t{1} << 40)),
                      node->source};
  if (!train.has("batch")) return {};
  return yaml::error_at(*node, "train.batch and train.global-batch are both set", "keep one of the two");
}

// What is known before the ranks are.
Result<void> check_global_batch(Fields& train, TrainSpec& out) {
  if (!out.global_batch) return {};
  if (out.shards && !out.shards->count)
    return yaml::error_at(*train.find("global-batch"),
                          "train.global-batch needs a number of shards, and train.shards is auto",
                          "write their number: shards: 8");
  if (out.shards) return divide_global_batch(out, *out.shards->count);
  if (out.global_batch->rows % out.accumulate == 0) return {};
  return yaml::error_at(*train.find("global-batch"),
                        fmt::format("train.global-batch {} cannot be divided by train.accumulate {}",
                                    out.global_batch->rows, out.accumulate));
}

Result<std::optional<BenchmarkSpec>> read_benchmark(Fields& train) {
  const YamlNode* node = train.find("benchmark");
  if (node == nullptr) return std::optional<BenchmarkSpec>();
  if (const YamlNode* epochs = train.find("epochs"))
    return yaml::error_at(*epochs, "train.epochs and train.benchmark exclude each other",
                          "keep one of the two; --set train.epochs=null leaves epochs out");
  Fields fields = TRY(Fields::of(*node, train.path("benchmark")));
  BenchmarkSpec out;
  out.warmup = static_cast<std::uint64_t>(TRY(fields.integer_or("warmup", 10, 0, 1'000'000)));
  out.steps = static_cast<std::uint64_t>(TRY(fields.integer_or("steps", 100, 1, 100'000'000)));
  out.repeat = static_cast<std::uint64_t>(TRY(fields.integer_or("repeat", 3, 1, 1000)));
  TRY(fields.finish());
  return std::optional(out);
}

Result<std::optional<TraceSpec>> read_trace(Fields& train) {
  const YamlNode* node = train.find("trace");
  if (node == nullptr) return std::optional<TraceSpec>();
  Fields fields = TRY(Fields::of(*node, train.path("trace")));
  TraceSpec out;
  out.skip = static_cast<std::uint64_t>(TRY(fields.integer_or("skip", 10, 0, 1'000'000'000)));
  out.steps = static_cast<std::uint64_t>(TRY(fields.integer_or("steps", 20, 1, 1000)));
  TRY(fields.finish());
  return std::optional(out);
}

Result<void> read_model(Fields& train, TrainSpec& out) {
  const YamlNode* node = TRY(train.require("model"));
  out.model_where = node->source;
  if (node->kind == yaml::Kind::map) {
    out.layers = TRY(read_layer_list(*node, train.path("model")));
    // Another list under the same name is another training: a checkpoint of the one is not the other's.
    out.layers_json = dlrun::to_text(yaml::to_json(*node));
    out.model = fmt::format("{}-{:08x}", out.layers->name, checksum(out.layers_json) & 0xffffffffU);
    return {};
  }
  const std::vector<std::string> names = model_names();
  out.model = names[TRY(yaml::as_choice(*node, train.path("model"), names))];
  return {};
}

// pipeline: {cut: [h.6]}
Result<void> read_pipeline(Fields& train, TrainSpec& out) {
  const YamlNode* node = train.find("pipeline");
  if (node == nullptr) return {};
  Fields fields = TRY(Fields::of(*node, train.path("pipeline")));
  const YamlNode* cut = TRY(fields.require("cut"));
  TRY(fields.finish());
  const std::vector<std::string> layers = TRY(yaml::as_text_list(*cut, fields.path("cut")));
  if (layers.empty())
    return yaml::error_at(*cut, "train.pipeline.cut names no layer",
                          "name the first layer of each stage but the first");
  const bool is_list = cut->kind == yaml::Kind::list;
  for (std::size_t i = 0; i < layers.size(); ++i)
    out.cuts.push_back({layers[i], is_list ? cut->items[i].source : cut->source});
  return {};
}

void note_places(const YamlNode& node, const std::string& path, std::map<std::string, std::string>& out) {
  for (const auto& [key, value] : node.entries) {
    out[path + key] = value.source;
    if (value.kind == yaml::Kind::map) note_places(value, path + key + ".", out);
  }
}

// init-from: FILE, or {file: FILE, skip: [fc.*]}
Result<void> read_init(Fields& train, TrainSpec& out) {
  out.freeze = TRY(train.text_list("freeze"));
  const YamlNode* node = train.find("init-from");
  if (node == nullptr) return {};
  out.init_from.emplace();
  if (node->kind != yaml::Kind::map) {
    out.init_from->file = TRY(yaml::as_text(*node, train.path("init-from")));
    return {};
  }
  Fields fields = TRY(Fields::of(*node, train.path("init-from")));
  out.init_from->file = TRY(fields.text("file"));
  out.init_from->skip = TRY(fields.text_list("skip"));
  return fields.finish();
}

// A generator makes pixels in -1..1, and so real ones are to lie there. Nobody can say when it is right.
Result<void> adapt_to_gan(Fields& train, TrainSpec& out) {
  if (const YamlNode* stop = train.find("stop-at"))
    return yaml::error_at(
        *stop, fmt::format("train.stop-at needs an accuracy, which {}, a GAN, does not have", out.model),
        "remove train.stop-at");
  if (out.conversion.mean.empty() && out.conversion.std_dev.empty())
    out.conversion.mean = out.conversion.std_dev = std::vector<double>(out.data.source->channels(), 0.5);
  return {};
}

Result<void> read_train(const YamlNode& node, TrainSpec& out) {
  Fields fields = TRY(Fields::of(node, "train"));
  note_places(node, "", out.places);
  out.places[""] = node.source;
  TRY(read_model(fields, out));
  TRY(read_pipeline(fields, out));
  TRY(read_init(fields, out));
  TRY(read_data_section(fields, out));
  TRY(read_batch(fields, out));
  out.benchmark = TRY(read_benchmark(fields));
  out.trace = TRY(read_trace(fields));
  out.epochs = static_cast<std::uint64_t>(TRY(fields.integer_or("epochs", 1, 1, 1'000'000'000)));
  out.optimizer = TRY(read_optimizer(fields));
  out.patterns = TRY(read_patterns(fields));
  out.schedule = TRY(read_schedule(fields, out));
  if (fields.has("clip-norm")) out.clip_norm = TRY(fields.number_or("clip-norm", 1, 1e-12, 1e12));
  TRY(read_loss(fields, out));
  out.label_smoothing = TRY(read_label_smoothing(fields, out));
  if (fields.has("mixup")) out.mixup = TRY(fields.number_or("mixup", 0.2, 0.05, 2));
  if (fields.has("ema")) out.ema = TRY(fields.number_or("ema", 0.9999, 0.01, 1 - 1e-7));
  out.precision = TRY(read_precision(fields));
  static const std::vector<std::string> devices = {"auto", "cpu", "cuda"};
  out.device = static_cast<TrainSpec::Device>(TRY(fields.choice_or("device", 0, devices)));
  if (out.precision == Precision::tf32 && out.device == TrainSpec::Device::cpu)
    return yaml::error_at(*fields.find("precision"),
                          "train.precision tf32 needs a GPU, and train.device is cpu",
                          "write precision: f32, or device: cuda");
  TRY(read_allreduce(fields, out));
  TRY(read_parameter_server(fields, out));
  TRY(read_shards(fields, out));
  TRY(check_sharded_state(fields, out));
  TRY(check_global_batch(fields, out));
  TRY(read_sync(fields, out));
  out.seed = static_cast<std::uint64_t>(TRY(fields.integer_or("seed", 1, 0, INT64_MAX)));
  out.mllog = TRY(fields.bool_or("mllog", false));
  if (purpose_of(out.model) == Purpose::generate) TRY(adapt_to_gan(fields, out));
  if (!out.freeze.empty() && out.device == TrainSpec::Device::cuda)
    return yaml::error_at(*fields.find("freeze"),
                          "train.freeze is supported on CPUs only, and train.device is cuda",
                          "set train.device to cpu, or remove train.freeze");
  TRY(read_target(fields, out));
  TRY(check_targets(fields, out));
  out.evaluate = TRY(read_evaluate(fields, out.data));
  return fields.finish();
}

Result<CheckpointOptions> read_checkpoint(const YamlNode* node) {
  CheckpointOptions out;
  if (node == nullptr) return out;
  Fields fields = TRY(Fields::of(*node, "checkpoint"));
  out.folder = TRY(fields.text_or("dir", ""));
  out.keep = static_cast<int>(TRY(fields.integer_or("keep", out.keep, 1, 1'000'000)));
  if (const YamlNode* every = fields.find("every"); every != nullptr && !every->scalar.empty())
    out.every = TRY(yaml::as_interval(*every, "checkpoint.every"));
  for (const std::string_view launcher : {"request", "lead"}) fields.known(launcher);
  TRY(fields.finish());
  if (out.every && out.folder.empty())
    return yaml::error_at(*node, "checkpoint.every is set, but checkpoint.dir is not",
                          "set a folder, as dir: ckpt");
  return out;
}

}  // namespace

std::string TrainSpec::place_of(std::string key) const {
  for (auto found = places.find(key);; found = places.find(key)) {
    if (found != places.end()) return found->second;
    if (key.empty()) return {};
    const std::size_t dot = key.rfind('.');
    key.resize(dot == std::string::npos ? 0 : dot);
  }
}

Result<TrainSpec> read_train_spec(const yaml::Node& root) {
  Fields fields = TRY(Fields::of(root, ""));
  TrainSpec out;
  out.name = TRY(fields.text_or("name", "train"));
  TRY(read_train(*TRY(fields.require("train")), out));
  out.checkpoint = TRY(read_checkpoint(fields.find("checkpoint")));
  TRY(fields.finish());
  return out;
}

Result<TrainSpec> read_train_spec_file(const std::filesystem::path& path) {
  const Json json = TRY(parse_json(TRY(read_file(path)), path.string()));
  const auto root = yaml::from_json_with_sources(json);
  if (root) return read_train_spec(*root);
  return fail(
      Error{.kind = ErrorKind::input,
            .what = "is not what dlrun writes of a job file: it does not have \"value\" and \"sources\"",
            .where = path.string(),
            .hint = "dlrun run JOB.yaml writes train.json into the run directory and starts the ranks; "
                    "dlrun plan JOB.yaml checks"});
}

Result<void> divide_global_batch(TrainSpec& spec, int ranks) {
  if (!spec.global_batch) return {};
  const bool by_shards = spec.shards && spec.shards->count;
  const std::int64_t parts = by_shards ? *spec.shards->count : ranks;
  const std::int64_t rows = spec.global_batch->rows, batches = parts * std::int64_t{spec.accumulate};
  spec.batch = rows / batches;
  if (rows % batches == 0 && spec.batch <= kMaxBatch) return {};
  const std::string by =
      fmt::format("{} {}{}{}", parts, by_shards ? "shard" : "rank", parts == 1 ? "" : "s",
                  spec.accumulate == 1 ? "" : fmt::format(" x accumulate {}", spec.accumulate));
  if (rows % batches == 0)
    return fail(Error{
        .kind = ErrorKind::input,
        .what = fmt::format("train.global-batch {} gives batches of {} samples on {}: the maximum is {}",
                            rows, spec.batch, by, kMaxBatch),
        .where = spec.global_batch->where,
        .hint = "use more ranks or a larger train.accumulate"});
  return fail(
      Error{.kind = ErrorKind::input,
            .what = fmt::format("train.global-batch {} cannot be divided by {}", rows, by),
            .where = spec.global_batch->where,
            .hint = fmt::format("a multiple of {} can: {}", batches, (rows / batches + 1) * batches)});
}

std::string TrainSpec::target_text() const {
  if (!stop_at_loss) return fmt::format("stop-at.accuracy {}", stop_at_accuracy.value_or(0));
  const std::string loss = fmt::format("stop-at.loss {}", *stop_at_loss);
  return stop_at_accuracy ? fmt::format("stop-at.accuracy {} and {}", *stop_at_accuracy, loss) : loss;
}

std::string_view name_of(Precision precision) {
  if (precision == Precision::tf32) return "tf32";
  return precision == Precision::bf16 ? "bf16" : "f32";
}

}  // namespace dlrun::runtime
