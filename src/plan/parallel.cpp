#include "src/plan/parallel.hpp"

#include <algorithm>
#include <map>

namespace dlrun::plan {
namespace {

// The distance of neighbours in a group, for the kinds of one grid; 0 for the others.
PerGroupKind model_strides(const Parallel& parallel) {
  PerGroupKind out;
  int stride = 1;
  for (const GroupKind kind : parallel.order) {
    if (kind == GroupKind::expert) continue;
    out[kind] = stride;
    stride *= parallel.sizes[kind];
  }
  return out;
}

// The experts' grid has no context, and its data groups are the expert-data groups.
PerGroupKind expert_strides(const Parallel& parallel) {
  PerGroupKind out;
  int stride = 1;
  for (const GroupKind kind : parallel.order) {
    if (kind == GroupKind::context) continue;
    const GroupKind here = kind == GroupKind::data ? GroupKind::expert_data : kind;
    out[here] = stride;
    stride *= parallel.sizes[here];
  }
  return out;
}

// Without experts: the rank among those with the same part of the model.
int rank_among_copies(const Parallel& parallel, const PerGroupKind& ranks) {
  int out = 0, count = 1;
  for (const GroupKind kind : parallel.order)
    if (kind == GroupKind::context || kind == GroupKind::data) {
      out += ranks[kind] * count;
      count *= parallel.sizes[kind];
    }
  return out;
}

// What all ranks of a group have in common and no rank of another group of the kind has.
PerGroupKind group_of(GroupKind kind, PerGroupKind ranks) {
  ranks[kind] = 0;
  const bool of_experts = kind == GroupKind::expert || kind == GroupKind::expert_data;
  if (of_experts)
    ranks[GroupKind::context] = ranks[GroupKind::data] = 0;
  else
    ranks[GroupKind::expert] = ranks[GroupKind::expert_data] = 0;
  return ranks;
}

}  // namespace

int Parallel::world_size() const {
  return sizes[GroupKind::tensor] * sizes[GroupKind::context] * sizes[GroupKind::data] *
         sizes[GroupKind::pipeline];
}

int model_size(const ParallelSpec& spec) {
  return spec.tensor * spec.context * spec.pipeline;
}

Parallel parallel_of(const ParallelSpec& spec, int world) {
  Parallel out;
  out.sizes[GroupKind::tensor] = spec.tensor;
  out.sizes[GroupKind::context] = spec.context;
  out.sizes[GroupKind::expert] = spec.expert;
  out.sizes[GroupKind::pipeline] = spec.pipeline;
  out.sizes[GroupKind::data] = world / model_size(spec);
  out.sizes[GroupKind::expert_data] = out.sizes[GroupKind::data] * spec.context / spec.expert;
  out.order = spec.order;
  out.sequence = spec.sequence;
  for (const GroupKind kind : kMegatronOrder)
    if (std::find(out.order.begin(), out.order.end(), kind) == out.order.end()) out.order.push_back(kind);
  return out;
}

bool experts_fit(const Parallel& parallel) {
  if (parallel.sizes[GroupKind::expert] == 1) return true;
  const PerGroupKind model = model_strides(parallel), experts = expert_strides(parallel);
  return std::all_of(kMegatronOrder.begin(), kMegatronOrder.end(), [&](GroupKind kind) {
    const bool shared = kind == GroupKind::tensor || kind == GroupKind::pipeline;
    return !shared || parallel.sizes[kind] == 1 || model[kind] == experts[kind];
  });
}

PerGroupKind group_ranks(const Parallel& parallel, int rank) {
  const PerGroupKind model = model_strides(parallel), experts = expert_strides(parallel);
  PerGroupKind out;
  for (const GroupKind kind : kMegatronOrder)
    if (kind != GroupKind::expert) out[kind] = rank / model[kind] % parallel.sizes[kind];
  if (parallel.sizes[GroupKind::expert] == 1) {
    out[GroupKind::expert_data] = rank_among_copies(parallel, out);
    return out;
  }
  for (const GroupKind kind : {GroupKind::expert, GroupKind::expert_data})
    out[kind] = rank / experts[kind] % parallel.sizes[kind];
  return out;
}

std::vector<std::vector<int>> groups(const Parallel& parallel, GroupKind kind) {
  std::map<std::array<int, kGroupKindCount>, std::size_t> known;
  std::vector<std::vector<int>> out;
  for (int rank = 0; rank < parallel.world_size(); ++rank) {
    const PerGroupKind key = group_of(kind, group_ranks(parallel, rank));
    const auto [at, is_new] = known.try_emplace(key.values, out.size());
    if (is_new) out.emplace_back();
    out[at->second].push_back(rank);
  }
  return out;
}

std::vector<MeshDimension> mesh(const Parallel& parallel) {
  std::vector<MeshDimension> out;
  for (const GroupKind kind : parallel.order)
    if (kind != GroupKind::expert) out.push_back({.kind = kind, .size = parallel.sizes[kind]});
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace dlrun::plan
