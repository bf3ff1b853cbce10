// ProcessGroups: the ranks of a job as tensor groups, whose ranks have the parts of each layer, pipelines,
// whose ranks have the stages of one model, and data groups, whose ranks have the same part of it and other
// samples. The launcher has numbered them (DLRUN_TENSOR_RANK and so on): this only splits the world so, and
// refuses a world that is another.
#pragma once

#include <memory>

#include "runtime/comm/communicator.hpp"
#include "runtime/engine/tensor_group.hpp"
#include "runtime/graph/model_rank.hpp"
#include "runtime/train/pipeline_links.hpp"

namespace dlrun::runtime {

/// Where a rank is among the groups of its job.
struct GroupRanks {
  ModelRank model;
  // Its rank in its data group, and how many that has; only where a model is divided.
  int data = 0, data_ranks = 1;
};

/// From the variables of the launcher; alone where there are none. An Error names one that cannot be.
Result<GroupRanks> group_ranks_of(const Environment& environment);

class ProcessGroups final : public TensorGroup {
 public:
  /// All ranks of the world call it. `world` outlives this.
  Result<void> connect(Communicator& world, const GroupRanks& ranks);

  /// The ranks that share the samples of a step: the world, where no model is divided.
  Communicator& data() const { return data_ ? *data_ : *world_; }
  /// Null where there are none.
  Communicator* tensor() const { return tensor_.get(); }
  Communicator* pipeline() const { return pipeline_.get(); }
  /// The ranks that have parts of the same model, and all ranks: tensor groups one after another, of a stage
  /// side by side. Null where no model is divided.
  Communicator* model() const { return model_.get(); }
  Communicator* all_in_groups() const { return all_.get(); }
  const ModelRank& model_rank() const { return model_rank_; }
  int stages() const { return pipeline_ ? pipeline_->size() : 1; }
  PipelineLinks& links() { return links_; }

  int ranks() const override { return tensor_ ? tensor_->size() : 1; }
  Result<void> sum(std::span<float> data, CommDtype dtype) override {
    return tensor_->allreduce(data, dtype);
  }
  Result<void> reduce_scatter(std::span<const float> data, std::span<float> mine, CommDtype dtype) override {
    return tensor_->reduce_scatter(data, mine, dtype);
  }
  Result<void> gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    return tensor_->allgather(mine, all);
  }

 private:
  Communicator* world_ = nullptr;
  ModelRank model_rank_;
  std::unique_ptr<Communicator> tensor_, pipeline_, data_, model_, all_;
  PipelineLinks links_;
};

}  // namespace dlrun::runtime
