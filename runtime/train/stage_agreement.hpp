// StageAgreement: what the stages of a pipeline tell each other once per update. Gradients of parameters that
// the first and the last stage both have (an embedding, and the loss that shares its weights) become their
// sum on the first stage, which is summed over the data group there, and then goes to the last one: it would
// add the same numbers in another order, as they lie elsewhere in its buckets, and the copies would drift
// apart. Losses and counts, which the last stage knows, come to all, and
// so do requests.
#pragma once

#include <string>
#include <vector>

#include "runtime/comm/communicator.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/train/parameter_update.hpp"

namespace dlrun::runtime {

class StageAgreement {
 public:
  /// `pipeline`: its ranks are the stages.
  StageAgreement(Engine& engine, Communicator& pipeline);

  /// Whether the bucket has gradients that are to be added to another stage's.
  bool is_tied(std::size_t bucket) const;
  /// Of this rank's samples, before they are summed over the data group: the last stage's come to the first.
  Result<void> add_tied();
  /// After that: the first stage's sums come to the last, which `data` has added up, in parts where `sums`
  /// says so.
  Result<void> share_tied(Communicator& data, ParameterUpdate::Sums sums);
  /// The spare slots become the sums over the stages.
  Result<void> share_totals();
  /// Of the gradients of each stage, without what an earlier stage has, too.
  Result<double> sum(double own) const;
  /// Whether a gradient counts here: it is not a copy of an earlier stage's.
  bool counts(const GradientSlice& slice) const;

 private:
  bool is_first() const { return pipeline_->rank() == 0; }
  bool is_last() const { return pipeline_->rank() + 1 == pipeline_->size(); }
  std::span<std::byte> tied_bytes() { return std::as_writable_bytes(std::span(together_)); }
  void take_tied();
  void put_tied();

  Engine* engine_;
  Communicator* pipeline_;
  std::vector<GradientSlice> tied_;
  std::vector<float> together_, received_;
};

/// The texts of all ranks of a group, one after another. All of them call it.
Result<std::string> joined_text(Communicator& group, const std::string& mine);

}  // namespace dlrun::runtime
