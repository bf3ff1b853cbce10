// Parallel: how a job's ranks are divided into process groups for model parallelism. Ranks are numbered along
// a grid as Megatron-LM's RankGenerator numbers them: the first kind of the order varies fastest. Data
// parallelism takes what the others leave. Experts are divided over the ranks of one tensor and pipeline
// rank, as in Megatron-LM: `expert` x `expert-data` = `context` x `data`. It knows neither nodes nor
// frameworks.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "src/base/enum_names.hpp"

namespace dlrun::plan {

/// The kinds of process groups, in the default order of the first five. Ranks of one `expert_data` group have
/// the same experts.
enum class GroupKind { tensor, context, expert, data, pipeline, expert_data };
inline constexpr std::size_t kGroupKindCount = 6;
inline constexpr auto kGroupKinds = enum_names<GroupKind>({{GroupKind::tensor, "tensor"},
                                                           {GroupKind::context, "context"},
                                                           {GroupKind::expert, "expert"},
                                                           {GroupKind::data, "data"},
                                                           {GroupKind::pipeline, "pipeline"},
                                                           {GroupKind::expert_data, "expert-data"}});
constexpr std::string_view name_of(GroupKind kind) {
  return kGroupKinds.name(kind);
}

/// Kinds but `expert_data`, fastest first.
using GroupOrder = std::vector<GroupKind>;
inline const GroupOrder kMegatronOrder{GroupKind::tensor, GroupKind::context, GroupKind::expert,
                                       GroupKind::data, GroupKind::pipeline};

/// A number for each kind of group.
struct PerGroupKind {
  std::array<int, kGroupKindCount> values{};
  int& operator[](GroupKind kind) { return values[static_cast<std::size_t>(kind)]; }
  int operator[](GroupKind kind) const { return values[static_cast<std::size_t>(kind)]; }
  friend bool operator==(const PerGroupKind&, const PerGroupKind&) = default;
};

/// Whether the ranks of a tensor group have slices of the sequence between the layers that they divide, as
/// Megatron-LM's sequence parallelism.
enum class SequenceParallel { off, on };

/// What a job asks for.
struct ParallelSpec {
  int tensor = 1, context = 1, expert = 1, pipeline = 1;
  GroupOrder order = kMegatronOrder;
  std::vector<GroupKind> within_node{GroupKind::tensor};  // groups that must be on one node each
  SequenceParallel sequence = SequenceParallel::off;
  friend bool operator==(const ParallelSpec&, const ParallelSpec&) = default;
};

/// The groups of a job.
struct Parallel {
  PerGroupKind sizes;
  GroupOrder order;  // of all five kinds
  SequenceParallel sequence = SequenceParallel::off;
  int world_size() const;
  friend bool operator==(const Parallel&, const Parallel&) = default;
};

/// The ranks whose number the sizes must divide: tensor x context x pipeline.
int model_size(const ParallelSpec& spec);
/// The groups of `world` ranks, which model_size() divides. Kinds that the order lacks come last.
Parallel parallel_of(const ParallelSpec& spec, int world);
/// Whether the grid of the experts has the tensor and pipeline groups of the model.
bool experts_fit(const Parallel& parallel);

/// The rank of `rank` within its group of each kind.
PerGroupKind group_ranks(const Parallel& parallel, int rank);
/// All groups of a kind, by their first ranks; ranks within a group by their rank in it.
std::vector<std::vector<int>> groups(const Parallel& parallel, GroupKind kind);

/// One dimension of a device mesh, as torch's init_device_mesh takes them.
struct MeshDimension {
  GroupKind kind;
  int size;
};
/// The grid without experts, slowest first.
std::vector<MeshDimension> mesh(const Parallel& parallel);

}  // namespace dlrun::plan
