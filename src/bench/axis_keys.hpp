// Axis keys: which keys of the job a point of a benchmark sets. An axis is a key of the job file with dots
// (train.optimizer.lr), or a short name for one that the tables of papers have (nodes, batch, servers). Pure.
// What a value means is the job's and the trainer's to judge.
#pragma once

#include "src/plan/config_layers.hpp"
#include "src/plan/job_spec.hpp"

namespace dlrun::bench {

/// An Error with the nearest name where the axis is neither a short name nor a path.
Result<void> check_axis(const std::string& key, const std::string& source);

/// An Error where the axis can never have the value, whatever the job: fewer than one thread.
Result<void> check_value(const plan::BenchValue& value);

/// An Error where two keys of a point set the same key of the job: one of them would count for nothing.
Result<void> check_distinct(const plan::BenchPoint& point, const plan::JobSpec& spec);

/// The key of the job that an axis sets; an Error where this framework has none.
Result<std::string> job_key_of(const plan::BenchValue& value, const plan::JobSpec& spec);

/// What the values of a point set in the job. `global-batch` sets nothing here: see set_global_batch().
Result<std::vector<plan::Override>> overrides_of(const plan::BenchPoint& point, const plan::JobSpec& spec);

/// The batch of each rank, where the point has an axis `global-batch`: an Error where it does not divide.
Result<std::optional<plan::Override>> global_batch_of(const plan::BenchPoint& point,
                                                      const plan::JobSpec& spec, int ranks);

/// How the builtin trainer measures a point: benchmark or epochs, and nothing that a benchmark cannot have.
std::vector<plan::Override> measuring_overrides(const plan::BenchSpec& bench, const plan::JobSpec& spec);

}  // namespace dlrun::bench
