// See optimizer_section.hpp.
#include "runtime/train/optimizer_section.hpp"

namespace dlrun::runtime {
namespace {

using yaml::Fields;
using YamlNode = yaml::Node;

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

}  // namespace

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

Result<ScheduleSpec> read_schedule(Fields& train, const TrainSpec& spec) {
  ScheduleSpec out;
  const YamlNode* node = train.find("schedule");
  if (node == nullptr) return out;
  Fields fields = TRY(Fields::of(*node, train.path("schedule")));
  if (const YamlNode* warmup = fields.find("warmup")) {
    out.warmup = TRY(yaml::as_interval(*warmup, fields.path("warmup")));
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

}  // namespace dlrun::runtime
