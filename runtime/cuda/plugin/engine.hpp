// An engine on one device: arenas, tensors and operators of one plan, and the order of a step. A step runs
// once plainly and is then captured in one CUDA graph: forward, backward, sums over the ranks and results.
// Rows go to the device on a stream of their own, beside the step before. A stage of a pipeline takes a step
// in halves, with a graph for each half and place. Called from one thread.
#pragma once

#include "runtime/cuda/plugin/clip.hpp"
#include "runtime/cuda/plugin/device.hpp"
#include "runtime/cuda/plugin/optimizers/optimizer.hpp"
#include "runtime/cuda/plugin/tensor_group.hpp"

namespace dlrun::cuda {

// The operator of node `index`.
OperatorPtr make_operator(Device& device, const DlrunCudaPlan& plan, std::size_t index);

class Engine {
 public:
  Engine(const DlrunCudaPlan& plan, int device);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  void connect(const DlrunCudaPeers& peers);
  float* input();
  std::uint8_t* pixels();
  std::int32_t* labels();
  std::int32_t* mixed_labels();
  float* targets();
  float* gradients() const { return host_gradients_; }
  std::size_t memory_bytes() const { return device_.memory.bytes(); }

  void stage();
  void begin(DlrunCudaWork work, DlrunCudaStatistics statistics, const std::uint64_t* keys);
  void begin_half(DlrunCudaHalf half, std::size_t place, const std::uint64_t* keys);
  DlrunCudaResult end();
  void apply(const float* factors, float kept, float scale, float clip);
  void swap_averages();
  void average_state(const DlrunCudaPeers& peers, std::size_t ranks);
  void generate(std::size_t first, std::size_t last, const std::uint64_t* keys, float* images);
  void next_scores(std::int64_t position, float* scores);
  void profile(float* milliseconds);
  void time_sum(std::size_t count, float& issued, float& captured);
  void move(DlrunCudaArena arena, std::size_t offset, std::size_t count, void* host, cudaMemcpyKind kind);

 private:
  struct Program {  // of a kind of work
    cudaGraphExec_t graph = nullptr;
    bool warm = false;
  };
  // What a batch needs of the device until its backward is done, with the operators that keep more of it. A
  // whole model has one such place; a stage of a pipeline has one for each batch that is under way in it.
  struct Place {
    std::vector<Tensor> tensors;
    std::map<std::size_t, const ColumnSums*> bias_sums;
    Rows input;
    std::uint64_t* keys = nullptr;
    std::vector<OperatorPtr> operators;
    std::vector<bool> written;  // of the tensors' gradients, once the forward pass is done
    Program halves[3];          // by DlrunCudaHalf
  };

  void make_streams();
  void make_arenas();
  void make_exempt();
  void make_rows();
  void make_input();
  void make_places(const DlrunCudaPlan& plan);
  void make_slices(const DlrunCudaPlan& plan);
  void make_tensors(const DlrunCudaPlan& plan);
  void make_partial(const DlrunCudaPlan& plan);
  void make_operators(const DlrunCudaPlan& plan);
  bool image_is_wanted(const DlrunCudaPlan& plan) const;

  void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);
  bool has_stage_before() const;
  bool is_stage() const { return has_stage_before() || has_stage_behind(); }
  bool has_stage_behind() const;
  std::size_t row_bytes() const;
  std::size_t label_bytes() const;
  std::size_t mixed_bytes() const { return static_cast<std::size_t>(plan_.batch) * 2 * sizeof(float); }
  std::size_t target_bytes() const {
    return static_cast<std::size_t>(plan_.batch * plan_.targets) * sizeof(float);
  }
  void await_staged();
  void take_rows();
  void keep_facts(DlrunCudaStatistics statistics, const std::uint64_t* keys);
  void send_facts();
  void refresh_copies();
  void compute(DlrunCudaWork work);
  void pass_forward(Mode mode);
  void pass_back(DlrunCudaWork work);
  void send_gradients_home(DlrunCudaWork work);
  template <class Issue>
  void run(Program& program, const Issue& issue);
  // Of a stage of a pipeline.
  void take_place(std::size_t place);
  void swap_with(Place& place);
  void begin_forward(const std::uint64_t* keys);
  void begin_backward(DlrunCudaWork work, Program& program);
  void receive_values();
  void send_values();
  void receive_gradients();
  void send_gradients();
  bool sends_beside_sums(DlrunCudaWork work) const;
  void forget(Program& program);
  void forget_programs();
  void go_back(std::size_t node);
  bool sums_over_ranks() const { return peers_.sum != nullptr || peers_.scatter != nullptr; }
  void send_buckets(std::size_t node);
  void sum_bucket(std::size_t bucket, std::size_t length);
  void join_sums();
  void divide_norm();
  void limit_norm(float scale, float limit);
  void add_norms(decltype(DlrunCudaPeers::exchange) exchange, void* context, std::size_t ranks);
  void gather_values();
  void mark(cudaEvent_t event);
  void issue(DlrunCudaWork work);
  void wait_for(const DlrunCudaPeers& peers);
  void use() const { check(cudaSetDevice(number_), "choosing the GPU"); }
  // Whether batches before the last have left gradients here, and not with what sums.
  bool adds_kept() const { return kept_ != nullptr && peers_.keep == nullptr; }
  // Of the gradients, without the slots behind them.
  std::size_t gradient_count() const { return plan_.floats - plan_.spare; }

  DlrunCudaPlan plan_;
  std::vector<DlrunCudaNode> nodes_;
  std::vector<DlrunCudaBucket> buckets_;
  int number_;
  Device device_;
  std::vector<OperatorPtr> operators_;
  std::vector<Place> places_;  // but for the one in use, which is in device_ and operators_
  std::size_t place_ = 0;      // in use
  // The gradient for the stage before, of all places: the next values may come before it has gone.
  void* outgoing_ = nullptr;
  void *host_rows_ = nullptr, *staged_rows_ = nullptr;
  std::int32_t *host_labels_ = nullptr, *staged_labels_ = nullptr;
  std::int32_t *host_mixed_ = nullptr, *staged_mixed_ = nullptr;  // where the plan mixes
  float *host_targets_ = nullptr, *staged_targets_ = nullptr;     // where the plan has them
  float* host_gradients_ = nullptr;
  std::uint64_t* host_keys_ = nullptr;
  std::int32_t *host_stay_ = nullptr, *stay_ = nullptr;  // of shards
  double* host_result_ = nullptr;
  GradientNorm norm_;
  CommonGradients common_;
  std::vector<DlrunCudaOwned> slices_;      // of the arenas that this rank updates
  std::vector<NormSlice> parts_, commons_;  // of parameters that a tensor group divides, and of the others
  cudaStream_t copies_ = nullptr, sums_ = nullptr;
  cudaEvent_t staged_ = nullptr, taken_ = nullptr, final_ = nullptr, summed_ = nullptr;
  cudaEvent_t begun_ = nullptr, backward_done_ = nullptr, all_summed_ = nullptr;  // of a step that sums
  DlrunCudaPeers peers_{};
  Program programs_[3];        // by DlrunCudaWork
  float* kept_ = nullptr;      // gradients of batches before the last, where the plan accumulates
  UpdateFunction update_;      // of the plan's optimizer
  bool stale_ = true;          // the bf16 copies are older than the values
  bool summing_ = false;       // sums_ has work of this step
  bool timed_ = false;         // the step under way has marked its times
  bool awaits_peers_ = false;  // other ranks were asked for something behind the last wait
};

// The first time plainly, so that libraries load what they need; from the second on as a graph.
template <class Issue>
void Engine::run(Program& program, const Issue& issue) {
  if (program.warm && program.graph == nullptr) program.graph = captured(device_.stream, issue);
  if (program.warm)
    check(cudaGraphLaunch(program.graph, device_.stream), "a step");
  else
    issue();
  program.warm = true;
}

}  // namespace dlrun::cuda
