// The command line of dlrun-train. It is started by a launcher, so it has few flags and is strict about them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/graph/model_rank.hpp"
#include "src/base/result.hpp"

namespace dlrun::runtime {

struct Arguments {
  enum class Action { train, check, check_settings, version, help };
  Action action = Action::train;
  std::filesystem::path config;
  // Where the job is only checked: the ranks that it will have, those of each of its tensor groups, and the
  // stages of its pipelines.
  std::optional<int> ranks, tensor_ranks, stages;
  std::optional<int> servers;  // parameter servers of their own, besides the ranks
  SequenceParallel sequence = SequenceParallel::off;
  ModelRank model() const { return first_of(tensor_ranks.value_or(1), stages.value_or(1), sequence); }
  int ranks_of_model() const { return tensor_ranks.value_or(1) * stages.value_or(1); }
};

Result<Arguments> parse_arguments(const std::vector<std::string>& words);
std::string_view help_text();

}  // namespace dlrun::runtime
