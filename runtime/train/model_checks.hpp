// What a training with tensor groups or pipelines cannot do yet, or a model cannot be divided into: refused
// with the reason before its ranks start, and by each rank that is started otherwise.
#pragma once

#include "runtime/graph/model_rank.hpp"
#include "runtime/train/train_spec.hpp"

namespace dlrun::runtime {

/// Of the settings, what is not supported yet where ranks have GPUs: also of divided optimizer state.
Result<void> check_gpu_settings(const TrainSpec& spec, const ModelRank& rank);
/// Of the settings alone.
Result<void> check_model_settings(const TrainSpec& spec, const ModelRank& rank);
/// What this rank has of the model; all of it where it is alone, which is checked all the same. Errors have
/// the place of train.model.
Result<Graph> divided_graph(const TrainSpec& spec, const Graph& whole, const ModelRank& rank);

}  // namespace dlrun::runtime
