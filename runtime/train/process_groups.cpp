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

// One of the two kinds, as rank and size in the environment say it.
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

}  // namespace

Result<GroupRanks> group_ranks_of(const Environment& environment) {
  GroupRanks out;
  out.tensor.parts = TRY(number(environment, "DLRUN_TENSOR_SIZE", "1", 1));
  out.tensor.part = TRY(number(environment, "DLRUN_TENSOR_RANK", "0", 0));
  if (out.tensor.part >= out.tensor.parts)
    return fail(Error{.kind = ErrorKind::usage,
                      .what = fmt::format("DLRUN_TENSOR_RANK is {}, and DLRUN_TENSOR_SIZE {}",
                                          out.tensor.part, out.tensor.parts)});
  if (out.tensor.alone()) return out;
  out.data = TRY(number(environment, "DLRUN_DATA_RANK", "", 0));
  out.data_ranks = TRY(number(environment, "DLRUN_DATA_SIZE", "", 1));
  return out;
}

Result<void> ProcessGroups::connect(Communicator& world, const GroupRanks& ranks) {
  world_ = &world;
  if (ranks.tensor.alone()) return {};
  tensor_ = TRY(group_of(world, ranks.data, ranks.tensor.part, ranks.tensor.parts, "tensor"));
  data_ = TRY(group_of(world, ranks.tensor.part, ranks.data, ranks.data_ranks, "data"));
  return {};
}

}  // namespace dlrun::runtime
