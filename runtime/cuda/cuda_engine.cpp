// The host's side of an engine on a GPU: names, plain layouts and first values; the work is the plug-in's. An
// error of the device in a step, or of a peer, is kept and told by status().
#include "runtime/cuda/cuda_engine.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

#include "runtime/cuda/device_calls.hpp"
#include "runtime/cuda/lowering.hpp"
#include "runtime/cuda/operator_times.hpp"
#include "runtime/cuda/stage_peers.hpp"
#include "runtime/engine/random_keys.hpp"
#include "runtime/graph/fuse.hpp"
#include "runtime/graph/roles.hpp"
#include "runtime/optim/average.hpp"
#include "src/base/clock.hpp"

namespace dlrun::runtime {

namespace {

class GraphOnGpu final : public CudaEngine,
                         private GanEngine,
                         private LanguageEngine,
                         private DeviceReducing,
                         private DeviceAccumulating,
                         private DeviceStatistics,
                         private ServedEngine,
                         private StagedEngine {
 public:
  GraphOnGpu(const CudaLibrary& library, Graph graph, const EngineOptions& options, CudaPlan plan)
      : library_(library),
        graph_(std::move(graph)),
        options_(options),
        plan_(std::move(plan)),
        generator_(generator_of(graph_)) {}
  // The engine goes first: its graphs hold on to who sums.
  ~GraphOnGpu() override {
    if (engine_ != nullptr) library_.table().destroy(engine_);
  }

  Result<void> prepare(int device) {
    const InputScaling* const pixels = takes_bytes() ? &*options_.pixels : nullptr;
    const std::string optimizer(options_.optimizer.traits->name);
    const DlrunCudaPlan plan{
        .nodes = plan_.nodes.data(),
        .count = plan_.nodes.size(),
        .buckets = plan_.buckets.data(),
        .bucket_count = plan_.buckets.size(),
        .parameters = plan_.tensors.data(),
        .parameter_count = plan_.tensors.size(),
        .batch = options_.batch,
        .precision = precision_of(options_.precision),
        .gradients =
            options_.ranks > 1 ? DLRUN_CUDA_GRADIENTS_STAGED_THROUGH_HOST : DLRUN_CUDA_GRADIENTS_ON_DEVICE,
        .optimizer = optimizer.c_str(),
        .state_slots = options_.optimizer.traits->state.size() + (options_.average ? 1 : 0),
        .averages = options_.average ? 1 : 0,
        .floats = layout().floats(),
        .state_floats = layout().state_floats(),
        .owned = plan_.owned.empty() ? nullptr : plan_.owned.data(),
        .spare = kSpareSlots,
        .statistics = layout().statistic_floats(),
        .rng_keys = plan_.random_uses.size(),
        .mixes = options_.labels == Labels::mixed ? 1 : 0,
        .targets = targets_per_row(),
        .places = graph_.stage ? static_cast<std::size_t>(options_.places) : 0,
        .accumulates = options_.accumulate > 1 && !of_shards() ? 1 : 0,
        .of_shards = of_shards() ? 1 : 0,
        .pixel_scale = pixels == nullptr ? nullptr : pixels->scale.data(),
        .pixel_shift = pixels == nullptr ? nullptr : pixels->shift.data()};
    if (library_.table().create(&plan, device, &engine_) != 0)
      return fail(
          library_.error(fmt::format("model '{}' in batches of {} does not come up on GPU {} ({})",
                                     graph_.model, options_.batch, device, library_.device_name(device))));
    return initialise();
  }

  std::int64_t batch() const override { return options_.batch; }
  std::span<float> input() override {
    fresh_ = true;
    if (!reads_rows()) return unread_rows<float>();
    return rows(library_.table().input(engine_), input_count());
  }
  std::span<std::uint8_t> pixels() override {
    if (!takes_bytes()) return {};
    fresh_ = true;
    return rows(library_.table().pixels(engine_), input_count());
  }
  std::span<std::int32_t> labels() override {
    fresh_ = true;
    return rows(library_.table().labels(engine_),
                static_cast<std::size_t>(options_.batch * labels_per_row()));
  }
  std::span<std::int32_t> tokens() override {
    if (!takes_tokens()) return {};
    fresh_ = true;
    if (!reads_rows()) return unread_rows<std::int32_t>();
    return rows(reinterpret_cast<std::int32_t*>(library_.table().input(engine_)), input_count());
  }
  MixedLabels mixed_labels() override {
    if (options_.labels != Labels::mixed) return {};
    const auto count = static_cast<std::size_t>(options_.batch);
    const std::span<std::int32_t> both = rows(library_.table().mixed_labels(engine_), 2 * count);
    return {both.first(count), {reinterpret_cast<float*>(both.data() + count), count}};
  }
  std::span<float> targets() override {
    if (targets_per_row() == 0) return {};
    fresh_ = true;
    return rows(library_.table().targets(engine_),
                static_cast<std::size_t>(options_.batch * targets_per_row()));
  }
  void while_waiting(const std::function<void()>& work) override { work_ = work; }

  BatchResult train_batch(std::uint64_t step, const std::function<void(std::size_t)>& on_bucket) override {
    const DlrunCudaWork work = batch_ == Batch::last ? DLRUN_CUDA_TRAIN : DLRUN_CUDA_ACCUMULATE;
    const BatchResult result = run(work, keys_of(step), "a training step");
    tell_buckets(on_bucket);
    return result;
  }
  void tell_buckets(const std::function<void(std::size_t)>& on_bucket) {
    if (batch_ == Batch::last) kept_ = 0;
    for (std::size_t bucket = 0; on_bucket && !sums_itself() && bucket < plan_.buckets.size(); ++bucket)
      on_bucket(bucket);
  }
  // Its random numbers are those of a rank with that number.
  Result<void> set_shard(int shard) override {
    options_.rank = shard;
    statistics_ = shard == 0 ? DLRUN_CUDA_STATISTICS_UPDATED : DLRUN_CUDA_STATISTICS_UNCHANGED;
    return {};
  }
  void apply(const UpdateStep& step) override {
    const Factors factors = options_.optimizer.factors(step);
    const float kept = kept_average(options_.average.value_or(0), step.updates);
    note(library_.table().apply(engine_, factors.data(), kept, step.gradient_scale, step.clip_norm),
         "an update");
  }
  bool clips_norm() const override { return true; }
  void swap_averages() override { note(library_.table().swap_averages(engine_), "taking averaged weights"); }
  BatchResult evaluate_batch() override {
    return run(DLRUN_CUDA_EVALUATE, keys_of(kShownNoise), "an evaluation");
  }
  GanEngine* gan() override { return generator_ ? this : nullptr; }
  LanguageEngine* language() override {
    return vocabulary() > 0 && !graph_.nodes.back().part ? this : nullptr;
  }
  std::int64_t vocabulary() const override {
    const auto* const loss = std::get_if<op::VocabularyLoss>(&graph_.nodes.back().operation);
    return loss == nullptr ? 0 : loss->vocabulary;
  }
  Result<void> next_scores(std::int64_t position, std::span<float> scores) override {
    if (scores.size() != static_cast<std::size_t>(options_.batch * vocabulary()))
      return fail(ErrorKind::internal, "{} numbers for the scores of a vocabulary of {}", scores.size(),
                  vocabulary());
    if (library_.table().next_scores(engine_, position, scores.data()) != 0)
      return fail(library_.error("cannot compute the scores of the next token"));
    return {};
  }
  StagedEngine* staged() override { return graph_.stage ? this : nullptr; }
  DeviceReducing* reducing() override { return sums_itself() ? this : nullptr; }
  std::optional<std::size_t> state_part_bytes() override {
    if (!options_.state_part) return std::nullopt;
    const std::size_t slots = options_.optimizer.traits->state.size() + (options_.average ? 1 : 0);
    return slots * layout().state_floats() * sizeof(float);
  }
  DeviceAccumulating* accumulating() override {
    return (of_shards() ? sum_ && sum_->keeps() : options_.accumulate > 1) ? this : nullptr;
  }
  void set_batch(Batch batch) override { batch_ = batch; }
  DeviceStatistics* device_statistics() override { return this; }
  std::size_t statistic_floats() const override { return layout().statistic_floats(); }
  Result<void> read_statistics(std::span<float> out) const override {
    if (library_.table().read(engine_, DLRUN_CUDA_STATISTICS, 0, out.size(), out.data()) == 0) return {};
    return fail(failure_or("running statistics cannot be read"));
  }
  Result<void> write_statistics(std::span<const float> values) override {
    if (library_.table().write(engine_, DLRUN_CUDA_STATISTICS, 0, values.size(), values.data()) == 0)
      return {};
    return fail(failure_or("running statistics cannot be written"));
  }
  Result<void> generate(std::span<float> images) override {
    const Shape& shape = graph_.nodes[generator_->last].shape;
    TRY(check_size_of_images(images.size(), options_.batch * shape.elements()));
    const std::vector<std::uint64_t> keys = keys_of(kShownNoise);
    if (library_.table().generate(engine_, generator_->first, generator_->last, keys.data(), images.data()) !=
        0)
      return fail(library_.error("the generator's images cannot be made"));
    return {};
  }

  Result<void> connect(std::unique_ptr<DeviceAllreduce> sum) override {
    sum_ = std::move(sum);
    return connect_peers();
  }
  Result<void> divide_state(std::unique_ptr<DeviceGroup> data) override {
    data_ = std::move(data);
    return connect_peers();
  }
  Result<void> join(std::unique_ptr<DeviceGroup> tensor) override {
    tensor_ = std::move(tensor);
    return connect_peers();
  }
  Result<void> join(std::unique_ptr<DevicePipeline> pipeline) override {
    stage_ = TRY(StagePeers::connect(
        {.pipeline = std::move(pipeline),
         .turns = options_.stage_links->turns(),
         .calls = make_cuda_device_calls(library_),
         .tied = tied_slices(),
         .sum_waiting = [this](float* gradients, void* stream) { return sum_waiting(gradients, stream); },
         .keep = [this](Result<void> done) { return keep(std::move(done)); }}));
    return connect_peers();
  }
  // The graphs go first: what sums waits for them as it ends.
  Result<void> disconnect() override {
    const DlrunCudaPeers nobody{};
    if (library_.table().connect(engine_, &nobody) != 0)
      return fail(library_.error("the ranks' GPUs cannot be disconnected"));
    sum_.reset();
    kept_ = 0;
    if (failure_ && failure_->kind == ErrorKind::lost) failure_.reset();
    return {};
  }
  void set_sums(Sums sums) override {
    const DlrunCudaPeers calls = peers(sums);
    note(library_.table().connect(engine_, &calls), "choosing the sums");
  }
  bool averages_state() const override { return sum_ != nullptr && sum_->is_exact(); }
  Result<void> average_state(int ranks) override {
    const DlrunCudaPeers calls = peers(Sums::together);
    if (library_.table().average_state(engine_, &calls, static_cast<std::size_t>(ranks)) != 0 && !failure_)
      failure_ = library_.error("the ranks' weights cannot be averaged");
    return status();
  }
  Result<double> seconds_of_sums() override {
    return TRY(time_sum(layout().floats() - kSpareSlots)).captured;
  }
  Result<SumTime> time_sum(std::size_t count) override {
    float issued = 0, captured = 0;
    if (library_.table().time_sum(engine_, count, &issued, &captured) != 0)
      return fail(library_.error(fmt::format("a sum of {} floats cannot be timed", count)));
    return SumTime{issued * 1e-3, captured * 1e-3};
  }
  Result<void> status() const override {
    if (failure_) return fail(*failure_);
    return {};
  }

  std::span<float> gradients() override { return {library_.table().gradients(engine_), layout().floats()}; }
  std::span<const Bucket> buckets() const override { return layout().buckets(); }
  // The GPUs of a tensor group make gradients of whole parameters equal themselves.
  std::vector<GradientSlice> gradient_slices() const override {
    return tensor_ ? std::vector<GradientSlice>() : layout().gradient_slices();
  }
  std::span<float> spare_slots() override { return gradients().last(kSpareSlots); }
  const std::vector<TensorInfo>& tensors() const override { return layout().tensors(); }

  Result<void> read_tensor(std::size_t index, std::span<float> out) const override {
    TRY(layout().check_size(index, out.size()));
    std::vector<float> there(out.size());
    if (library_.table().read(engine_, arena_of(index), layout().place(index).offset, there.size(),
                              there.data()) != 0)
      return fail(failure_or(fmt::format("tensor '{}' cannot be read", tensors()[index].name)));
    to_plain(order_of(index), there, out);
    return {};
  }
  Result<void> write_tensor(std::size_t index, std::span<const float> values) override {
    std::vector<float> there;
    return write_through(index, values, there);
  }
  // `there`: memory to be used again, so that no page of it is new each time.
  Result<void> write_through(std::size_t index, std::span<const float> values, std::vector<float>& there) {
    TRY(layout().check_size(index, values.size()));
    there.resize(values.size());
    to_device(order_of(index), values, there);
    if (library_.table().write(engine_, arena_of(index), layout().place(index).offset, there.size(),
                               there.data()) != 0)
      return fail(failure_or(fmt::format("tensor '{}' cannot be written", tensors()[index].name)));
    return {};
  }

  ServedEngine* served() override { return options_.state_part ? nullptr : this; }

  std::uint64_t plan_hash() const override { return runtime::plan_hash(graph_, options_, layout()); }
  Result<std::vector<OperatorTime>> profile() override {
    std::vector<float> times(2 * plan_.nodes.size() + 3);
    if (library_.table().profile(engine_, times.data()) != 0)
      return fail(library_.error("the parts of a step cannot be timed"));
    return operator_times(plan_, graph_, options_, times);
  }
  std::size_t memory_bytes() const override { return library_.table().memory_bytes(engine_); }

 private:
  Result<std::span<float>> weights() override {
    weights_.resize(layout().floats());
    TRY(move_from(DLRUN_CUDA_VALUES, 0, weights_));
    return std::span(weights_);
  }
  Result<void> weights_changed() override { return move_to(DLRUN_CUDA_VALUES, 0, weights_); }
  static DlrunCudaArena state_arena(std::size_t slot) {
    return static_cast<DlrunCudaArena>(DLRUN_CUDA_STATE_0 + slot);
  }
  Result<void> read_state(std::size_t slot, std::size_t offset, std::span<float> out) const override {
    return move_from(state_arena(slot), offset, out);
  }
  Result<void> write_state(std::size_t slot, std::size_t offset, std::span<const float> values) override {
    return move_to(state_arena(slot), offset, values);
  }
  Result<void> move_from(DlrunCudaArena arena, std::size_t offset, std::span<float> out) const {
    if (library_.table().read(engine_, arena, offset, out.size(), out.data()) == 0) return {};
    return fail(failure_or("what a GPU has of the weights or of their state cannot be read"));
  }
  Result<void> move_to(DlrunCudaArena arena, std::size_t offset, std::span<const float> values) const {
    if (library_.table().write(engine_, arena, offset, values.size(), values.data()) == 0) return {};
    return fail(failure_or("a GPU does not take weights or their state"));
  }

  // The values go to the stage behind, or the loss is there, before the batch's backward is asked for.
  void forward(std::uint64_t step, std::optional<std::size_t> place) override {
    compute([&] { return begin_half(DLRUN_CUDA_FORWARD, place, keys_of(step)); }, While::rows_come,
            "a forward pass");
  }
  BatchResult backward(std::uint64_t, std::optional<std::size_t> place,
                       const std::function<void(std::size_t)>& on_bucket) override {
    const DlrunCudaHalf half = batch_ == Batch::last ? DLRUN_CUDA_BACKWARD : DLRUN_CUDA_BACKWARD_KEPT;
    const BatchResult result =
        compute([&] { return begin_half(half, place, {}); }, While::nothing_comes, "a backward pass");
    tell_buckets(on_bucket);
    return result;
  }
  int begin_half(DlrunCudaHalf half, std::optional<std::size_t> place,
                 const std::vector<std::uint64_t>& keys) {
    return library_.table().begin_half(engine_, half, place.value_or(0), keys.data());
  }
  // It adds them itself.
  const std::vector<std::string>& tied() const override {
    static const std::vector<std::string> none;
    return none;
  }
  std::vector<Bucket> tied_slices() const {
    std::vector<Bucket> out;
    for (const std::string& name : graph_.stage->tied)
      for (const GradientSlice& slice : layout().gradient_slices())
        if (slice.name == name) out.push_back({slice.offset, slice.length});
    return out;
  }
  // Where each rank has a part of the state, the first stage's sums come to all of its ranks, as the last
  // stage cuts its buckets elsewhere.
  Result<void> sum_waiting(float* gradients, void* stream) {
    for (std::size_t bucket = 0; bucket < plan_.buckets.size(); ++bucket) {
      const DlrunCudaBucket& of = plan_.buckets[bucket];
      if (of.waits == 0) continue;
      float* const first = gradients + of.offset;
      const std::size_t end = std::min(of.offset + of.length, layout().floats() - kSpareSlots);
      if (sum_) TRY(sum_->sum(first, end - of.offset, stream));
      if (!data_) continue;
      TRY(data_->reduce_scatter(first, layout().borders()[bucket], stream));
      if (reads_rows()) TRY(data_->allgather(first, layout().borders()[bucket], stream));
    }
    return {};
  }

  static DlrunCudaPrecision precision_of(Precision precision) {
    if (precision == Precision::tf32) return DLRUN_CUDA_TF32;
    return precision == Precision::bf16 ? DLRUN_CUDA_BF16 : DLRUN_CUDA_F32;
  }
  bool takes_tokens() const { return kind_of_rows(graph_) == SampleKind::tokens; }
  std::int64_t labels_per_row() const { return takes_tokens() ? shape_of_rows(graph_).positions() : 1; }
  // Else it is a stage whose values come from the one before, and rows are filled in vain.
  bool reads_rows() const { return !std::holds_alternative<op::StageInput>(graph_.nodes[0].operation); }
  template <class T>
  std::span<T> unread_rows() {
    unread_rows_.resize(input_count());
    return {reinterpret_cast<T*>(unread_rows_.data()), input_count()};
  }
  // The numbers that a loss over them reads: all of a model's read as many.
  std::int64_t targets_per_row() const {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      if (std::holds_alternative<op::TargetLoss>(graph_.nodes[i].operation))
        return plan_.nodes[i].in_channels;
    return 0;
  }
  bool takes_bytes() const {
    const std::size_t channels = static_cast<std::size_t>(graph_.nodes[0].shape.channels);
    return options_.pixels && reads_rows() && !takes_tokens() && channels <= DLRUN_CUDA_MAX_CHANNELS &&
           options_.pixels->scale.size() == channels && options_.pixels->shift.size() == channels;
  }
  std::size_t input_count() const {
    return static_cast<std::size_t>(options_.batch * shape_of_rows(graph_).elements());
  }
  // Rows of the plug-in; none to fill once the device has failed.
  template <class T>
  std::span<T> rows(T* start, std::size_t count) {
    if (start != nullptr) return {start, count};
    note(1, "sending a batch");
    lost_rows_.resize(count * sizeof(float));
    return {reinterpret_cast<T*>(lost_rows_.data()), count};
  }

  // What is drawn in this step.
  std::vector<std::uint64_t> keys_of(std::uint64_t step) const {
    std::vector<std::uint64_t> keys;
    std::size_t layer = masks_before(graph_, 0);
    for (const RandomRule& use : plan_.random_uses)
      keys.push_back(use.of == Randomness::samples
                         ? noise_key(options_, step)
                         : dropout_rule(options_, layer++, step, use.probability).key);
    return keys;
  }

  BatchResult run(DlrunCudaWork work, const std::vector<std::uint64_t>& keys, const char* what) {
    return compute([&] { return library_.table().begin(engine_, work, statistics_, keys.data()); },
                   work == DLRUN_CUDA_EVALUATE ? While::nothing_comes : While::rows_come, what);
  }
  // A step or a half of it on the rows as they are; those of the next one are sent while it runs.
  enum class While { rows_come, nothing_comes };
  BatchResult compute(const std::function<int()>& begin, While while_it_runs, const char* what) {
    const DlrunCudaTable& table = library_.table();
    DlrunCudaResult result{};
    if (failure_) return {};
    send_rows(what);
    note(begin(), what);
    if (while_it_runs == While::rows_come && work_ && !failure_) {
      work_();
      send_rows(what);
    }
    if (failure_) return {};
    const Ticks waits = std::chrono::steady_clock::now();
    note(table.end(engine_, &result), what);
    BatchResult out{result.loss_sum,
                    result.correct,
                    result.generator_loss_sum,
                    {result.absolute, result.squared, result.found, result.marked}};
    const double waited = Seconds(std::chrono::steady_clock::now() - waits).count();
    if (result.busy > 0) out.device = DeviceTimes{result.busy * 1e-3, std::min(result.waited * 1e-3, waited)};
    return out;
  }

  void send_rows(const char* what) {
    if (fresh_) note(library_.table().stage(engine_), what);
    fresh_ = false;
  }

  bool of_shards() const { return options_.algorithms == AlgorithmsBy::shape; }
  // Whether gradients are summed over the ranks on the device.
  bool sums_itself() const { return sum_ != nullptr || data_ != nullptr; }

  Result<void> connect_peers() {
    const DlrunCudaPeers calls = peers(Sums::together);
    if (library_.table().connect(engine_, &calls) != 0)
      return fail(library_.error("the ranks' GPUs cannot be connected"));
    return {};
  }
  DlrunCudaPeers peers(Sums sums) {
    DlrunCudaPeers out{};
    out.context = this;
    if (sums == Sums::together && sum_) {
      out.sum = sum_floats;
      if (sum_->keeps()) out.keep = keep_floats;
    }
    if (sums == Sums::together && data_) {
      out.ranks = static_cast<std::size_t>(data_->ranks());
      out.scatter = scatter_bucket, out.gather = gather_values;
      out.exchange = exchange_over_data, out.add = add_over_data;
    }
    if (tensor_) {
      out.tensor_ranks = static_cast<std::size_t>(tensor_->ranks());
      out.tensor_sum = sum_over_tensor, out.tensor_scatter = scatter_over_tensor;
      out.tensor_exchange = exchange_over_tensor;
    }
    if (stage_) out.stage = stage_->calls();
    if (sums_itself() || tensor_ || stage_) out.lost = is_lost;
    return out;
  }

  static GraphOnGpu& of(void* context) { return *static_cast<GraphOnGpu*>(context); }
  static int sum_floats(void* context, float* data, std::size_t count, void* stream) {
    return of(context).keep(of(context).sum_->sum(data, count, stream));
  }
  static int scatter_bucket(void* context, float* gradients, std::size_t bucket, void* stream) {
    GraphOnGpu& self = of(context);
    return self.keep(self.data_->reduce_scatter(gradients + self.layout().buckets()[bucket].offset,
                                                self.layout().borders()[bucket], stream));
  }
  static int gather_values(void* context, float* values, void* stream) {
    GraphOnGpu& self = of(context);
    return self.keep(self.data_->together([&]() -> Result<void> {
      for (std::size_t bucket = 0; bucket < self.layout().buckets().size(); ++bucket)
        TRY(self.data_->allgather(values + self.layout().buckets()[bucket].offset,
                                  self.layout().borders()[bucket], stream));
      return {};
    }));
  }
  static int exchange_over_data(void* context, const void* mine, void* all, std::size_t bytes, void* stream) {
    return of(context).keep(of(context).data_->exchange(mine, all, bytes, stream));
  }
  static int add_over_data(void* context, float* data, std::size_t count, void* stream) {
    return of(context).keep(of(context).data_->sum(data, count, DeviceNumber::f32, stream));
  }
  static DeviceNumber number_of(int half) { return half != 0 ? DeviceNumber::bf16 : DeviceNumber::f32; }
  static int sum_over_tensor(void* context, void* data, std::size_t count, int half, void* stream) {
    return of(context).keep(of(context).tensor_->sum(data, count, number_of(half), stream));
  }
  static int scatter_over_tensor(void* context, const void* data, void* mine, std::size_t count, int half,
                                 void* stream) {
    return of(context).keep(of(context).tensor_->reduce_scatter(data, mine, count, number_of(half), stream));
  }
  static int exchange_over_tensor(void* context, const void* mine, void* all, std::size_t bytes,
                                  void* stream) {
    return of(context).keep(of(context).tensor_->exchange(mine, all, bytes, stream));
  }
  static int keep_floats(void* context, float* data, std::size_t count, void* stream) {
    return of(context).keep(of(context).sum_->keep(of(context).kept_++, data, count, stream));
  }
  // Each of them ends what waits on the device for its own ranks.
  static int is_lost(void* context) {
    GraphOnGpu& self = of(context);
    int lost = 0;
    if (self.sum_) lost += self.keep(self.sum_->check());
    for (const auto* group : {&self.data_, &self.tensor_})
      if (*group) lost += self.keep((*group)->check());
    if (self.stage_) lost += self.keep(self.stage_->check());
    return lost;
  }
  // What is known of a peer says more than what the device says.
  Error failure_or(std::string what) const { return failure_ ? *failure_ : library_.error(std::move(what)); }
  // The first failure is the reason of all that follow.
  int keep(Result<void> done) {
    if (done) return 0;
    if (!failure_) failure_ = std::move(done).error();
    return 1;
  }

  Result<void> initialise() {
    std::vector<float> values, there;
    for (std::size_t index = 0; index < tensors().size(); ++index) {
      if (layout().place(index).arena == TensorPlace::Arena::state) continue;  // zero already
      values.resize(tensors()[index].elements());
      layout().first_values(index, options_.seed, values);
      TRY(write_through(index, values, there));
    }
    return {};
  }

  const StateLayout& layout() const { return plan_.layout; }
  DlrunCudaArena arena_of(std::size_t tensor) const {
    const TensorPlace& place = layout().place(tensor);
    if (place.arena == TensorPlace::Arena::values) return DLRUN_CUDA_VALUES;
    if (place.arena == TensorPlace::Arena::statistics) return DLRUN_CUDA_STATISTICS;
    return static_cast<DlrunCudaArena>(DLRUN_CUDA_STATE_0 + place.slot);
  }
  DeviceOrder order_of(std::size_t tensor) const {
    const TensorPlace& place = layout().place(tensor);
    if (place.arena == TensorPlace::Arena::statistics) return {.channels = tensors()[tensor].elements()};
    DeviceOrder order = plan_.orders[place.owner];
    // Of a part of the state: some filters, or none.
    if (place.arena == TensorPlace::Arena::state && options_.state_part)
      order.filters = tensors()[tensor].elements() / order.floats_of_filter();
    return order;
  }

  void note(int code, const char* what) {
    if (code != 0 && !failure_) failure_ = library_.error(fmt::format("{} failed on the GPU", what));
  }

  CudaLibrary library_;
  Graph graph_;
  EngineOptions options_;
  CudaPlan plan_;
  std::optional<Generator> generator_;
  // These must outlive engine_, which the destructor sees to.
  std::unique_ptr<DeviceAllreduce> sum_;
  std::unique_ptr<DeviceGroup> data_, tensor_;
  std::unique_ptr<StagePeers> stage_;
  void* engine_ = nullptr;
  std::function<void()> work_;
  bool fresh_ = true;  // rows were filled since they were sent
  Batch batch_ = Batch::last;
  std::size_t kept_ = 0;  // batches of the step that what sums has
  DlrunCudaStatistics statistics_ = DLRUN_CUDA_STATISTICS_UPDATED;
  std::vector<std::byte> lost_rows_;
  std::vector<float> unread_rows_;
  std::vector<float> weights_;  // on their way from processes that update them
  std::optional<Error> failure_;
};

}  // namespace

Result<std::unique_ptr<CudaEngine>> compile_cuda(const CudaLibrary& library, Graph graph,
                                                 const EngineOptions& options, int device) {
  Graph fused = fuse(std::move(graph));
  CudaPlan plan = TRY(lower(fused, options));
  auto engine = std::make_unique<GraphOnGpu>(library, std::move(fused), options, std::move(plan));
  TRY(engine->prepare(device));
  return std::unique_ptr<CudaEngine>(std::move(engine));
}

}  // namespace dlrun::runtime
