// MlLog: the lines of MLPerf's log (":::MLLOG {...}") that tell the time to solution: when a run began, what
// it trains with, when epochs and evaluations began and ended, the accuracy after each, and when and how the
// run ended. It writes nothing: it makes the lines, in the order in which MLPerf's checkers want them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/base/json.hpp"

namespace dlrun::runtime {

struct MlLogFacts {
  std::string benchmark;  // the model
  std::string optimizer;
  double learning_rate = 0;
  int accumulate = 1;  // batches per update
  std::uint64_t global_batch = 0, seed = 0, train_samples = 0, eval_samples = 0;
  std::optional<double> target;  // accuracy
};

class MlLog {
 public:
  using Lines = std::vector<std::string>;
  /// `now`: seconds since 1970.
  explicit MlLog(std::function<double()> now) : now_(std::move(now)) {}

  /// What is known before training. `began`: when the process started.
  Lines begin(const MlLogFacts& facts, double began);
  /// Training starts or goes on behind an evaluation, in epoch `epoch`, from 1.
  Lines train(std::uint64_t epoch);
  /// The epoch is trained, and its evaluation begins.
  Lines evaluate(std::uint64_t epoch);
  Lines evaluated(std::uint64_t epoch, std::optional<double> accuracy);
  enum class Status { success, aborted };
  Lines end(Status status, std::uint64_t epochs);

 private:
  std::string line(const char* type, const char* key, Json value, Json metadata = Json::object()) const;

  std::function<double()> now_;
  bool runs_ = false, in_epoch_ = false;
};

}  // namespace dlrun::runtime
