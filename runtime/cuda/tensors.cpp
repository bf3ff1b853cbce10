// See flat_tensors.hpp. Parameters lie from the last node to the first, in a node as declared.
#include "runtime/cuda/tensors.hpp"

#include <algorithm>
#include <cassert>

#include "runtime/cuda/lowering.hpp"

namespace dlrun::runtime {

namespace {

// Calls body(place in plain layout, place on the device) for every number.
template <class Body>
void for_places(const Placed& placed, const Body& body) {
  const std::size_t channels = placed.channels, pixels = placed.pixels;
  for (std::size_t filter = 0; filter < placed.filters; ++filter)
    for (std::size_t channel = 0; channel < channels; ++channel)
      for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
        const std::size_t start = filter * channels * pixels;
        body(start + channel * pixels + pixel, start + pixel * channels + channel);
      }
}

std::size_t found(const std::vector<Placed>& tensors, const std::string& name) {
  const auto at =
      std::find_if(tensors.begin(), tensors.end(), [&](const Placed& of) { return of.info.name == name; });
  assert(at != tensors.end());  // the graph's builder saw to it
  return static_cast<std::size_t>(at - tensors.begin());
}

void close_bucket(CudaPlan& plan, std::size_t begin, std::size_t end, std::size_t node) {
  plan.buckets.push_back({begin, end - begin});
  plan.final_after.push_back({begin, end - begin, node});
}

}  // namespace

void to_device(const Placed& placed, std::span<const float> plain, std::span<float> device) {
  for_places(placed, [&](std::size_t from, std::size_t to) { device[to] = plain[from]; });
}

void to_plain(const Placed& placed, std::span<const float> device, std::span<float> plain) {
  for_places(placed, [&](std::size_t to, std::size_t from) { plain[to] = device[from]; });
}

void FlatTensors::parameter(std::size_t index, Weights whose, Placed placed, std::size_t DlrunCudaNode::*at) {
  const bool own = whose == Weights::own;
  uses_.push_back({index, own ? parameters_.size() : found(parameters_, placed.info.name), at, whose});
  if (own) parameters_.push_back(std::move(placed));
}

std::size_t FlatTensors::statistic(Weights whose, Placed placed) {
  if (whose != Weights::own) return statistics_[found(statistics_, placed.info.name)].offset;
  placed.arena = DLRUN_CUDA_STATISTICS;
  placed.offset = statistic_floats_;
  statistic_floats_ += placed.info.elements();
  statistics_.push_back(std::move(placed));
  return statistics_.back().offset;
}

bool FlatTensors::shares(std::size_t index) const {
  for (const Use& use : uses_)
    for (const Use& other : uses_)
      if (use.node == index && other.node != index && other.tensor == use.tensor) return true;
  return false;
}

void FlatTensors::move(std::size_t from, std::size_t to) {
  for (Use& use : uses_)
    if (use.node == from) use.node = to;
}

void FlatTensors::place(CudaPlan& plan, const EngineOptions& options) const {
  std::vector<Placed> parameters = parameters_;
  place_nodes(plan, parameters, options.bucket_bytes);
  place_shared(plan, parameters);
  plan.statistics = statistic_floats_;
  list(plan, std::move(parameters), options);
}

// Buckets are cut on the way. A gradient is final after its owner, the first node of those that share it.
void FlatTensors::place_nodes(CudaPlan& plan, std::vector<Placed>& parameters,
                              std::size_t bucket_bytes) const {
  constexpr std::size_t line = 16;  // floats
  std::size_t begin = 0;
  for (std::size_t node = plan.nodes.size(); node-- > 0;) {
    for (const Use& use : uses_) {
      if (use.node != node || use.whose != Weights::own) continue;
      parameters[use.tensor].offset = plan.floats;
      plan.floats += (parameters[use.tensor].info.elements() + line - 1) / line * line;
    }
    if ((plan.floats - begin) * sizeof(float) < bucket_bytes) continue;
    close_bucket(plan, begin, plan.floats, node);
    begin = plan.floats;
  }
  plan.floats += CudaPlan::kSpareSlots;
  if (begin + CudaPlan::kSpareSlots == plan.floats && !plan.buckets.empty()) {
    plan.buckets.back().length += CudaPlan::kSpareSlots;
    plan.final_after.back().length += CudaPlan::kSpareSlots;
  } else {
    close_bucket(plan, begin, plan.floats, 0);
  }
}

void FlatTensors::place_shared(CudaPlan& plan, const std::vector<Placed>& parameters) const {
  for (const Use& use : uses_) {
    DlrunCudaNode& node = plan.nodes[use.node];
    node.*use.at = parameters[use.tensor].offset;
    if (use.whose == Weights::frozen) node.learning = DLRUN_CUDA_HELD;
    if (adds(plan, use)) node.learning = DLRUN_CUDA_ADDS;
  }
}

// Whether backward of a node behind it, which comes first, has left a part of the gradient already.
bool FlatTensors::adds(const CudaPlan& plan, const Use& use) const {
  if (use.whose == Weights::frozen) return false;
  return std::any_of(uses_.begin(), uses_.end(), [&](const Use& other) {
    return other.tensor == use.tensor && other.node > use.node && other.whose != Weights::frozen &&
           plan.nodes[other.node].needs_gradient != 0;
  });
}

// The optimizer's state under PyTorch's names for Adam's.
void FlatTensors::list(CudaPlan& plan, std::vector<Placed> parameters, const EngineOptions& options) const {
  plan.tensors = parameters;
  plan.tensors.insert(plan.tensors.end(), statistics_.begin(), statistics_.end());
  const auto state = [&](const char* part, DlrunCudaArena arena) {
    for (Placed of : parameters) {
      of.info.name += part;
      of.info.role = TensorInfo::Role::momentum;
      of.arena = arena;
      plan.tensors.push_back(std::move(of));
    }
  };
  state(options.adam ? ".exp_avg" : ".momentum", DLRUN_CUDA_MOMENTA);
  if (options.adam) state(".exp_avg_sq", DLRUN_CUDA_SQUARES);
}

}  // namespace dlrun::runtime
