// The plug-in's border: an engine on one device behind the C table. A step runs once plainly and is then
// captured in one CUDA graph: copies of the batch, forward, backward and results. Every Failure ends here and
// becomes a code and a text.
#include <cstring>

#include "runtime/graph/cuda/device.hpp"
#include "runtime/graph/cuda/lifetimes.hpp"

namespace dlrun::cuda {

void* Memory::device(std::size_t bytes, const char* what) {
  void* block = nullptr;
  const std::size_t wanted = bytes == 0 ? 16 : bytes;
  const cudaError_t error = cudaMalloc(&block, wanted);
  if (error == cudaErrorMemoryAllocation) {
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    cudaGetLastError();
    throw Failure("the GPU has no room for " + std::to_string(wanted >> 20) + " MiB of " + what + ": " +
                  std::to_string(free >> 20) + " of " + std::to_string(total >> 20) +
                  " MiB are free, this model has " + std::to_string(bytes_ >> 20) + " MiB already");
  }
  check(error, what);
  blocks_.push_back(block);
  bytes_ += wanted;
  check(cudaMemset(block, 0, wanted), what);
  return block;
}

void* Memory::pinned(std::size_t bytes) {
  void* block = nullptr;
  check(cudaMallocHost(&block, bytes == 0 ? 16 : bytes), "pinned memory of the host");
  pinned_.push_back(block);
  std::memset(block, 0, bytes);
  return block;
}

namespace {

thread_local std::string last_error;

class Nothing final : public Operator {
 public:
  void forward(Device&, Mode) override {}
  void backward(Device&) override {}
};

class Engine {
 public:
  Engine(const DlrunCudaPlan& plan, int device) : plan_(plan), number_(device) {
    check(cudaSetDevice(device), "choosing the GPU");
    // The side lane fills what main leaves idle: it must not delay it.
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for priorities");
    for (Lane* lane : {&device_.main, &device_.side}) {
      const int priority = lane == &device_.main ? greatest : least;
      check(cudaStreamCreateWithPriority(&lane->stream, cudaStreamNonBlocking, priority), "a stream");
      check(cudnnCreate(&lane->dnn), "starting cuDNN");
      check(cudnnSetStream(lane->dnn, lane->stream), "cuDNN's stream");
    }
    device_.stream = device_.main.stream;
    for (cudaEvent_t* event : {&device_.forked, &device_.joined})
      check(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "an event");
    device_.batch = plan.batch;
    device_.precision = plan.precision;
    make_arenas();
    make_tensors(plan);
    check(cudaDeviceSynchronize(), "clearing memory");
    make_operators(plan);
    for (Lane* lane : {&device_.main, &device_.side})
      lane->workspace = device_.memory.device(lane->workspace_bytes, "workspace of convolutions");
    check(cudaDeviceSynchronize(), "starting the GPU");
  }
  ~Engine() {
    cudaSetDevice(number_);
    cudaDeviceSynchronize();
    for (const cudaGraphExec_t graph : {train_, evaluate_})
      if (graph != nullptr) cudaGraphExecDestroy(graph);
    operators_.clear();
    for (const cudaEvent_t event : {device_.forked, device_.joined})
      if (event != nullptr) cudaEventDestroy(event);
    for (const Lane& lane : {device_.main, device_.side}) {
      if (lane.dnn != nullptr) cudnnDestroy(lane.dnn);
      if (lane.stream != nullptr) cudaStreamDestroy(lane.stream);
    }
  }

  float* input() const { return host_input_; }
  std::int32_t* labels() const { return host_labels_; }
  float* gradients() const { return host_gradients_; }
  std::size_t memory_bytes() const { return device_.memory.bytes(); }

  DlrunCudaResult train(const std::uint64_t* keys) {
    for (std::size_t i = 0; i < plan_.dropouts; ++i) host_keys_[i] = keys[i];
    return run(Mode::train, train_, train_warm_);
  }
  DlrunCudaResult evaluate() { return run(Mode::evaluate, evaluate_, evaluate_warm_); }

  void apply(const DlrunCudaRates& rates) {
    check(cudaSetDevice(number_), "choosing the GPU");
    const std::size_t count = plan_.floats - plan_.spare;
    if (plan_.gradients == DLRUN_CUDA_TRAVEL)
      copy(device_.gradients, host_gradients_, count * sizeof(float), cudaMemcpyHostToDevice);
    update(device_, count, rates);
  }

  void profile(float* milliseconds) {
    check(cudaSetDevice(number_), "choosing the GPU");
    for (std::size_t i = 0; i < operators_.size(); ++i) {
      Operator& made = *operators_[i];
      for (Tensor& tensor : device_.tensors) tensor.written = false;
      *milliseconds++ = milliseconds_of(device_.stream, [&] { made.forward(device_, Mode::train); });
      *milliseconds++ = milliseconds_of(device_.stream, [&] {
        for (Tensor& tensor : device_.tensors) tensor.written = false;
        made.backward(device_);
        join_side(device_);
      });
    }
    *milliseconds++ = milliseconds_of(device_.stream, [&] { copy_batch(Mode::train); });
    *milliseconds++ = milliseconds_of(device_.stream,
                                      [&] { update(device_, plan_.floats - plan_.spare, DlrunCudaRates{}); });
    *milliseconds++ = milliseconds_of(device_.stream, [&] { compute(Mode::train); });
  }

  void move(DlrunCudaArena arena, std::size_t offset, std::size_t count, void* host, cudaMemcpyKind kind) {
    check(cudaSetDevice(number_), "choosing the GPU");
    float* const starts[] = {device_.values, device_.momenta, device_.statistics};
    float* const at = starts[arena] + offset;
    if (kind == cudaMemcpyHostToDevice) {
      copy(at, host, count * sizeof(float), kind);
      stale_ = stale_ || arena == DLRUN_CUDA_VALUES;
    } else {
      copy(host, at, count * sizeof(float), kind);
    }
    check(cudaStreamSynchronize(device_.stream), "moving a tensor");
  }

 private:
  void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    check(cudaMemcpyAsync(to, from, bytes, kind, device_.stream), "a copy");
  }
  std::size_t input_bytes() const {
    return static_cast<std::size_t>(device_.tensors[0].elements) * sizeof(float);
  }
  std::size_t label_bytes() const { return static_cast<std::size_t>(plan_.batch) * sizeof(std::int32_t); }

  void make_arenas() {
    Memory& memory = device_.memory;
    const std::size_t bytes = plan_.floats * sizeof(float);
    device_.values = static_cast<float*>(memory.device(bytes, "parameters"));
    device_.gradients = static_cast<float*>(memory.device(bytes, "gradients"));
    device_.momenta = static_cast<float*>(memory.device(bytes, "momenta"));
    device_.statistics = static_cast<float*>(memory.device(plan_.statistics * sizeof(float), "statistics"));
    if (device_.half()) device_.copies = static_cast<Bf16*>(memory.device(bytes / 2, "bf16 parameters"));
    device_.keys = static_cast<std::uint64_t*>(memory.device(plan_.dropouts * sizeof(std::uint64_t), "keys"));
    device_.result = static_cast<double*>(memory.device(2 * sizeof(double), "results"));
    device_.labels = static_cast<std::int32_t*>(memory.device(label_bytes(), "labels"));
    host_gradients_ = static_cast<float*>(memory.pinned(bytes));
    host_keys_ = static_cast<std::uint64_t*>(memory.pinned(plan_.dropouts * sizeof(std::uint64_t)));
    host_result_ = static_cast<double*>(memory.pinned(2 * sizeof(double)));
    host_labels_ = static_cast<std::int32_t*>(memory.pinned(label_bytes()));
  }

  // Whether an operator reads the image as a tensor of the plan, not as the host left it.
  bool image_is_wanted(const DlrunCudaPlan& plan) const {
    for (std::size_t index = 1; index < plan.count; ++index)
      for (std::size_t i = 0; i < plan.nodes[index].input_count; ++i)
        if (plan.nodes[index].inputs[i] == 0 && !is_stem(device_, plan, plan.nodes[index])) return true;
    return false;
  }

  void make_tensors(const DlrunCudaPlan& plan) {
    std::vector<Lifetime> lifetimes = value_lifetimes(plan, device_.size());
    const std::vector<Lifetime> gradients = gradient_lifetimes(plan, device_.size());
    if (!image_is_wanted(plan)) lifetimes[0].bytes = 0;
    lifetimes.insert(lifetimes.end(), gradients.begin(), gradients.end());
    const Placement placement = place(lifetimes);
    auto* const start =
        static_cast<char*>(device_.memory.device(placement.bytes, "activations and their gradients"));
    for (std::size_t index = 0; index < plan.count; ++index) {
      const DlrunCudaNode& node = plan.nodes[index];
      Tensor tensor;
      tensor.wanted = lifetimes[index].bytes != 0;
      tensor.elements = plan.batch * node.channels * node.height * node.width;
      tensor.value = start + placement.offsets[index];
      if (gradients[index].bytes != 0) tensor.gradient = start + placement.offsets[plan.count + index];
      device_.tensors.push_back(tensor);
    }
    device_.input = static_cast<float*>(device_.memory.device(input_bytes(), "the batch"));
    host_input_ = static_cast<float*>(device_.memory.pinned(input_bytes()));
  }

  void make_operators(const DlrunCudaPlan& plan) {
    std::size_t dropouts = 0;
    for (std::size_t index = 0; index < plan.count; ++index) {
      const DlrunCudaNode& node = plan.nodes[index];
      const bool stem = is_stem(device_, plan, node);
      const auto make = [&]() -> Made {
        switch (node.kind) {
          case DLRUN_CUDA_INPUT:
            return make_input(device_, node, index);
          case DLRUN_CUDA_CONVOLUTION:
            return stem ? make_stem(device_, node, index) : make_convolution(device_, node, index);
          case DLRUN_CUDA_MAX_POOL:
            return make_max_pool(device_, node, index);
          case DLRUN_CUDA_AVERAGE_POOL:
            return make_average_pool(device_, node, index);
          case DLRUN_CUDA_BATCH_NORM:
            return make_batch_norm(device_, node, index);
          case DLRUN_CUDA_RELU:
            return make_relu(device_, node, index);
          case DLRUN_CUDA_DROPOUT:
            return make_dropout(device_, node, index, dropouts++);
          case DLRUN_CUDA_ADD:
            return make_add(device_, node, index);
          case DLRUN_CUDA_LOSS:
            return make_loss(device_, node, index);
          case DLRUN_CUDA_NOTHING:
            return std::make_unique<Nothing>();
        }
        throw Failure("an operator of an unknown kind");
      };
      operators_.push_back(make());
    }
  }

  void copy_batch(Mode mode) {
    copy(device_.input, host_input_, input_bytes(), cudaMemcpyHostToDevice);
    copy(device_.labels, host_labels_, label_bytes(), cudaMemcpyHostToDevice);
    if (mode == Mode::train && plan_.dropouts > 0)
      copy(device_.keys, host_keys_, plan_.dropouts * sizeof(std::uint64_t), cudaMemcpyHostToDevice);
  }
  void compute(Mode mode) {
    for (Tensor& tensor : device_.tensors) tensor.written = false;
    for (const Made& made : operators_) made->forward(device_, mode);
    if (mode == Mode::train)
      for (auto made = operators_.rbegin(); made != operators_.rend(); ++made) (*made)->backward(device_);
    join_side(device_);
  }
  void issue(Mode mode) {
    copy_batch(mode);
    compute(mode);
    copy(host_result_, device_.result, 2 * sizeof(double), cudaMemcpyDeviceToHost);
    if (mode == Mode::train && plan_.gradients == DLRUN_CUDA_TRAVEL)
      copy(host_gradients_, device_.gradients, (plan_.floats - plan_.spare) * sizeof(float),
           cudaMemcpyDeviceToHost);
  }

  // The first time plainly, so that libraries load what they need; from the second on as a graph.
  DlrunCudaResult run(Mode mode, cudaGraphExec_t& graph, bool& warm) {
    check(cudaSetDevice(number_), "choosing the GPU");
    if (stale_) refresh(device_, plan_.floats);
    stale_ = false;
    if (warm && graph == nullptr) graph = captured(device_.stream, [&] { issue(mode); });
    if (warm)
      check(cudaGraphLaunch(graph, device_.stream), "a step");
    else
      issue(mode);
    warm = true;
    check(cudaStreamSynchronize(device_.stream), "a step");
    return {host_result_[0], static_cast<std::int64_t>(host_result_[1])};
  }

  DlrunCudaPlan plan_;
  int number_;
  Device device_;
  std::vector<Made> operators_;
  float *host_input_ = nullptr, *host_gradients_ = nullptr;
  std::int32_t* host_labels_ = nullptr;
  std::uint64_t* host_keys_ = nullptr;
  double* host_result_ = nullptr;
  cudaGraphExec_t train_ = nullptr, evaluate_ = nullptr;
  bool train_warm_ = false, evaluate_warm_ = false, stale_ = true;
};

template <class Body>
int guarded(const Body& body) {
  try {
    body();
    return 0;
  } catch (const std::exception& failure) {
    last_error = failure.what();
    return 1;
  }
}

Engine& of(void* engine) {
  return *static_cast<Engine*>(engine);
}

int device_count(int* count) {
  return guarded([&] { check(cudaGetDeviceCount(count), "asking for GPUs"); });
}
int device_name(int device, char* text, std::size_t capacity) {
  return guarded([&] {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device), "asking the GPU for its name");
    std::strncpy(text, properties.name, capacity - 1);
    text[capacity - 1] = 0;
  });
}
int create(const DlrunCudaPlan* plan, int device, void** engine) {
  return guarded([&] { *engine = new Engine(*plan, device); });
}
void destroy(void* engine) {
  delete static_cast<Engine*>(engine);
}
float* input(void* engine) {
  return of(engine).input();
}
std::int32_t* labels(void* engine) {
  return of(engine).labels();
}
float* gradients(void* engine) {
  return of(engine).gradients();
}
std::size_t memory_bytes(void* engine) {
  return of(engine).memory_bytes();
}
int train(void* engine, const std::uint64_t* keys, DlrunCudaResult* result) {
  return guarded([&] { *result = of(engine).train(keys); });
}
int evaluate(void* engine, DlrunCudaResult* result) {
  return guarded([&] { *result = of(engine).evaluate(); });
}
int apply(void* engine, const DlrunCudaRates* rates) {
  return guarded([&] { of(engine).apply(*rates); });
}
int profile(void* engine, float* milliseconds) {
  return guarded([&] { of(engine).profile(milliseconds); });
}
int read(void* engine, DlrunCudaArena arena, std::size_t offset, std::size_t count, float* out) {
  return guarded([&] { of(engine).move(arena, offset, count, out, cudaMemcpyDeviceToHost); });
}
int write(void* engine, DlrunCudaArena arena, std::size_t offset, std::size_t count, const float* values) {
  return guarded(
      [&] { of(engine).move(arena, offset, count, const_cast<float*>(values), cudaMemcpyHostToDevice); });
}
void error_text(char* text, std::size_t capacity) {
  std::strncpy(text, last_error.c_str(), capacity - 1);
  text[capacity - 1] = 0;
}

}  // namespace
}  // namespace dlrun::cuda

extern "C" __attribute__((visibility("default"))) const DlrunCudaTable* dlrun_cuda_table() {
  namespace c = dlrun::cuda;
  static constexpr DlrunCudaTable kTable{DLRUN_CUDA_TABLE_VERSION,
                                         c::device_count,
                                         c::device_name,
                                         c::create,
                                         c::destroy,
                                         c::input,
                                         c::labels,
                                         c::gradients,
                                         c::memory_bytes,
                                         c::train,
                                         c::evaluate,
                                         c::apply,
                                         c::profile,
                                         c::read,
                                         c::write,
                                         c::error_text};
  return &kTable;
}
