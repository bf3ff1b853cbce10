// Startup: brings up what training needs, side by side because each part waits for something else: the data
// are read in one thread, the model is compiled in another, and the ranks connect in the main one.
#pragma once

#include <memory>

#include "runtime/comm/communicator.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/train/gpu.hpp"
#include "runtime/train/process_groups.hpp"
#include "runtime/train/train_spec.hpp"

namespace dlrun::runtime {

struct PreparedTraining {
  std::unique_ptr<Communicator> world;  // with its parameter servers, where these are ranks of their own
  std::unique_ptr<Communicator> comm;   // the workers': the world, where there are no such servers
  ProcessGroups groups;                 // of it; outlives the engine
  /// The ranks that have the same model on other data: they sum gradients, and divide the optimizer's state.
  Communicator& data_group() const { return groups.model() == nullptr ? *comm : groups.data(); }
  std::uint64_t tensors = 0;  // the checksum of all tensors of the whole model
  Device device;              // outlives the engine on it
  std::unique_ptr<Engine> engine;
  CudaEngine* on_gpu = nullptr;  // the engine, where it is one
  DataParts data;
};

/// On an Error after the ranks connected, `comm` is left set, for the caller to end the job through. The
/// batch becomes this rank's part of a global one.
Result<void> prepare(TrainSpec& spec, const Environment& environment, PreparedTraining& out);

/// What --check-settings does beyond reading the job: the names and the size of the model's parameters, as
/// far as they are known without the data. `rank`: of the ranks that share the model.
Result<void> check_settings(const TrainSpec& spec, const ModelRank& rank = {});

/// What --check does: everything that can be known without the other ranks. What was found, for people.
Result<std::string> check_job(const TrainSpec& spec, const Environment& environment,
                              const ModelRank& rank = {});

/// An Error, the same on every rank, where ranks disagree about the model, the data or the job.
Result<void> check_agreement(const TrainSpec& spec, const PreparedTraining& prepared);

/// The checksum of all tensors of the model, of all its stages. All ranks call it.
Result<std::uint64_t> tensors_of_model(const PreparedTraining& prepared);

/// A checksum of what all ranks must have in common beyond the plan and the data.
std::uint64_t job_checksum(const TrainSpec& spec, const ModelRank& rank = {});

/// The options of this rank's engine. `rank`: among those that have other samples.
EngineOptions engine_options(const TrainSpec& spec, int rank);

}  // namespace dlrun::runtime
