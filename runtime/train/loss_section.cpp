// See loss_section.hpp.
#include "runtime/train/loss_section.hpp"

#include "runtime/models/models.hpp"

namespace dlrun::runtime {

Result<double> read_label_smoothing(yaml::Fields& train, const TrainSpec& spec) {
  const double out = TRY(train.number_or("label-smoothing", 0, 0, 0.999));
  const bool is_gan = purpose_of(spec.model) == Purpose::generate;
  const bool is_language = spec.data.source->kind() == SampleKind::tokens;
  if (out == 0 || (!is_gan && !is_language)) return out;
  return yaml::error_at(*train.find("label-smoothing"),
                        fmt::format("train.label-smoothing is for classification, and {} is a {}", spec.model,
                                    is_gan ? "GAN" : "language model"),
                        "remove train.label-smoothing");
}

Result<void> read_loss(yaml::Fields& train, TrainSpec& out) {
  const yaml::Node* node = train.find("loss");
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
  yaml::Fields loss = TRY(yaml::Fields::of(*node, "train.loss"));
  measure.measure = static_cast<op::TargetLoss::Measure>(
      TRY(yaml::as_choice(*TRY(loss.require("name")), "train.loss.name", target_measures())));
  if (measure.measure == op::TargetLoss::Measure::huber)
    measure.delta = TRY(loss.number_or("delta", 1, 1e-9, 1e9));
  return loss.finish();
}

Result<std::optional<EvaluateSpec>> read_evaluate(yaml::Fields& train, const DataSpec& data) {
  const yaml::Node* node = train.find("evaluate");
  if (node == nullptr) return std::optional<EvaluateSpec>();
  if (data.source->kind() != SampleKind::tokens)
    return yaml::error_at(*node, "train.evaluate is supported for tokens only, and the data are images",
                          "remove it: images are evaluated after each epoch");
  yaml::Fields fields = TRY(yaml::Fields::of(*node, train.path("evaluate")));
  const yaml::Node* every = TRY(fields.require("every"));
  const Interval interval = TRY(yaml::as_interval(*every, fields.path("every")));
  if (interval.unit != Interval::Unit::steps)
    return yaml::error_at(*every, "train.evaluate.every must be in steps, so that a run can be repeated",
                          "write 500steps");
  EvaluateSpec out{.every = static_cast<std::uint64_t>(interval.amount), .batches = {}};
  if (fields.has("batches"))
    out.batches = static_cast<std::uint64_t>(TRY(fields.integer_or("batches", 1, 1, 1'000'000'000)));
  TRY(fields.finish());
  return std::optional(out);
}

Result<void> read_target(yaml::Fields& train, TrainSpec& out) {
  const yaml::Node* stop = train.find("stop-at");
  if (stop == nullptr) return {};
  yaml::Fields target = TRY(yaml::Fields::of(*stop, "train.stop-at"));
  const yaml::Node *loss = target.find("loss"), *accuracy = target.find("accuracy");
  TRY(target.finish());
  if (loss != nullptr) out.stop_at_loss = TRY(yaml::as_number(*loss, "train.stop-at.loss", 0, 1e9));
  if (accuracy != nullptr)
    out.stop_at_accuracy = TRY(yaml::as_number(*accuracy, "train.stop-at.accuracy", 0, 1));
  if (out.has_target()) return {};
  return yaml::error_at(*stop, "train.stop-at needs accuracy or loss", "write stop-at: {accuracy: 0.92}");
}

Result<void> check_targets(yaml::Fields& train, const TrainSpec& spec) {
  if (!spec.measure) return {};
  if (spec.stop_at_accuracy && !spec.measure->is_labels())
    return yaml::error_at(*train.find("stop-at"),
                          fmt::format("train.stop-at.accuracy needs answers that are right or wrong, and "
                                      "train.loss is {}",
                                      spec.measure->text()),
                          "write stop-at: {loss: 0.1}");
  for (const char* key : {"label-smoothing", "mixup"})
    if (const yaml::Node* node = train.find(key))
      return yaml::error_at(*node, fmt::format("train.{} is for classes, and train.data has targets", key),
                            fmt::format("remove train.{}", key));
  return {};
}

}  // namespace dlrun::runtime
