// See mllog.hpp. Keys are those of mlperf_logging's constants.
#include "runtime/train/report/mllog.hpp"

#include <cmath>
#include <utility>

namespace dlrun::runtime {
namespace {

constexpr const char *kPoint = "POINT_IN_TIME", *kStart = "INTERVAL_START", *kEnd = "INTERVAL_END";

std::string line_at(double seconds, const char* type, const char* key, Json value, Json metadata) {
  const Json out{
      {"namespace", ""},           {"time_ms", static_cast<std::int64_t>(std::llround(seconds * 1000))},
      {"event_type", type},        {"key", key},
      {"value", std::move(value)}, {"metadata", std::move(metadata)}};
  return ":::MLLOG " + dlrun::to_text(out);
}

Json epoch_number(std::uint64_t epoch) {
  return {{"epoch_num", epoch}};
}

}  // namespace

std::string MlLog::line(const char* type, const char* key, Json value, Json metadata) const {
  return line_at(now_(), type, key, std::move(value), std::move(metadata));
}

MlLog::Lines MlLog::begin(const MlLogFacts& facts, double began) {
  Lines out{line_at(began, kStart, "init_start", nullptr, Json::object()),
            line(kPoint, "submission_benchmark", facts.benchmark),
            line(kPoint, "global_batch_size", facts.global_batch),
            line(kPoint, "seed", facts.seed),
            line(kPoint, "train_samples", facts.train_samples),
            line(kPoint, "eval_samples", facts.eval_samples),
            line(kPoint, "opt_name", facts.optimizer),
            line(kPoint, "opt_base_learning_rate", facts.learning_rate),
            line(kPoint, "gradient_accumulation_steps", facts.accumulate)};
  if (facts.target) out.push_back(line(kPoint, "target_accuracy", *facts.target));
  return out;
}

MlLog::Lines MlLog::train(std::uint64_t epoch) {
  Lines out;
  if (!std::exchange(runs_, true)) {
    out.push_back(line(kEnd, "init_stop", nullptr));
    out.push_back(line(kStart, "run_start", nullptr));
  }
  if (!std::exchange(in_epoch_, true))
    out.push_back(line(kStart, "epoch_start", nullptr, epoch_number(epoch)));
  return out;
}

MlLog::Lines MlLog::evaluate(std::uint64_t epoch) {
  Lines out;
  if (std::exchange(in_epoch_, false)) out.push_back(line(kEnd, "epoch_stop", nullptr, epoch_number(epoch)));
  out.push_back(line(kStart, "eval_start", nullptr, epoch_number(epoch)));
  return out;
}

MlLog::Lines MlLog::evaluated(std::uint64_t epoch, std::optional<double> accuracy) {
  Lines out;
  if (accuracy) out.push_back(line(kPoint, "eval_accuracy", *accuracy, epoch_number(epoch)));
  out.push_back(line(kEnd, "eval_stop", nullptr, epoch_number(epoch)));
  return out;
}

MlLog::Lines MlLog::end(Status status, std::uint64_t epochs) {
  if (!std::exchange(runs_, false)) return {};
  Json metadata = epoch_number(epochs);
  metadata["status"] = status == Status::success ? "success" : "aborted";
  return {line(kEnd, "run_stop", nullptr, std::move(metadata))};
}

}  // namespace dlrun::runtime
