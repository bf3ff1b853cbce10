// See tensors.hpp.
#include "runtime/cuda/tensors.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "runtime/base/host_threads.hpp"
#include "runtime/cuda/lowering.hpp"

namespace dlrun::runtime {

namespace {

static_assert(DLRUN_CUDA_SLICE_ALIGNMENT == kSliceAlignment);

// Into blocks of filters: a rank's part of a parameter begins at a multiple of the alignment, too.
Cuts cuts_of(const DeviceOrder& order) {
  const std::size_t filter = order.floats_of_filter();
  if (order.filters == 1) return {};
  const std::size_t filters = kSliceAlignment / std::gcd(kSliceAlignment, filter);
  return {.floats = filters * filter, .axis = 0, .rows = static_cast<std::int64_t>(filters)};
}

DlrunCudaShare share_of(const ParameterSpec& parameter) {
  if (parameter.of) return DLRUN_CUDA_PART;
  return parameter.gradient == GradientOf::term ? DLRUN_CUDA_TERM : DLRUN_CUDA_WHOLE;
}

// Of a copy, to be worth a thread.
constexpr std::size_t kNumbersPerThread = std::size_t{1} << 20;

// Calls body(place in plain layout, place on the device) for every number.
template <class Body>
void for_places(const DeviceOrder& order, const Body& body) {
  const std::size_t channels = order.channels, planes = order.planes, pixels = order.pixels;
  const std::size_t floats = order.floats_of_filter();
  const auto work = [&](std::size_t begin, std::size_t end) {
    for (std::size_t filter = begin; filter < end; ++filter)
      for (std::size_t channel = 0; channel < channels; ++channel)
        for (std::size_t plane = 0; plane < planes; ++plane)
          for (std::size_t pixel = 0; pixel < pixels; ++pixel)
            body(filter * floats + (channel * planes + plane) * pixels + pixel,
                 filter * floats + (pixel * planes + plane) * channels + channel);
  };
  on_all_processors(order.filters, 1 + kNumbersPerThread / std::max<std::size_t>(1, floats), work);
}

// Whose tensors are declared for it.
bool has_own(Weights whose) {
  return whose == Weights::own || whose == Weights::tied;
}

template <class Spec>
std::size_t find(const std::vector<Spec>& declared, const std::string& name) {
  const auto at =
      std::find_if(declared.begin(), declared.end(), [&](const Spec& of) { return of.name == name; });
  assert(at != declared.end());  // the graph's builder saw to it
  return static_cast<std::size_t>(at - declared.begin());
}

}  // namespace

void to_device(const DeviceOrder& order, std::span<const float> plain, std::span<float> device) {
  for_places(order, [&](std::size_t from, std::size_t to) { device[to] = plain[from]; });
}

void to_plain(const DeviceOrder& order, std::span<const float> device, std::span<float> plain) {
  for_places(order, [&](std::size_t to, std::size_t from) { plain[to] = device[from]; });
}

void CudaTensors::parameter(std::size_t index, Weights whose, ParameterSpec spec, const DeviceOrder& order,
                            std::size_t DlrunCudaNode::*at) {
  if (!has_own(whose)) {
    uses_.push_back({index, find(layout_.parameters(), spec.name), at, whose});
    return;
  }
  spec.node = index;
  spec.floats = order.filters * order.floats_of_filter();
  spec.form = "cuda";
  spec.cuts = cuts_of(order);
  spec.weights = whose;
  uses_.push_back({index, layout_.declare(std::move(spec)), at, whose});
  orders_.push_back(order);
}

std::size_t CudaTensors::statistic(Weights whose, StatisticSpec spec) {
  return layout_.statistic_offset(has_own(whose) ? layout_.declare(std::move(spec))
                                                 : find(layout_.statistics(), spec.name));
}

bool CudaTensors::shares(std::size_t index) const {
  for (const Use& use : uses_)
    for (const Use& other : uses_)
      if (use.node == index && other.node != index && other.parameter == use.parameter) return true;
  return false;
}

void CudaTensors::move(std::size_t from, std::size_t to) {
  for (Use& use : uses_) {
    if (use.node != from) continue;
    use.node = to;
    if (has_own(use.whose)) layout_.move_to_node(use.parameter, to);
  }
}

void CudaTensors::move_bias(std::size_t from, std::size_t to) {
  for (Use& use : uses_)
    if (use.node == from && use.at == &DlrunCudaNode::bias) use.node = to;
}

void CudaTensors::place(CudaPlan& plan, const EngineOptions& options) {
  layout_.finish(*options.optimizer.traits, options.bucket_bytes,
                 options.average ? StateLayout::Averages::kept : StateLayout::Averages::none,
                 options.state_part);
  plan.layout = std::move(layout_);
  plan.orders = std::move(orders_);
  for (std::size_t index = 0; index < plan.layout.parameters().size(); ++index) {
    const Bucket& slice = plan.layout.slice(index);
    const ParameterSpec& of = plan.layout.parameters()[index];
    const OwnedRange& own = plan.layout.owned(index);
    plan.tensors.push_back({slice.offset, slice.length, of.shape.size() == 1 ? 1 : 0,
                            options.no_decay.covers(of.name, of.shape) ? 0 : 1, share_of(of), own.begin,
                            own.end, 0});
  }
  for (std::size_t bucket = 0; bucket < plan.layout.buckets().size(); ++bucket) {
    const Bucket& of = plan.layout.buckets()[bucket];
    plan.buckets.push_back({of.offset, of.length, plan.layout.bucket_nodes()[bucket], 0});
  }
  if (options.state_part) list_owned(plan, static_cast<std::size_t>(options.state_part->rank));
  place_in_nodes(plan);
}

// The state lies in the order of the buckets.
void CudaTensors::list_owned(CudaPlan& plan, std::size_t rank) {
  std::size_t state = 0;
  for (std::size_t bucket = 0; bucket < plan.layout.buckets().size(); ++bucket) {
    const std::vector<std::size_t>& borders = plan.layout.borders()[bucket];
    const std::size_t length = borders[rank + 1] - borders[rank];
    plan.owned.push_back({plan.layout.buckets()[bucket].offset + borders[rank], length, state});
    state += length;
  }
  assert(state == plan.layout.state_floats());
}

void CudaTensors::place_in_nodes(CudaPlan& plan) const {
  for (const Use& use : uses_) {
    DlrunCudaNode& node = plan.nodes[use.node];
    node.*use.at = plan.layout.slice(use.parameter).offset;
    if (use.whose == Weights::frozen) node.learning = DLRUN_CUDA_FROZEN;
    if (accumulates(plan, use)) node.learning = DLRUN_CUDA_GRAD_ACCUMULATE;
  }
}

// Whether backward of a node behind it, which comes first, has left a part of the gradient already.
bool CudaTensors::accumulates(const CudaPlan& plan, const Use& use) const {
  if (use.whose == Weights::frozen) return false;
  return std::any_of(uses_.begin(), uses_.end(), [&](const Use& other) {
    return other.parameter == use.parameter && other.node > use.node && other.whose != Weights::frozen &&
           (plan.nodes[other.node].needs_gradient != 0 ||
            (plan.nodes[other.node].facts & DLRUN_CUDA_IS_LOSS) != 0);
  });
}

}  // namespace dlrun::runtime
