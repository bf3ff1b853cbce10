// What an engine is made of; step.cu runs it.
#include "runtime/cuda/lifetimes.hpp"
#include "runtime/cuda/plugin/engine.hpp"
#include "runtime/cuda/plugin/product.hpp"

namespace dlrun::cuda {

Engine::Engine(const DlrunCudaPlan& plan, int device)
    : plan_(plan),
      nodes_(plan.nodes, plan.nodes + plan.count),
      buckets_(plan.buckets, plan.buckets + plan.bucket_count),
      number_(device),
      update_(find_update(plan.optimizer)) {
  use();
  make_streams();
  device_.batch = plan.batch;
  device_.precision = plan.precision;
  device_.peers = &peers_;
  device_.by_shape = plan.of_shards != 0;
  make_arenas();
  make_exempt();
  make_slices(plan);
  common_.find(plan);
  make_rows();
  make_partial(plan);
  make_places(plan);
  for (Stream* stream : {&device_.main, &device_.side}) {
    stream->workspace = device_.memory.device(stream->workspace_bytes, "workspace of convolutions");
    stream->planes = device_.memory.device(stream->plane_bytes, "the planes of volumes");
  }
  // Timing left something there, and a parameter that no loss depends on is to have a gradient of zero.
  check(cudaMemset(device_.gradients, 0, plan.floats * sizeof(float)), "clearing gradients");
  check(cudaDeviceSynchronize(), "starting the GPU");
}

Engine::~Engine() {
  cudaSetDevice(number_);
  try {
    wait_for(peers_);  // a peer that is lost ends it
  } catch (const Failure&) {
  }
  cudaDeviceSynchronize();
  forget_programs();
  operators_.clear(), places_.clear();
  device_.algorithms.clear();
  for (const cudaEvent_t event : {device_.forked, device_.joined, device_.term, device_.group_done, staged_,
                                  taken_, final_, summed_, begun_, backward_done_, all_summed_})
    if (event != nullptr) cudaEventDestroy(event);
  for (const Stream& stream : {device_.main, device_.side}) {
    if (stream.dnn != nullptr) cudnnDestroy(stream.dnn);
    if (stream.stream != nullptr) cudaStreamDestroy(stream.stream);
  }
  if (device_.main.products != nullptr) cublasLtDestroy(device_.main.products);
  for (const cudaStream_t stream : {copies_, sums_, device_.group_stream})
    if (stream != nullptr) cudaStreamDestroy(stream);
}

// The side stream fills what main leaves idle: it must not delay it. Sums come first: what they wait for is
// the network, and the other ranks wait for them.
void Engine::make_streams() {
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for priorities");
  const int between = greatest + 1 < least ? greatest + 1 : greatest;
  const auto make = [](cudaStream_t& stream, int priority) {
    check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority), "a stream");
  };
  make(device_.main.stream, between);
  make(device_.side.stream, least);
  make(copies_, least);
  make(sums_, greatest);
  make(device_.group_stream, greatest);
  for (Stream* stream : {&device_.main, &device_.side}) {
    check(cudnnCreate(&stream->dnn), "starting cuDNN");
    check(cudnnSetStream(stream->dnn, stream->stream), "cuDNN's stream");
  }
  check(cublasLtCreate(&device_.main.products), "starting cuBLASLt");
  device_.side.products = device_.main.products;
  device_.stream = device_.main.stream;
  for (cudaEvent_t* event : {&device_.forked, &device_.joined, &device_.term, &device_.group_done, &staged_,
                             &taken_, &final_, &summed_})
    check(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "an event");
  for (cudaEvent_t* event : {&begun_, &backward_done_, &all_summed_})
    check(cudaEventCreate(event), "an event");
}

void Engine::make_arenas() {
  Memory& memory = device_.memory;
  const std::size_t bytes = plan_.floats * sizeof(float);
  device_.values = static_cast<float*>(memory.device(bytes, "parameters"));
  device_.gradients = static_cast<float*>(memory.device(bytes, "gradients"));
  for (std::size_t slot = 0; slot < plan_.state_slots; ++slot)
    device_.state[slot] =
        static_cast<float*>(memory.device(plan_.state_floats * sizeof(float), "state of the optimizer"));
  if (plan_.accumulates != 0) kept_ = static_cast<float*>(memory.device(bytes, "accumulated gradients"));
  device_.statistics = static_cast<float*>(memory.device(plan_.statistics * sizeof(float), "statistics"));
  const std::size_t tensors = plan_.parameter_count;
  auto* const slices =
      static_cast<DlrunCudaTensor*>(memory.device(tensors * sizeof(DlrunCudaTensor), "parameters' places"));
  check(cudaMemcpy(slices, plan_.parameters, tensors * sizeof(DlrunCudaTensor), cudaMemcpyHostToDevice),
        "parameters' places");
  device_.parameters = slices, device_.tensor_count = tensors;
  device_.tensor_sums = memory.device(tensors * kTensorSplits * 2 * sizeof(double), "sums over parameters");
  if (device_.half()) device_.copies = static_cast<Bf16*>(memory.device(bytes / 2, "bf16 parameters"));
  device_.result = static_cast<double*>(memory.device(kResults * sizeof(double), "results"));
  host_gradients_ = static_cast<float*>(memory.pinned(bytes));
  host_keys_ = static_cast<std::uint64_t*>(memory.pinned(plan_.rng_keys * sizeof(std::uint64_t)));
  norm_.make(device_);
  host_result_ = static_cast<double*>(memory.pinned(kResults * sizeof(double)));
  if (plan_.of_shards == 0) return;
  device_.stay = stay_ = static_cast<std::int32_t*>(memory.device(sizeof *stay_, "facts of shards"));
  host_stay_ = static_cast<std::int32_t*>(memory.pinned(sizeof *host_stay_));
}

// No list where all parameters have weight decay: an update need not look then.
void Engine::make_exempt() {
  std::vector<std::uint8_t> exempt(plan_.floats / DLRUN_CUDA_SLICE_ALIGNMENT);
  bool any = false;
  for (std::size_t index = 0; index < plan_.parameter_count; ++index) {
    const DlrunCudaTensor& tensor = plan_.parameters[index];
    if (tensor.decays != 0) continue;
    any = true;
    const std::size_t begin = tensor.offset / DLRUN_CUDA_SLICE_ALIGNMENT;
    for (std::size_t i = 0; i < tensor.length / DLRUN_CUDA_SLICE_ALIGNMENT; ++i) exempt[begin + i] = 1;
  }
  if (!any) return;
  void* const there = device_.memory.device(exempt.size(), "parameters without weight decay");
  check(cudaMemcpy(there, exempt.data(), exempt.size(), cudaMemcpyHostToDevice),
        "parameters without weight decay");
  device_.exempt = static_cast<const std::uint8_t*>(there);
}

// Of each place, with the keys by which its batch draws.
void Engine::make_input() {
  Memory& memory = device_.memory;
  void* const rows = memory.device(row_bytes(), "the batch");
  if (plan_.pixel_scale == nullptr)
    device_.input.numbers = static_cast<const float*>(rows);
  else
    device_.input.bytes = static_cast<const std::uint8_t*>(rows);
  for (std::int64_t i = 0; plan_.pixel_scale != nullptr && i < nodes_[0].channels; ++i)
    device_.input.scale[i] = plan_.pixel_scale[i], device_.input.shift[i] = plan_.pixel_shift[i];
  device_.keys = static_cast<std::uint64_t*>(memory.device(plan_.rng_keys * sizeof(std::uint64_t), "keys"));
}

// On the device twice: one batch is computed while the next arrives.
void Engine::make_rows() {
  Memory& memory = device_.memory;
  staged_rows_ = memory.device(row_bytes(), "the next batch");
  host_rows_ = memory.pinned(row_bytes());
  device_.labels = static_cast<std::int32_t*>(memory.device(label_bytes(), "labels"));
  staged_labels_ = static_cast<std::int32_t*>(memory.device(label_bytes(), "the next labels"));
  host_labels_ = static_cast<std::int32_t*>(memory.pinned(label_bytes()));
  if (plan_.targets > 0) {
    device_.targets = static_cast<float*>(memory.device(target_bytes(), "targets"));
    staged_targets_ = static_cast<float*>(memory.device(target_bytes(), "the next targets"));
    host_targets_ = static_cast<float*>(memory.pinned(target_bytes()));
  }
  if (plan_.mixes == 0) return;
  device_.mixed = static_cast<std::int32_t*>(memory.device(mixed_bytes(), "other labels"));
  staged_mixed_ = static_cast<std::int32_t*>(memory.device(mixed_bytes(), "the next other labels"));
  host_mixed_ = static_cast<std::int32_t*>(memory.pinned(mixed_bytes()));
}

// Whether an operator reads the image as a tensor of the plan, not as the host left it. Tokens are read so.
bool Engine::image_is_wanted(const DlrunCudaPlan& plan) const {
  if (has_stage_before()) return true;
  if (settings_of<op::Input>(plan.nodes[0]).kind == runtime::SampleKind::tokens) return false;
  for (std::size_t index = 1; index < plan.count; ++index)
    for (std::size_t i = 0; i < plan.nodes[index].input_count; ++i)
      if (plan.nodes[index].inputs[i] == 0 && !is_stem(device_, plan, plan.nodes[index])) return true;
  return false;
}

void Engine::make_tensors(const DlrunCudaPlan& plan) {
  std::vector<Lifetime> lifetimes = value_lifetimes(plan, device_.size());
  const std::vector<Lifetime> gradients = gradient_lifetimes(plan, device_.size());
  const std::vector<std::size_t> holders = gradient_holders(plan);
  if (!image_is_wanted(plan)) lifetimes[0].bytes = 0;
  const std::vector<Lifetime> again = restored_lifetimes(plan, device_.size());
  lifetimes.insert(lifetimes.end(), gradients.begin(), gradients.end());
  lifetimes.insert(lifetimes.end(), again.begin(), again.end());
  const std::size_t outgoing = has_stage_before() ? holders[0] : plan.count;
  if (has_stage_before()) lifetimes[plan.count + outgoing].bytes = 0;
  if (has_stage_before() && outgoing_ == nullptr)
    outgoing_ = device_.memory.device(gradients[outgoing].bytes, "the gradient for the stage before");
  const runtime::Packing packing = runtime::pack(lifetimes, kPackingAlignment);
  auto* const start =
      static_cast<char*>(device_.memory.device(packing.bytes, "activations and their gradients"));
  for (std::size_t index = 0; index < plan.count; ++index) {
    const DlrunCudaNode& node = plan.nodes[index];
    Tensor tensor;
    tensor.wanted = lifetimes[index].bytes != 0;
    tensor.last_reader = last_reader(plan, index);
    tensor.first_reader = first_reader(plan, index);
    tensor.elements = plan.batch * node.channels * node.height * node.width;
    tensor.value = (node.facts & DLRUN_CUDA_IN_PLACE) != 0 ? device_.tensors[node.inputs[0]].value
                                                           : start + packing.offsets[index];
    if (node.needs_gradient != 0 && gradients[holders[index]].bytes != 0)
      tensor.gradient =
          holders[index] == outgoing ? outgoing_ : start + packing.offsets[plan.count + holders[index]];
    if (again[index].bytes != 0) tensor.again = start + packing.offsets[2 * plan.count + index];
    device_.tensors.push_back(tensor);
  }
}

void Engine::make_operators(const DlrunCudaPlan& plan) {
  for (std::size_t index = 0; index < plan.count; ++index)
    operators_.push_back(make_operator(device_, plan, index));
}

void Engine::make_partial(const DlrunCudaPlan& plan) {
  std::int64_t widest = 0;
  for (std::size_t index = 0; index < plan.count; ++index)
    if (plan.nodes[index].bias != DLRUN_CUDA_NOWHERE && plan.nodes[index].channels > widest)
      widest = plan.nodes[index].channels;
  device_.partial = static_cast<float*>(device_.memory.device(
      static_cast<std::size_t>(kBiasSplits * widest) * sizeof(float), "sums of biases' gradients"));
}

// Where gradients have been summed on the device, they stay there, also while a rank is timed alone.
void Engine::connect(const DlrunCudaPeers& peers) {
  use();
  const bool joins = peers_.tensor_sum == nullptr && peers.tensor_sum != nullptr;
  peers_ = peers;
  if (sums_over_ranks()) plan_.gradients = DLRUN_CUDA_GRADIENTS_ON_DEVICE;
  if (joins) divide_norm(), common_.join(device_);
  forget_programs();
}

void Engine::forget(Program& program) {
  if (program.graph != nullptr) cudaGraphExecDestroy(program.graph);
  program = {};
}

void Engine::forget_programs() {
  for (Program& program : programs_) forget(program);
  for (Place& place : places_)
    for (Program& program : place.halves) forget(program);
}

}  // namespace dlrun::cuda
