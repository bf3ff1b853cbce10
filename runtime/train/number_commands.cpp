// See number_commands.hpp.
#include "runtime/train/number_commands.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/data/images/deep_png.hpp"
#include "runtime/data/numbers/npy_array.hpp"
#include "runtime/data/numbers/number_samples.hpp"
#include "runtime/graph/target_measure.hpp"
#include "runtime/train/evaluation.hpp"
#include "runtime/train/rows.hpp"
#include "runtime/train/scoring.hpp"
#include "runtime/train/totals.hpp"
#include "src/base/json.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::size_t kShownClasses = 5;
constexpr std::uint64_t kMaxRows = 16;  // of a batch

Result<TargetMeasure> measure_of(const SavedModel& model) {
  const auto loss = model.manifest.settings.find("loss");
  return loss == model.manifest.settings.end() ? TargetMeasure{} : TargetMeasure::of_text(loss->second);
}

double six_places(double value) {
  return std::round(value * 1e6) / 1e6;
}

bool is_sample(const InputShape& shape, const InputShape& wanted) {
  return shape.channels == wanted.channels && shape.depth == wanted.depth && shape.height == wanted.height &&
         shape.width == wanted.width;
}

// The axes of the array's samples, which begin at axis `skipped`.
Result<SampleAxes> axes_of(const SavedModel& model, std::size_t axes) {
  const auto given = model.manifest.settings.find("data.axes");
  if (given == model.manifest.settings.end()) return SampleAxes::usual(axes);
  SampleAxes out = TRY(SampleAxes::of(given->second));
  if (out.letters().size() != axes) return fail(ErrorKind::input, "other axes");
  return out;
}

Result<NumberSamples> open_deep_image(const SavedModel& model, const std::string& file) {
  const InputShape& wanted = model.manifest.identity.shape;
  const auto image = TRY(open_deep_png(file));
  const SampleAxes axes = axes_of_deep_png(*image);
  if (is_sample(axes.shape_of(std::span(image->shape()).subspan(1)), wanted))
    return NumberSamples({image}, axes);
  return bad_input(file, fmt::format("is not an image of {} x {} x {} numbers, as the model reads them",
                                     wanted.channels, wanted.height, wanted.width));
}

// A file is one sample, or many along its first axis: what fits the model's shape.
Result<NumberSamples> open_samples(const SavedModel& model, const std::string& file) {
  if (model.reads_deep_images()) return open_deep_image(model, file);
  const InputShape& wanted = model.manifest.identity.shape;
  const auto set = std::make_shared<const FileSet>(TRY(FileSet::open({file})));
  for (const Rows rows : {Rows::whole_file, Rows::along_first_axis}) {
    const auto array = TRY(open_npy(set, 0, rows));
    const auto axes = axes_of(model, array->shape().size() - 1);
    if (axes && is_sample(axes->shape_of(std::span(array->shape()).subspan(1)), wanted))
      return NumberSamples({array}, *axes);
  }
  return bad_input(
      file, fmt::format("has no sample of {} x {}{} x {} numbers, as the model reads them", wanted.channels,
                        wanted.depth > 0 ? fmt::format("{} x ", wanted.depth) : std::string(), wanted.height,
                        wanted.width));
}

Json class_prediction(const SavedModel& model, std::span<const float> scores) {
  Json top = Json::array();
  for (const auto& [label, probability] : ranked(scores, kShownClasses))
    top.push_back({{"label", label}, {"class", model.class_name(label)}, {"score", six_places(probability)}});
  return {{"label", top[0]["label"]}, {"class", top[0]["class"]}, {"score", top[0]["score"]}, {"top", top}};
}

Json target_prediction(const TargetMeasure& measure, std::span<const float> scores) {
  Json numbers = Json::array(), labels = Json::array();
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double score = scores[i];
    numbers.push_back(measure.is_labels() ? six_places(1 / (1 + std::exp(-score))) : score);
    if (score > 0) labels.push_back(i);
  }
  Json out{{"targets", numbers}};
  if (measure.is_labels()) out["labels"] = labels;
  return out;
}

}  // namespace

Result<std::string> evaluate_targets(const SavedModel& model, const Dataset& data) {
  const TargetMeasure measure = TRY(measure_of(model));
  const std::uint64_t batch = std::min(data.count, kMaxRows);
  const std::unique_ptr<Engine> engine = TRY(model.make_engine(static_cast<std::int64_t>(batch)));
  const BatchFiller filler(data, model.conversion, {});
  Totals sum;
  for (std::uint64_t at = 0; at < data.count; at += batch) {
    const std::uint64_t counted = filler.fill(
        std::min(batch, data.count - at), [at](std::uint64_t i) { return at + i; }, std::nullopt,
        rows_of(*engine));
    TRY(filler.state());
    const BatchResult result = engine->evaluate_batch();
    sum.add({.loss_sum = result.loss_sum,
             .correct = static_cast<double>(result.correct) / static_cast<double>(data.shape.targets),
             .rows = static_cast<double>(counted),
             .generator_loss_sum = 0,
             .targets = result.target_sums});
  }
  if (sum.rows == 0) return none_left("to evaluate");
  Json out{{"schema", "dlrun.evaluation/1"},
           {"checkpoint", model.folder.string()},
           {"samples", static_cast<std::uint64_t>(sum.rows)},
           {"targets", data.shape.targets},
           {"loss", six_places(sum.loss())},
           {"damaged", filler.take_dropped()}};
  if (measure.is_labels()) {
    out["accuracy"] = six_places(sum.accuracy());
    out["f1"] = six_places(sum.f1());
  } else {
    out["mae"] = six_places(sum.mean_absolute_error());
    out["rmse"] = six_places(sum.root_mean_square_error());
  }
  return to_pretty_text(out);
}

Result<std::string> predict_numbers(const SavedModel& model, const std::vector<std::string>& files) {
  const TargetMeasure measure = TRY(measure_of(model));
  const bool targets = model.manifest.identity.shape.targets > 0;
  const std::unique_ptr<Engine> engine = TRY(model.make_engine(1));
  const Conversion& by = model.conversion;
  const NumberScaling scaling{by.scale, by.transform, by.mean, by.std_dev};
  Json out{{"schema", "dlrun.predictions/1"},
           {"checkpoint", model.folder.string()},
           {"predictions", Json::array()}};
  for (const std::string& file : files) {
    const NumberSamples samples = TRY(open_samples(model, file));
    for (std::uint64_t i = 0; i < samples.count(); ++i) {
      TRY(samples.read(i, scaling, engine->input()));
      engine->labels()[0] = -1;
      engine->evaluate_batch();
      Json said =
          targets ? target_prediction(measure, engine->scores()) : class_prediction(model, engine->scores());
      said["file"] = file;
      if (samples.count() > 1) said["sample"] = i;
      out["predictions"].push_back(std::move(said));
    }
  }
  return to_pretty_text(out);
}

}  // namespace dlrun::runtime
