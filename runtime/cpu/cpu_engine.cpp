// The order of a training step, and the one place where oneDNN's exceptions become Errors. After compile()
// nothing can fail but the machine: oneDNN allocates nothing more.
#include "runtime/cpu/cpu_engine.hpp"

#include <cstring>
#include <ctime>
#include <new>
#include <utility>

#include "runtime/cpu/operators/loss.hpp"
#include "runtime/cpu/parallel.hpp"
#include "runtime/cpu/plan.hpp"
#include "runtime/cpu/vectors.hpp"
#include "runtime/graph/fuse.hpp"
#include "runtime/graph/roles.hpp"

namespace dlrun::runtime {

namespace {

class CompiledEngine final : public CpuEngine,
                             private GanEngine,
                             private ShardedEngine,
                             private ServedEngine,
                             private StagedEngine {
 public:
  CompiledEngine(Graph graph, const EngineOptions& options)
      : plan_(as_images(fuse(std::move(graph))), options), stream_(plan_.engine()) {}

  Result<void> prepare();

  std::int64_t batch() const override { return plan_.batch(); }
  std::span<float> input() override {
    return {plan_.rows()->floats(), reads_tokens() ? 0 : numbers_of_input()};
  }
  std::span<std::int32_t> tokens() override {
    return {reinterpret_cast<std::int32_t*>(plan_.rows()->data), reads_tokens() ? numbers_of_input() : 0};
  }
  std::span<std::int32_t> labels() override {
    return {reinterpret_cast<std::int32_t*>(plan_.labels()->data),
            static_cast<std::size_t>(plan_.batch() * plan_.labels_per_row())};
  }
  std::span<float> targets() override { return plan_.target_numbers(); }
  MixedLabels mixed_labels() override {
    Buffer* const both = plan_.mixed_labels();
    if (both == nullptr) return {};
    const auto rows = static_cast<std::size_t>(plan_.batch());
    return {{reinterpret_cast<std::int32_t*>(both->data), rows}, {both->floats() + rows, rows}};
  }
  BatchResult train_batch(std::uint64_t step, const std::function<void(std::size_t)>& on_bucket) override;
  Result<void> set_shard(int shard) override {
    shard_ = shard;
    return {};
  }
  void set_trace(Trace& trace) override { trace_ = &trace; }
  Result<void> status() const override { return plan_.group_calls().status(); }
  void apply(const UpdateStep& step) override {
    timed("update", [&] { plan_.parameters().apply(step, stream_); });
  }
  void swap_averages() override { plan_.parameters().swap_averages(); }
  BatchResult evaluate_batch() override;
  std::span<const float> scores() override {
    return loss_ == nullptr ? std::span<const float>() : loss_->scores();
  }
  std::span<float> gradients() override { return plan_.parameters().gradients(); }
  std::span<const Bucket> buckets() const override { return layout().buckets(); }
  std::span<float> spare_slots() override { return plan_.parameters().spare_slots(); }
  std::vector<GradientSlice> gradient_slices() const override { return layout().gradient_slices(); }
  const std::vector<TensorInfo>& tensors() const override { return layout().tensors(); }
  Result<void> read_tensor(std::size_t index, std::span<float> out) const override {
    return plan_.parameters().read(index, out, plan_.engine());
  }
  Result<void> write_tensor(std::size_t index, std::span<const float> values) override {
    return plan_.parameters().write(index, values, plan_.engine());
  }
  std::uint64_t plan_hash() const override {
    return runtime::plan_hash(plan_.graph(), plan_.options(), layout());
  }
  std::size_t memory_bytes() const override { return plan_.memory_bytes(); }
  GanEngine* gan() override { return generator_ ? this : nullptr; }
  LanguageEngine* language() override { return loss_ == nullptr ? nullptr : loss_->language(); }
  StagedEngine* staged() override { return plan_.graph().stage ? this : nullptr; }
  std::vector<OperatorTime> profile_step(std::uint64_t step) override;
  ShardedEngine* sharded() override { return plan_.options().state_part ? this : nullptr; }
  ServedEngine* served() override { return plan_.options().state_part ? nullptr : this; }

 private:
  const std::vector<std::vector<std::size_t>>& borders() const override { return layout().borders(); }
  std::vector<double> measure(const UpdateStep& step) override { return plan_.parameters().measure(step); }
  void update(const UpdateStep& step, std::size_t bucket, std::span<const double> sums) override {
    timed("update", [&] { plan_.parameters().update(step, bucket, sums); });
  }
  std::span<float> values() override { return plan_.parameters().values(); }
  void values_changed() override { plan_.parameters().values_changed(); }
  bool keeps_averages() const override { return plan_.options().average.has_value(); }
  std::size_t state_bytes() const override { return plan_.parameters().state_bytes(); }
  Result<std::span<float>> weights() override { return plan_.parameters().values(); }
  Result<void> weights_changed() override {
    plan_.parameters().values_changed();
    return {};
  }
  Result<void> read_state(std::size_t slot, std::size_t offset, std::span<float> out) const override {
    const std::span<const float> from = plan_.parameters().state(slot).subspan(offset, out.size());
    std::copy(from.begin(), from.end(), out.begin());
    return {};
  }
  Result<void> write_state(std::size_t slot, std::size_t offset, std::span<const float> values) override {
    std::copy(values.begin(), values.end(), plan_.parameters().state(slot).subspan(offset).begin());
    return {};
  }
  bool reads_tokens() const { return plan_.input_kind() == SampleKind::tokens; }
  std::size_t numbers_of_input() const {
    return static_cast<std::size_t>(plan_.batch() * plan_.shape_of_rows().elements());
  }
  void forward(std::uint64_t step, std::optional<std::size_t> place) override;
  BatchResult backward(std::uint64_t step, std::optional<std::size_t> place,
                       const std::function<void(std::size_t)>& on_bucket) override;
  const std::vector<std::string>& tied() const override { return plan_.graph().stage->tied; }
  void forward_pass(const Run& run);
  BatchResult backward_pass(const Run& run, const std::function<void(std::size_t)>& on_bucket);
  const StateLayout& layout() const { return plan_.parameters().layout(); }
  Run training_run(std::uint64_t step) const {
    return {stream_, Mode::train, step, shard_.value_or(plan_.options().rank),
            shard_.value_or(0) == 0 ? RunningStatistics::follow : RunningStatistics::stay};
  }
  std::string name_of(std::size_t node) const {
    const Node& of = plan_.graph().nodes[node];
    return of.name.empty() ? std::string(operation_name(of.operation)) : of.name;
  }
  // One operator, or what is none, in the trace.
  template <class Work>
  void timed(const char* phase, const Work& work, std::optional<std::size_t> node = {}) {
    Trace::timed(trace_, Trace::Track::training, phase, work,
                 [&] { return node ? fmt::format("{} {}", name_of(*node), phase) : std::string(phase); });
  }
  void finalize_gradient(std::size_t node);
  void restore_inputs(std::size_t node, const Run& run);
  Result<void> generate(std::span<float> images) override;

  Plan plan_;
  dnnl::stream stream_;
  std::vector<OperatorPtr> operators_;
  BatchResult result() const;

  Loss* loss_ = nullptr;
  std::vector<const Loss*> reported_;
  std::optional<Generator> generator_;  // of a GAN
  Trace* trace_ = nullptr;
  std::optional<int> shard_;                  // of the next batch, where there are shards
  std::vector<std::vector<std::byte>> kept_;  // of a stage: what backward reads, of several batches
};

Result<void> CompiledEngine::prepare() {
  operators_ = plan_.make_operators();
  for (std::size_t index = 0; index < operators_.size(); ++index)
    if (!operators_[index])
      return fail(ErrorKind::internal, "model '{}': operator {} ({}) is not implemented on CPUs",
                  plan_.graph().model, index, operation_name(plan_.graph().nodes[index].operation));
  loss_ = dynamic_cast<Loss*>(operators_.back().get());
  if (loss_ == nullptr && !plan_.graph().stage)
    return fail(ErrorKind::internal, "model '{}' does not end in a loss", plan_.graph().model);
  if (loss_ != nullptr)
    for (const std::size_t node : reported_losses(plan_.graph()))
      reported_.push_back(dynamic_cast<const Loss*>(operators_[node].get()));
  generator_ = generator_of(plan_.graph());
  TRY(plan_.lay_out());
  return plan_.parameters().initialise(plan_.options().seed, plan_.engine());
}

BatchResult CompiledEngine::result() const {
  BatchResult sum;
  for (const Loss* loss : reported_) {
    sum.loss_sum += loss->result().loss_sum;
    sum.correct += loss->result().correct;
    sum.generator_loss_sum += loss->result().generator_loss_sum;
    sum.target_sums.add(loss->result().target_sums);
  }
  return sum;
}

Result<void> CompiledEngine::generate(std::span<float> images) {
  const Shape& shape = plan_.graph().nodes[generator_->last].shape;
  TRY(check_size_of_images(images.size(), plan_.batch() * shape.elements()));
  const Run run{stream_, Mode::evaluate, 0, plan_.options().rank};
  plan_.parameters().refresh(stream_);
  for (std::size_t node = generator_->first; node <= generator_->last; ++node) operators_[node]->forward(run);
  const Tensor& made = plan_.tensor(generator_->last);
  dnnl::memory from(made.desc, plan_.engine(), made.value->data);
  dnnl::memory to(activation_desc(plan_.batch(), shape, DataType::f32, {Tag::nchw, 1}), plan_.engine(),
                  images.data());
  dnnl::reorder(from, to).execute(stream_, from, to);
  stream_.wait();
  return {};
}

// Sums the gradients that the readers of a value left, and applies the activation that the producer fused:
// the part [begin, end) of it.
void finalize_part(const Tensor& tensor, std::size_t begin, std::size_t end) {
  const std::size_t readers = tensor.gradients.size(), count = end - begin;
  const kernels::View sum = tensor.gradient().from(begin);
  const kernels::ConstView so_far = tensor.const_gradient().from(begin);
  const kernels::ConstView value = tensor.const_view().from(begin);
  for (std::size_t reader = 1; reader < readers; ++reader) {
    const kernels::ConstView more = tensor.const_gradient(reader).from(begin);
    if (reader + 1 == readers && !tensor.masked_by_producer && tensor.activation == Activation::relu)
      kernels::add_relu_backward(sum, so_far, more, value, count);
    else
      kernels::add(sum, so_far, more, count);
  }
  if (tensor.masked_by_producer) return;
  if (tensor.activation == Activation::leaky_relu)
    return kernels::leaky_relu_backward(sum, value, count, tensor.slope);
  if (tensor.activation == Activation::tanh) return kernels::tanh_backward(sum, value, count);
  if (readers == 1) kernels::relu_backward(sum, value, count);
}

void CompiledEngine::finalize_gradient(std::size_t node) {
  const Tensor& tensor = plan_.tensor(node);
  const bool clean = tensor.gradients.size() == 1 && tensor.masked_by_producer;
  if (!tensor.needs_gradient() || clean) return;
  parallel_for(tensor.elements, kernels::kGrain,
               [&](std::size_t begin, std::size_t end) { finalize_part(tensor, begin, end); });
}

void CompiledEngine::forward_pass(const Run& run) {
  timed("refresh", [&] { plan_.parameters().refresh(stream_); });
  for (std::size_t node = 0; node < operators_.size(); ++node)
    timed(
        "forward", [&] { operators_[node]->forward(run); }, node);
}

void CompiledEngine::restore_inputs(std::size_t node, const Run& run) {
  for (const Value input : plan_.graph().nodes[node].inputs)
    if (plan_.is_restored_for(node, input))
      timed(
          "restore", [&] { operators_[input.get()]->restore(run); }, input.get());
}

BatchResult CompiledEngine::backward_pass(const Run& run, const std::function<void(std::size_t)>& on_bucket) {
  for (std::size_t node = operators_.size(); node-- > 0;) {
    restore_inputs(node, run);
    timed(
        "finalize", [&] { finalize_gradient(node); }, node);
    timed(
        "weights",
        [&] {
          operators_[node]->backward_weights(run);
          plan_.parameters().accumulate_shared_gradients(node, stream_);
          plan_.parameters().clear_frozen_gradients(node);
        },
        node);
    const auto [first, last] = layout().final_after(node);
    for (std::size_t bucket = first; bucket < last; ++bucket)
      if (on_bucket) on_bucket(bucket);
    timed(
        "data", [&] { operators_[node]->backward_data(run); }, node);
  }
  return result();
}

BatchResult CompiledEngine::train_batch(std::uint64_t step,
                                        const std::function<void(std::size_t)>& on_bucket) {
  const Run run = training_run(step);
  forward_pass(run);
  return backward_pass(run, on_bucket);
}

void CompiledEngine::forward(std::uint64_t step, std::optional<std::size_t> place) {
  forward_pass(training_run(step));
  if (!place) return;
  if (kept_.size() <= *place) kept_.resize(*place + 1);
  std::vector<std::byte>& kept = kept_[*place];
  kept.clear();
  for (const std::span<std::byte> range : plan_.needed_by_backward())
    kept.insert(kept.end(), range.begin(), range.end());
}

BatchResult CompiledEngine::backward(std::uint64_t step, std::optional<std::size_t> place,
                                     const std::function<void(std::size_t)>& on_bucket) {
  if (place) {
    const std::byte* from = kept_[*place].data();
    for (const std::span<std::byte> range : plan_.needed_by_backward()) {
      std::memcpy(range.data(), from, range.size());
      from += range.size();
    }
  }
  return backward_pass(training_run(step), on_bucket);
}

BatchResult CompiledEngine::evaluate_batch() {
  const Run run{stream_, Mode::evaluate, 0, plan_.options().rank};
  plan_.parameters().refresh(stream_);
  for (const OperatorPtr& made : operators_) made->forward(run);
  return result();
}

// Processor time of the process, so that other programs on the machine do not count.
class Stopwatch {
 public:
  double lap() {
    const double now = read();
    return now - std::exchange(last_, now);
  }

 private:
  static double read() {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }
  double last_ = read();
};

std::vector<OperatorTime> CompiledEngine::profile_step(std::uint64_t step) {
  const Run run = training_run(step);
  std::vector<OperatorTime> times;
  Stopwatch watch;
  const auto note = [&](std::size_t node, const char* phase, bool computes) {
    times.push_back({name_of(node), phase, watch.lap(), computes ? operators_[node]->operations() : 0,
                     operators_[node]->description()});
  };
  for (std::size_t node = 0; node < operators_.size(); ++node) {
    operators_[node]->forward(run);
    note(node, "forward", true);
  }
  for (std::size_t node = operators_.size(); node-- > 0;) {
    restore_inputs(node, run);
    finalize_gradient(node);
    note(node, "finalize", false);
    operators_[node]->backward_weights(run);
    plan_.parameters().accumulate_shared_gradients(node, stream_);
    note(node, "weights", true);
    operators_[node]->backward_data(run);
    note(node, "data", true);
  }
  plan_.parameters().apply({.learning_rate = 0}, stream_);
  times.push_back({"update", "update", watch.lap(), 0, ""});
  return times;
}

}  // namespace

namespace {

// Newer instruction sets have the bits of the older ones that they contain.
bool has(dnnl::cpu_isa instructions) {
  const auto all = static_cast<int>(dnnl::get_effective_cpu_isa()), asked = static_cast<int>(instructions);
  return (all & asked) == asked;
}

}  // namespace

bool is_native(Precision precision) {
  return precision != Precision::bf16 || has(dnnl::cpu_isa::avx512_core_bf16);
}

bool can_compute(Precision precision) {
  return precision != Precision::bf16 || has(dnnl::cpu_isa::avx512_core);
}

Result<std::unique_ptr<CpuEngine>> compile(Graph graph, const EngineOptions& options) {
  if (!can_compute(options.precision))
    return fail(Error{.kind = ErrorKind::input,
                      .what = "this processor cannot compute in bf16: oneDNN needs AVX-512 for it",
                      .hint = "try precision f32"});
  if (options.batch < 1 || options.batch > (1 << 20))
    return fail(Error{.kind = ErrorKind::input,
                      .what = fmt::format("a batch of {} images cannot be", options.batch),
                      .hint = "choose a batch between 1 and 1048576"});
  if (options.precision == Precision::tf32)
    return fail(Error{.kind = ErrorKind::input,
                      .what = "precision tf32 is a GPU's, and this engine is the CPU's",
                      .hint = "write precision: f32, or device: cuda"});
  const std::string model = graph.model;
  try {
    auto engine = std::make_unique<CompiledEngine>(std::move(graph), options);
    TRY(engine->prepare());
    return engine;
  } catch (const dnnl::error& error) {
    return fail(Error{.kind = ErrorKind::unavailable,
                      .what = fmt::format("oneDNN cannot run model '{}' here: {}", model, error.what()),
                      .hint = "try precision f32"});
  } catch (const std::bad_alloc&) {
    return fail(Error{.kind = ErrorKind::unavailable,
                      .what = fmt::format("no memory left for model '{}'", model),
                      .hint = "use a smaller batch, or fewer ranks on this node"});
  }
}

}  // namespace dlrun::runtime
