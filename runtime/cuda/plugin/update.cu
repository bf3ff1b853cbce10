// The update behind a step: the limit of the gradients' norm, the optimizer's pass and averages. Where ranks
// have a part of the optimizer's state each, all of it in this rank's slices; then the weights come to all.
#include "runtime/cuda/plugin/clip.hpp"
#include "runtime/cuda/plugin/engine.hpp"

namespace dlrun::cuda {
namespace {

// As optim/average.hpp has it.
void average_weights(float* average, const float* values, std::size_t length, float kept,
                     cudaStream_t stream) {
  for_each(stream, static_cast<std::int64_t>(length),
           [=] __device__(std::int64_t i) { average[i] = kept * average[i] + (1 - kept) * values[i]; });
}

void swap_weights(float* average, float* values, std::size_t length, cudaStream_t stream) {
  for_each(stream, static_cast<std::int64_t>(length), [=] __device__(std::int64_t i) {
    const float value = values[i];
    values[i] = average[i];
    average[i] = value;
  });
}

void divide(float* numbers, std::size_t count, float by, cudaStream_t stream) {
  for_each(stream, static_cast<std::int64_t>(count), [=] __device__(std::int64_t i) { numbers[i] /= by; });
}

// The parts of the slice between the copies, which lie in it in any order.
void count_in_norm(const DlrunCudaPlan& plan, const DlrunCudaOwned& own, std::vector<NormSlice>& to) {
  std::size_t begin = own.offset;
  const std::size_t end = own.offset + own.length;
  while (begin < end) {
    std::size_t next = end, behind = end;  // the next copy
    for (std::size_t index = 0; index < plan.parameter_count; ++index) {
      const DlrunCudaTensor& tensor = plan.parameters[index];
      const std::size_t tensor_end = tensor.offset + tensor.length;
      if (tensor.is_copy == 0 || tensor_end <= begin || tensor.offset >= next) continue;
      next = tensor.offset < begin ? begin : tensor.offset, behind = tensor_end;
    }
    if (next > begin) to.push_back({begin, next - begin, 1});
    begin = behind;
  }
}

// As long as it lives, the arenas of the device begin with that slice of them.
class Within {
 public:
  Within(Device& device, const DlrunCudaOwned& slice)
      : device_(device),
        values_(device.values),
        gradients_(device.gradients),
        copies_(device.copies),
        exempt_(device.exempt) {
    device.values += slice.offset, device.gradients += slice.offset;
    if (copies_ != nullptr) device.copies += slice.offset;
    if (exempt_ != nullptr) device.exempt += slice.offset / DLRUN_CUDA_SLICE_ALIGNMENT;
    for (std::size_t slot = 0; slot < runtime::kMaxStateArenas; ++slot) {
      state_[slot] = device.state[slot];
      if (state_[slot] != nullptr) device.state[slot] += slice.state;
    }
  }
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;
  ~Within() {
    device_.values = values_, device_.gradients = gradients_;
    device_.copies = copies_, device_.exempt = exempt_;
    for (std::size_t slot = 0; slot < runtime::kMaxStateArenas; ++slot) device_.state[slot] = state_[slot];
  }

 private:
  Device& device_;
  float *values_, *gradients_;
  Bf16* copies_;
  const std::uint8_t* exempt_;
  float* state_[runtime::kMaxStateArenas] = {};
};

}  // namespace

// All of the gradients, or what of each bucket is this rank's. What another stage has, too, counts there in
// the norm.
void Engine::make_slices(const DlrunCudaPlan& plan) {
  bool has_copies = false;
  for (std::size_t index = 0; index < plan.parameter_count; ++index) {
    const DlrunCudaTensor& tensor = plan.parameters[index];
    has_copies = has_copies || tensor.is_copy != 0;
    if (tensor.is_copy != 0 || tensor.own_begin == tensor.own_end) continue;
    (tensor.share == DLRUN_CUDA_PART ? parts_ : commons_)
        .push_back({tensor.offset + tensor.own_begin, tensor.own_end - tensor.own_begin, 1});
  }
  if (plan.owned == nullptr) slices_.push_back({0, gradient_count(), 0});
  for (std::size_t bucket = 0; plan.owned != nullptr && bucket < plan.bucket_count; ++bucket)
    if (plan.owned[bucket].length > 0) slices_.push_back(plan.owned[bucket]);
  if (plan.owned == nullptr && !has_copies) return;
  std::vector<NormSlice> squared;
  for (const DlrunCudaOwned& own : slices_) count_in_norm(plan, own, squared);
  norm_.set_slices(device_, squared);
}

// Of a divided model, what all ranks of the tensor group have counts once among them. Where these have
// divided the state of the optimizer otherwise, all of it still does, among all ranks.
void Engine::divide_norm() {
  std::vector<NormSlice> squared = parts_;
  for (const NormSlice& common : commons_)
    squared.push_back({common.offset, common.length, 1 / static_cast<double>(peers_.tensor_ranks)});
  norm_.set_slices(device_, squared);
}

void Engine::limit_norm(float scale, float limit) {
  norm_.sum_squares(device_, gradient_count());
  if (peers_.exchange != nullptr) add_norms(peers_.exchange, peers_.context, peers_.ranks);
  if (peers_.tensor_exchange != nullptr)
    add_norms(peers_.tensor_exchange, peers_.context, peers_.tensor_ranks);
  if (peers_.stage.exchange != nullptr)
    add_norms(peers_.stage.exchange, peers_.stage.context, peers_.stage.stages);
  norm_.find_clip(device_, scale, limit);
}

void Engine::add_norms(decltype(DlrunCudaPeers::exchange) exchange, void* context, std::size_t ranks) {
  double* const all = norm_.all(device_, ranks);
  told(exchange(context, norm_.own(), all, sizeof(double), device_.stream), "the gradients' norm");
  norm_.add_up(device_, ranks);
  awaits_peers_ = true;
}

void Engine::apply(const float* factors, float kept, float scale, float clip) {
  use();
  if (plan_.gradients == DLRUN_CUDA_GRADIENTS_STAGED_THROUGH_HOST)
    copy(device_.gradients, host_gradients_, gradient_count() * sizeof(float), cudaMemcpyHostToDevice);
  device_.clip = nullptr;
  if (clip > 0) limit_norm(scale, clip);
  for (const DlrunCudaOwned& slice : slices_) {
    const Within within(device_, slice);
    update_(device_, static_cast<std::int64_t>(slice.length), factors);
    if (plan_.averages != 0)
      average_weights(device_.state[plan_.state_slots - 1], device_.values, slice.length, kept,
                      device_.stream);
  }
  gather_values();
}

void Engine::swap_averages() {
  use();
  if (plan_.averages == 0) return;
  for (const DlrunCudaOwned& slice : slices_) {
    const Within within(device_, slice);
    swap_weights(device_.state[plan_.state_slots - 1], device_.values, slice.length, device_.stream);
  }
  stale_ = true;
  gather_values();
}

// The sums of all ranks are the same bits, so their means are.
void Engine::average_state(const DlrunCudaPeers& peers, std::size_t ranks) {
  use();
  const auto average = [&](float* numbers, std::size_t count) {
    if (count == 0) return;
    told(peers.sum(peers.context, numbers, count, device_.stream), "averaging the ranks' weights");
    divide(numbers, count, static_cast<float>(ranks), device_.stream);
  };
  average(device_.values, gradient_count());
  for (std::size_t slot = 0; slot < plan_.state_slots; ++slot) average(device_.state[slot], gradient_count());
  average(device_.statistics, plan_.statistics);
  stale_ = true;
  wait_for(peers);
}

void Engine::gather_values() {
  if (peers_.gather == nullptr) return;
  told(peers_.gather(peers_.context, device_.values, device_.stream), "gathering weights");
  stale_ = awaits_peers_ = true;
}

}  // namespace dlrun::cuda
