// See train_spec.hpp.
#include "runtime/train/train_spec.hpp"

#include <array>

#include "runtime/base/checksum.hpp"
#include "runtime/models/models.hpp"
#include "runtime/train/data_section.hpp"
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

Result<Interval> read_interval(const YamlNode& node, const std::string& name) {
  auto interval = parse_interval(TRY(yaml::as_text(node, name)));
  if (interval) return interval;
  return yaml::error_at(node, fmt::format("{}: {}", name, interval.error().what), interval.error().hint);
}

Result<const OptimizerTraits*> read_optimizer_name(Fields& fields) {
  const std::string name = TRY(fields.text_or("name", "sgd"));
  if (const OptimizerTraits* known = find_optimizer(name)) return known;
  std::string names;
  for (const OptimizerTraits* each : optimizers())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", each->name);
  return yaml::error_at(*fields.find("name"), fmt::format("unknown optimizer '{}'", name),
                        fmt::format("valid names: {}", names));
}

Result<double> read_hyperparameter(Fields& fields, const Hyperparameter& of) {
  const std::string key(of.name);
  if (of.kind == Hyperparameter::Kind::number)
    return fields.number_or(key, of.fallback, of.lowest, of.highest);
  return TRY(fields.bool_or(key, of.fallback != 0)) ? 1.0 : 0.0;
}

// no-decay: vectors | [pattern, ...], in which vectors may be one.
Result<NoDecay> read_no_decay(Fields& fields) {
  NoDecay out;
  for (const std::string& name : TRY(fields.text_list("no-decay"))) {
    if (name == "vectors")
      out.vectors = NoDecay::Vectors::exempt;
    else
      out.names.push_back(name);
  }
  return out;
}

// Of freeze, init-from.skip and no-decay, in which `vectors` is none.
Result<std::vector<ParameterPattern>> read_patterns(Fields& train) {
  std::vector<ParameterPattern> out;
  using Of = ParameterPattern::Of;
  const auto add = [&out](const YamlNode* node, const std::string& key, std::string_view keyword = "",
                          Of of = Of::parameters) {
    if (node == nullptr) return;
    const std::span<const YamlNode> items =
        node->kind == yaml::Kind::list ? std::span(node->items) : std::span(node, 1);
    for (const YamlNode& item : items)
      if (keyword.empty() || item.scalar != keyword) out.push_back({key, item.scalar, item.source, of});
  };
  add(train.find("freeze"), "train.freeze");
  if (const YamlNode* from = train.find("init-from"); from != nullptr && from->kind == yaml::Kind::map)
    add(TRY(Fields::of(*from, "train.init-from")).find("skip"), "train.init-from.skip", "", Of::tensors);
  const YamlNode* node = train.find("optimizer");
  if (node == nullptr) return out;
  Fields optimizer = TRY(Fields::of(*node, "train.optimizer"));
  add(optimizer.find("no-decay"), "train.optimizer.no-decay", "vectors");
  return out;
}

Result<OptimizerSpec> read_optimizer(Fields& train) {
  OptimizerSpec out;
  const YamlNode* node = train.find("optimizer");
  if (node == nullptr) return out;
  Fields fields = TRY(Fields::of(*node, train.path("optimizer")));
  const OptimizerTraits& traits = *TRY(read_optimizer_name(fields));
  out.optimizer = {&traits, {}};
  out.learning_rate = TRY(fields.number_or("lr", traits.learning_rate, 0, 1e6));
  for (std::size_t i = 0; i < traits.hyperparameters.size(); ++i)
    out.optimizer.values[i] = TRY(read_hyperparameter(fields, traits.hyperparameters[i]));
  out.weight_decay = TRY(fields.number_or("weight-decay", traits.weight_decay, 0, 1e3));
  out.no_decay = TRY(read_no_decay(fields));
  static const std::vector<std::string> states = {"replicated", "sharded"};
  out.state = static_cast<OptimizerSpec::State>(TRY(fields.choice_or("state", 0, states)));
  TRY(fields.finish());
  if (traits.conflict == nullptr || traits.conflict(out.optimizer.values).empty()) return out;
  return yaml::error_at(*node, fmt::format("train.optimizer: {}", traits.conflict(out.optimizer.values)));
}

// {polynomial: 2, end: 1e-4}
Result<void> read_polynomial(Fields& fields, ScheduleSpec& out) {
  out.decay = ScheduleSpec::Decay::polynomial;
  out.power = TRY(fields.number_or("polynomial", 1, 0.01, 100));
  out.end_rate = TRY(fields.number_or("end", 0, 0, 1e6));
  return fields.finish();
}

// {one-cycle: 0.3, div: 25, final-div: 10000}
Result<void> read_one_cycle(Fields& fields, ScheduleSpec& out) {
  out.decay = ScheduleSpec::Decay::one_cycle;
  out.rise = TRY(fields.number_or("one-cycle", out.rise, 0.001, 0.999));
  out.first_divisor = TRY(fields.number_or("div", out.first_divisor, 1, 1e9));
  out.last_divisor = TRY(fields.number_or("final-div", out.last_divisor, 1, 1e12));
  TRY(fields.finish());
  if (out.warmup.amount <= 0) return {};
  return yaml::error_at(fields.node(), "train.schedule has a warmup, and one-cycle has its own",
                        "remove warmup");
}

// decay: none | cosine | {epochs: [30, 60], factor: 0.1} | {polynomial: 2} | {one-cycle: 0.3}
Result<void> read_decay(Fields& schedule, ScheduleSpec& out) {
  const YamlNode* node = schedule.find("decay");
  if (node == nullptr) return {};
  if (node->kind != yaml::Kind::map) {
    static const std::vector<std::string> names = {"none", "cosine"};
    out.decay = TRY(yaml::as_choice(*node, schedule.path("decay"), names)) == 0 ? ScheduleSpec::Decay::none
                                                                                : ScheduleSpec::Decay::cosine;
    return {};
  }
  Fields fields = TRY(Fields::of(*node, schedule.path("decay")));
  if (fields.has("polynomial")) return read_polynomial(fields, out);
  if (fields.has("one-cycle")) return read_one_cycle(fields, out);
  out.decay = ScheduleSpec::Decay::step;
  out.factor = TRY(fields.number_or("factor", out.factor, 0, 1));
  const YamlNode* epochs = TRY(fields.require("epochs"));
  if (epochs->kind != yaml::Kind::list)
    return yaml::error_at(*epochs, "train.schedule.decay.epochs must be a list");
  for (const YamlNode& item : epochs->items)
    out.at_epochs.push_back(TRY(yaml::as_number(item, "train.schedule.decay.epochs", 0, 1e9)));
  return fields.finish();
}

// The rate would follow the ranks, and the batch of an update does not.
Result<void> check_scale(Fields& schedule, const ScheduleSpec& read, const TrainSpec& spec) {
  if (read.scale == ScheduleSpec::Scale::none || !spec.global_batch) return {};
  return yaml::error_at(
      *schedule.find("scale-lr"),
      "train.schedule.scale-lr scales the rate of one batch by the batches of an update, and "
      "train.global-batch sets the whole",
      fmt::format("remove scale-lr, and write in train.optimizer.lr the rate for a global "
                  "batch of {}",
                  spec.global_batch->rows));
}

Result<ScheduleSpec> read_schedule(Fields& train, const TrainSpec& spec) {
  ScheduleSpec out;
  const YamlNode* node = train.find("schedule");
  if (node == nullptr) return out;
  Fields fields = TRY(Fields::of(*node, train.path("schedule")));
  if (const YamlNode* warmup = fields.find("warmup")) {
    out.warmup = TRY(read_interval(*warmup, fields.path("warmup")));
    if (out.warmup.unit == Interval::Unit::time)
      return yaml::error_at(*warmup,
                            "train.schedule.warmup must be in steps or epochs, so that a run can be repeated",
                            "write 200steps or 1epoch");
  }
  TRY(read_decay(fields, out));
  static const std::vector<std::string> scales = {"none", "linear", "square-root"};
  out.scale = static_cast<ScheduleSpec::Scale>(TRY(fields.choice_or("scale-lr", 0, scales)));
  TRY(check_scale(fields, out, spec));
  TRY(fields.finish());
  return out;
}

Result<double> read_label_smoothing(Fields& train, const TrainSpec& spec) {
  const double out = TRY(train.number_or("label-smoothing", 0, 0, 0.999));
  const bool is_gan = purpose_of(spec.model) == Purpose::generate;
  const bool is_language = spec.data.source->kind() == SampleKind::tokens;
  if (out == 0 || (!is_gan && !is_language)) return out;
  return yaml::error_at(*train.find("label-smoothing"),
                        fmt::format("train.label-smoothing is for classification, and {} is a {}", spec.model,
                                    is_gan ? "GAN" : "language model"),
                        "remove train.label-smoothing");
}

// loss: huber, or {name: huber, delta: 0.5}
Result<void> read_loss(Fields& train, TrainSpec& out) {
  const YamlNode* node = train.find("loss");
  if (out.data.source->has_targets()) out.measure = TargetMeasure{};
  if (node == nullptr) return {};
  if (!out.measure)
    return yaml::error_at(*node, "train.loss is for data that have targets, and these have none",
                          "remove train.loss, or name the targets: data: {targets: NAME}");
  TargetMeasure& measure = *out.measure;
  if (node->kind != yaml::Kind::map) {
    measure.measure =
        static_cast<op::TargetLoss::Measure>(TRY(yaml::as_choice(*node, "train.loss", target_measures())));
    return {};
  }
  Fields loss = TRY(Fields::of(*node, "train.loss"));
  measure.measure = static_cast<op::TargetLoss::Measure>(
      TRY(yaml::as_choice(*TRY(loss.require("name")), "train.loss.name", target_measures())));
  if (measure.measure == op::TargetLoss::Measure::huber)
    measure.delta = TRY(loss.number_or("delta", 1, 1e-9, 1e9));
  return loss.finish();
}

Result<Precision> read_precision(Fields& train) {
  static const std::vector<std::string> names = {"f32", "tf32", "bf16"};
  static constexpr std::array precisions{Precision::f32, Precision::tf32, Precision::bf16};
  return precisions[TRY(train.choice_or("precision", 0, names))];
}

// `wire` is what dtype was called before.
Result<CommDtype> read_dtype(Fields& fields, TrainSpec& out) {
  static const std::vector<std::string> names = {"f32", "bf16", "f16"};
  const YamlNode* const old = fields.node().find("wire");
  const std::string_view key = old == nullptr ? "dtype" : "wire";
  if (old != nullptr && fields.has("dtype"))
    return yaml::error_at(*old, "train.allreduce has both dtype and wire, its old name", "keep dtype");
  if (old != nullptr)
    out.warnings.push_back(
        fmt::format("{} is the old name of {}", fields.path("wire"), fields.path("dtype")));
  return std::array{CommDtype::f32, CommDtype::bf16, CommDtype::f16}[TRY(fields.choice_or(key, 0, names))];
}

Result<void> read_allreduce(Fields& train, TrainSpec& out) {
  const YamlNode* node = train.find("allreduce");
  if (node == nullptr) return {};
  Fields fields = TRY(Fields::of(*node, train.path("allreduce")));
  AllreduceSpec& spec = out.allreduce;
  const std::vector<std::string> names = allreduce_names();
  spec.choice.algorithm = find_allreduce(names[TRY(fields.choice_or("algorithm", 0, names))]);
  spec.bucket_bytes = TRY(fields.size_or("bucket", spec.bucket_bytes));
  if (spec.bucket_bytes < 1024 || spec.bucket_bytes > (std::uint64_t{4} << 30))
    return yaml::error_at(*fields.find("bucket"), "train.allreduce.bucket must be 1KiB to 4GiB");
  spec.dtype = TRY(read_dtype(fields, out));
  TRY(fields.finish());
  if (spec.dtype == CommDtype::f32 || spec.choice.is_auto() ||
      spec.choice.algorithm->dtypes == AllreduceAlgorithm::Dtypes::all)
    return {};
  return yaml::error_at(
      *fields.find("algorithm"),
      fmt::format("train.allreduce.algorithm {} sends f32, and train.allreduce.dtype asks for {}",
                  spec.choice.algorithm->name, name_of(spec.dtype)),
      "write algorithm: direct or auto, or dtype: f32");
}

Result<ParameterServerSpec> read_parameter_server_section(const YamlNode& node, const std::string& path) {
  Fields fields = TRY(Fields::of(node, path));
  static const std::vector<std::string> names = {"round-robin", "greedy", "split"};
  ParameterServerSpec spec;
  spec.placement = std::array{Placement::round_robin, Placement::greedy,
                              Placement::split}[TRY(fields.choice_or("placement", 1, names))];
  if (fields.find("servers") != nullptr)
    spec.servers = static_cast<int>(TRY(fields.integer_or("servers", 1, 1, 1 << 20)));
  spec.staleness = static_cast<int>(TRY(fields.integer_or("staleness", 0, 0, 1'000'000)));
  static const std::vector<std::string> sums = {"auto", "on", "off"};
  spec.node_sum = static_cast<ParameterServerSpec::NodeSum>(TRY(fields.choice_or("node-sum", 0, sums)));
  TRY(fields.finish());
  return spec;
}

// Asked for by train.allreduce.algorithm or by a section of their own, which says more.
Result<void> read_parameter_server(Fields& train, TrainSpec& out) {
  const YamlNode* node = train.find("parameter-server");
  const AllreduceChoice& choice = out.allreduce.choice;
  if (node == nullptr) {
    if (choice.is("parameter-server")) out.parameter_server.emplace();
    return {};
  }
  out.parameter_server = TRY(read_parameter_server_section(*node, train.path("parameter-server")));
  if (choice.is_auto() || choice.is("parameter-server")) return {};
  return yaml::error_at(*node, fmt::format("train.parameter-server is set, and {}", choice.text()),
                        "keep one of the two");
}

// What would make the bits depend on the number of ranks, or is not there yet for shards.
Result<void> check_shards(const YamlNode& node, const TrainSpec& spec) {
  const auto refuse = [&](const std::string& what, const std::string& hint) {
    return yaml::error_at(node, "train.shards is set, and " + what, hint);
  };
  if (spec.parameter_server)
    return refuse("parameter servers are asked for, which add in the order of the ranks",
                  "keep one of the two");
  if (!spec.allreduce.choice.is_auto())
    return refuse(fmt::format("{}: shards are added in an order of their own", spec.allreduce.choice.text()),
                  "set train.allreduce.algorithm to auto, or remove train.shards");
  if (spec.allreduce.dtype != CommDtype::f32)
    return refuse(fmt::format("train.allreduce.dtype is {}: sums of shards are sent as f32",
                              name_of(spec.allreduce.dtype)),
                  "set train.allreduce.dtype to f32, or remove train.shards");
  if (purpose_of(spec.model) == Purpose::generate)
    return refuse(fmt::format("{} is a GAN, for which shards are not supported", spec.model),
                  "remove train.shards");
  return {};
}

// shards: 8 | auto
Result<void> read_shards(Fields& train, TrainSpec& out) {
  const YamlNode* node = train.find("shards");
  if (node == nullptr) return {};
  out.shards.emplace();
  if (node->scalar != "auto")
    out.shards->count = static_cast<int>(TRY(yaml::as_integer(*node, "train.shards", 1, 1 << 16)));
  return check_shards(*node, out);
}

// What cannot be together with an optimizer's state in parts, or is not there yet.
Result<void> check_sharded_state(Fields& train, const TrainSpec& spec) {
  if (spec.optimizer.state == OptimizerSpec::State::replicated) return {};
  const YamlNode& node = *TRY(Fields::of(*train.find("optimizer"), "train.optimizer")).find("state");
  const auto refuse = [&](const std::string& what, const std::string& hint) {
    return yaml::error_at(node, "train.optimizer.state is sharded, and " + what, hint);
  };
  if (spec.parameter_server)
    return refuse("train.parameter-server is set: servers send all sums to all ranks",
                  "remove one of the two");
  if (!spec.allreduce.choice.is_auto() && !spec.shards)
    return refuse(fmt::format("{}: gradients are summed by a reduce-scatter", spec.allreduce.choice.text()),
                  "set train.allreduce.algorithm to auto, or state to replicated");
  if (purpose_of(spec.model) == Purpose::generate)
    return refuse(fmt::format("{} is a GAN, for which that is not supported", spec.model),
                  "set state to replicated");
  return {};
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

// evaluate: {every: 500steps, batches: 20}
Result<std::optional<EvaluateSpec>> read_evaluate(Fields& train, const DataSpec& data) {
  const YamlNode* node = train.find("evaluate");
  if (node == nullptr) return std::optional<EvaluateSpec>();
  if (data.source->kind() != SampleKind::tokens)
    return yaml::error_at(*node, "train.evaluate is supported for tokens only, and the data are images",
                          "remove it: images are evaluated after each epoch");
  Fields fields = TRY(Fields::of(*node, train.path("evaluate")));
  const YamlNode* every = TRY(fields.require("every"));
  const Interval interval = TRY(read_interval(*every, fields.path("every")));
  if (interval.unit != Interval::Unit::steps)
    return yaml::error_at(*every, "train.evaluate.every must be in steps, so that a run can be repeated",
                          "write 500steps");
  EvaluateSpec out{.every = static_cast<std::uint64_t>(interval.amount), .batches = {}};
  if (fields.has("batches"))
    out.batches = static_cast<std::uint64_t>(TRY(fields.integer_or("batches", 1, 1, 1'000'000'000)));
  TRY(fields.finish());
  return std::optional(out);
}

// stop-at: {accuracy: 0.92}, {loss: 1.5}, or both
Result<void> read_target(Fields& train, TrainSpec& out) {
  const YamlNode* stop = train.find("stop-at");
  if (stop == nullptr) return {};
  Fields target = TRY(Fields::of(*stop, "train.stop-at"));
  const YamlNode *loss = target.find("loss"), *accuracy = target.find("accuracy");
  TRY(target.finish());
  if (loss != nullptr) out.stop_at_loss = TRY(yaml::as_number(*loss, "train.stop-at.loss", 0, 1e9));
  if (accuracy != nullptr)
    out.stop_at_accuracy = TRY(yaml::as_number(*accuracy, "train.stop-at.accuracy", 0, 1));
  if (out.has_target()) return {};
  return yaml::error_at(*stop, "train.stop-at needs accuracy or loss", "write stop-at: {accuracy: 0.92}");
}

// What needs classes does not go with targets.
Result<void> check_targets(Fields& train, const TrainSpec& spec) {
  if (!spec.measure) return {};
  if (spec.stop_at_accuracy && !spec.measure->is_labels())
    return yaml::error_at(*train.find("stop-at"),
                          fmt::format("train.stop-at.accuracy needs answers that are right or wrong, and "
                                      "train.loss is {}",
                                      spec.measure->text()),
                          "write stop-at: {loss: 0.1}");
  for (const char* key : {"label-smoothing", "mixup"})
    if (const YamlNode* node = train.find(key))
      return yaml::error_at(*node, fmt::format("train.{} is for classes, and train.data has targets", key),
                            fmt::format("remove train.{}", key));
  return {};
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
    out.every = TRY(read_interval(*every, "checkpoint.every"));
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
