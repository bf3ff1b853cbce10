// See settings.hpp.
#include "runtime/train/settings.hpp"

#include "runtime/base/counted.hpp"
#include "runtime/train/sync_section.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun::runtime {
namespace {

std::string text_of(const std::vector<double>& numbers) {
  std::string out;
  for (const double number : numbers) out += fmt::format("{}{}", out.empty() ? "" : " ", number);
  return out.empty() ? "none" : out;
}

std::string text_of(const Interval& interval) {
  if (interval.amount <= 0) return "none";
  if (interval.unit == Interval::Unit::time) return format_duration(Seconds(interval.amount));
  return fmt::format("{} {}", interval.amount, interval.unit == Interval::Unit::steps ? "steps" : "epochs");
}

std::string text_of(const Hyperparameter& of, double value) {
  if (of.kind == Hyperparameter::Kind::number) return fmt::format("{}", value);
  return value != 0 ? "true" : "false";
}

std::string name_of(ScheduleSpec::Decay decay) {
  if (decay == ScheduleSpec::Decay::none) return "none";
  if (decay == ScheduleSpec::Decay::polynomial) return "polynomial";
  if (decay == ScheduleSpec::Decay::one_cycle) return "one-cycle";
  return decay == ScheduleSpec::Decay::cosine ? "cosine" : "steps";
}

void add(Settings& out, const OptimizerSpec& of) {
  const OptimizerTraits& traits = *of.optimizer.traits;
  out["optimizer.name"] = std::string(traits.name);
  out["optimizer.lr"] = fmt::format("{}", of.learning_rate);
  out["optimizer.weight-decay"] = fmt::format("{}", of.weight_decay);
  for (std::size_t i = 0; i < traits.hyperparameters.size(); ++i)
    out[fmt::format("optimizer.{}", traits.hyperparameters[i].name)] =
        text_of(traits.hyperparameters[i], of.optimizer.values[i]);
  out["optimizer.no-decay"] = of.no_decay.text();
}

void add(Settings& out, const ScheduleSpec& schedule) {
  out["schedule.warmup"] = text_of(schedule.warmup);
  out["schedule.decay"] = name_of(schedule.decay);
  out["schedule.decay.epochs"] = text_of(schedule.at_epochs);
  if (schedule.decay == ScheduleSpec::Decay::step)
    out["schedule.decay.factor"] = fmt::format("{}", schedule.factor);
  if (schedule.decay == ScheduleSpec::Decay::polynomial)
    out["schedule.decay.polynomial"] = text_of({schedule.power, schedule.end_rate});
  if (schedule.decay == ScheduleSpec::Decay::one_cycle)
    out["schedule.decay.one-cycle"] = text_of({schedule.rise, schedule.first_divisor, schedule.last_divisor});
  static constexpr const char* scales[] = {"none", "linear", "square-root"};
  out["schedule.scale-lr"] = scales[static_cast<std::size_t>(schedule.scale)];
}

void add(Settings& out, const Augmentation& of) {
  out["data.augment.crop"] = fmt::format("{}", of.crop_padding);
  out["data.augment.flip"] = of.flip ? "true" : "false";
  const auto& crop = of.resized_crop;
  out["data.augment.random-resized-crop"] =
      crop ? text_of({crop->min_scale, crop->max_scale, crop->min_ratio, crop->max_ratio}) : "none";
  const ColorJitter& jitter = of.jitter;
  out["data.augment.color-jitter"] =
      jitter.any() ? text_of({jitter.brightness, jitter.contrast, jitter.saturation, jitter.hue}) : "none";
}

// A decay to the end of the training moves with that end.
std::string line_of(const std::string& key, const std::string& there, const std::string& here,
                    const Settings& all) {
  const auto decay = all.find("schedule.decay");
  const bool stretched =
      key == "epochs" && decay != all.end() &&
      (decay->second == "cosine" || decay->second == "polynomial" || decay->second == "one-cycle");
  if (stretched)
    return fmt::format("schedule: {} over {} epochs in the checkpoint, {} now", decay->second, there, here);
  return fmt::format("{}: {} in the checkpoint, {} now", key, there, here);
}

// A checkpoint of an earlier version has allreduce.dtype under its old name.
const std::string* find_setting(const Settings& settings, const std::string& key) {
  auto found = settings.find(key);
  if (found == settings.end() && key == "allreduce.dtype") found = settings.find("allreduce.wire");
  return found == settings.end() ? nullptr : &found->second;
}

}  // namespace

Settings settings_of(const TrainSpec& spec) {
  Settings out;
  // What ranks have of a global batch is no setting: their number may be another.
  if (spec.global_batch)
    out["global-batch"] = fmt::format("{}", spec.global_batch->rows);
  else
    out["batch"] = fmt::format("{}", spec.batch);
  out["accumulate"] = fmt::format("{}", spec.accumulate);
  out["epochs"] = fmt::format("{}", spec.epochs);
  add(out, spec.optimizer);
  add(out, spec.schedule);
  out["clip-norm"] = spec.clip_norm ? fmt::format("{}", *spec.clip_norm) : "none";
  out["ema"] = spec.ema ? fmt::format("{}", *spec.ema) : "none";
  out["mixup"] = spec.mixup ? fmt::format("{}", *spec.mixup) : "none";
  out["label-smoothing"] = fmt::format("{}", spec.label_smoothing);
  if (spec.measure) out["loss"] = spec.measure->text();
  out["precision"] = std::string(runtime::name_of(spec.precision));
  out["sync"] = text_of(spec.sync);
  // An evaluation is of the ranks' mean, from which they then go on.
  if (spec.sync)
    out["evaluate.every"] = spec.evaluate ? counted(spec.evaluate->every, "step") : std::string("none");
  out["allreduce.dtype"] = std::string(runtime::name_of(spec.allreduce.dtype));
  out["parameter-server.staleness"] =
      fmt::format("{}", spec.parameter_server ? spec.parameter_server->staleness : 0);
  out["data.mean"] = text_of(spec.conversion.mean);
  out["data.std"] = text_of(spec.conversion.std_dev);
  if (spec.data.source && spec.data.source->holds_numbers()) {
    if (const std::string axes = spec.data.source->axes(); !axes.empty()) out["data.axes"] = axes;
    if (const int bits = spec.data.source->bit_depth(); bits != 8)
      out["data.bit-depth"] = fmt::format("{}", bits);
    out["data.scale"] = fmt::format("{}", spec.conversion.scale);
    out["data.transform"] = spec.conversion.transform == NumberScaling::Transform::log1p ? "log1p" : "none";
  }
  out["freeze"] = spec.freeze.empty() ? "none" : join(spec.freeze, " ");
  add(out, spec.augmentation);
  out["data.centre-crop"] = spec.decoding.evaluation.centre_crop
                                ? fmt::format("{}", *spec.decoding.evaluation.centre_crop)
                                : "none";
  out["data.decode"] = spec.decoding.by == DecodeOptions::By::device ? "nvjpeg" : "cpu";
  out["stop-at.accuracy"] = spec.stop_at_accuracy ? fmt::format("{}", *spec.stop_at_accuracy) : "none";
  out["stop-at.loss"] = spec.stop_at_loss ? fmt::format("{}", *spec.stop_at_loss) : "none";
  return out;
}

std::vector<std::string> changed_settings(const Settings& there, const Settings& here) {
  std::vector<std::string> out;
  for (const auto& [key, now] : here)
    if (const std::string* const before = find_setting(there, key); before != nullptr && *before != now)
      out.push_back(line_of(key, *before, now, here));
  return out;
}

std::string other_arithmetic(const Settings& there, const Settings& here) {
  std::vector<std::string> out;
  for (const auto& [key, now] : here)
    if (const auto before = there.find(key); before != there.end() && before->second != now)
      out.push_back(fmt::format("{} {} in the checkpoint, {} now", key, before->second, now));
  if (out.empty()) return {};
  return fmt::format("the last bits may differ from those of one run: {}", join(out, "; "));
}

Result<void> check_finished(const std::vector<std::string>& changes, const std::string& checkpoint,
                            const std::string& why) {
  if (changes.empty()) return {};
  return fail(
      Error{.kind = ErrorKind::input,
            .what = fmt::format("{}, but with other settings than this job's: nothing was trained", why),
            .where = checkpoint,
            .hint = "to train with the new settings, set another folder: --set checkpoint.dir=ckpt2; or "
                    "restore the settings",
            .also = changes});
}

}  // namespace dlrun::runtime
