// StageAgreement: what the stages of a pipeline tell each other once per update. Gradients of parameters that
// the first and the last stage both have (an embedding, and the loss that shares its weights) become their
// sum on both, so that the copies stay equal. Losses and counts, which the last stage knows, come to all, and
// so do requests.
#pragma once

#include <vector>

#include "runtime/comm/communicator.hpp"
#include "runtime/engine/engine.hpp"

namespace dlrun::runtime {

class StageAgreement {
 public:
  /// `pipeline`: its ranks are the stages.
  StageAgreement(Engine& engine, Communicator& pipeline);

  /// Whether the bucket has gradients that are to be added to another stage's.
  bool is_tied(std::size_t bucket) const;
  /// Of this rank's samples, before they are summed over the data group.
  Result<void> add_tied();
  /// The spare slots become the sums over the stages.
  Result<void> share_totals();
  /// Of the gradients of each stage, without what an earlier stage has, too.
  Result<double> sum(double own) const;
  /// Whether a gradient counts here: it is not a copy of an earlier stage's.
  bool counts(const GradientSlice& slice) const;

 private:
  bool is_first() const { return pipeline_->rank() == 0; }
  bool is_last() const { return pipeline_->rank() + 1 == pipeline_->size(); }
  Result<void> add_to_first();

  Engine* engine_;
  Communicator* pipeline_;
  std::vector<GradientSlice> tied_;
  std::vector<float> together_, received_;
};

}  // namespace dlrun::runtime
