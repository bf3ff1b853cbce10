// See process_groups.hpp.
#include "runtime/train/process_groups.hpp"

#include <fmt/format.h>

#include "src/base/units.hpp"

namespace dlrun::runtime {
namespace {

Result<int> number(const Environment& environment, const char* name, const char* otherwise, int low) {
  const std::string text = environment.get(name, otherwise);
  if (const auto value = parse_integer(text, low, 1 << 30)) return static_cast<int>(*value);
  return fail(Error{.kind = ErrorKind::usage, .what = fmt::format("{} is '{}', not a number", name, text)});
}

// One of the kinds, as rank and size in the environment say it.
Result<std::unique_ptr<Communicator>> group_of(Communicator& world, int color, int rank, int size,
                                               std::string_view kind) {
  auto out = TRY(world.split(color, rank));
  if (out->rank() == rank && out->size() == size) return out;
  return fail(
      Error{.kind = ErrorKind::usage,
            .what = fmt::format("the launcher says that this is rank {} of a {} group of {}, and it is "
                                "rank {} of {}",
                                rank, kind, size, out->rank(), out->size()),
            .where = fmt::format("rank {}", world.rank()),
            .hint = "start all ranks by one dlrun"});
}

struct RankOf {
  int rank = 0, ranks = 1;
};

// "TENSOR" or "PIPELINE"
Result<RankOf> rank_in(const Environment& environment, std::string_view kind) {
  const std::string rank = fmt::format("DLRUN_{}_RANK", kind), ranks = fmt::format("DLRUN_{}_SIZE", kind);
  const RankOf out{TRY(number(environment, rank.c_str(), "0", 0)),
                   TRY(number(environment, ranks.c_str(), "1", 1))};
  if (out.rank < out.ranks) return out;
  return fail(Error{.kind = ErrorKind::usage,
                    .what = fmt::format("{} is {}, and {} {}", rank, out.rank, ranks, out.ranks)});
}

}  // namespace

Result<GroupRanks> group_ranks_of(const Environment& environment) {
  const RankOf tensor = TRY(rank_in(environment, "TENSOR")), stage = TRY(rank_in(environment, "PIPELINE"));
  GroupRanks out{.model = {{tensor.rank, tensor.ranks}, {stage.rank, stage.ranks}}};
  const std::string sequence = environment.get("DLRUN_SEQUENCE_PARALLEL", "off");
  if (sequence != "on" && sequence != "off")
    return fail(Error{.kind = ErrorKind::usage,
                      .what = fmt::format("DLRUN_SEQUENCE_PARALLEL is '{}', neither on nor off", sequence)});
  if (sequence == "on") out.model.tensor.sequence = SequenceParallel::on;
  if (out.model.alone()) return out;
  out.data = TRY(number(environment, "DLRUN_DATA_RANK", "", 0));
  out.data_ranks = TRY(number(environment, "DLRUN_DATA_SIZE", "", 1));
  return out;
}

// A color or key is the rank in the slowest of the other groups first.
Result<void> ProcessGroups::connect(Communicator& world, const GroupRanks& ranks) {
  world_ = &world;
  model_rank_ = ranks.model;
  const auto& [tensor, stage] = ranks.model;
  if (ranks.model.alone()) return {};
  const int layer_part = stage.stage * tensor.parts + tensor.part;
  if (!tensor.alone())
    tensor_ = TRY(
        group_of(world, stage.stage * ranks.data_ranks + ranks.data, tensor.part, tensor.parts, "tensor"));
  if (!stage.alone()) {
    pipeline_ =
        TRY(group_of(world, ranks.data * tensor.parts + tensor.part, stage.stage, stage.stages, "pipeline"));
    links_.connect(*pipeline_);
  }
  data_ = TRY(group_of(world, layer_part, ranks.data, ranks.data_ranks, "data"));
  model_ = TRY(world.split(ranks.data, layer_part));
  all_ = TRY(world.split(0, (stage.stage * ranks.data_ranks + ranks.data) * tensor.parts + tensor.part));
  return {};
}

}  // namespace dlrun::runtime
