// Stages of pipelines on one GPU, as threads: losses and all of the state against the whole model, which adds
// up as many batches. Where algorithms are chosen by the shape, and the host adds gradients up, to the bit;
// where the device adds them, as near as sums in another order are. A mask, figure or maximum that a stage
// took from another batch than it should is far off.
#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "compare.hpp"
#include "local_pipeline.hpp"
#include "runtime/cuda/device_calls.hpp"
#include "runtime/graph/stages.hpp"
#include "runtime/graph/target_measure.hpp"
#include "runtime/train/pipeline_links.hpp"
#include "runtime/train/pipeline_schedule.hpp"

namespace dlrun::runtime::gpu {
namespace {

constexpr std::uint64_t kUpdatesInStages = 4;

// What makes sums of other orders: the first and the last stage have the same weights, or a cut is where the
// whole model fuses a convolution and the pooling behind it.
enum class Rounding { none, of_shared_weights, of_cut };

struct Staged {
  const char* name;
  InputShape input;
  Result<Graph> (*build)(const InputShape&);
  Rounding rounding = Rounding::none;
};

Value norm(GraphBuilder& g, const std::string& name, Value x) {
  return g.batch_norm(name, x);
}

Result<Graph> convolutions(const InputShape& in) {
  GraphBuilder g("convolutions", in);
  Value x = g.convolution("c1", g.input(),
                          {.filters = 16, .kernel = 7, .stride = 2, .padding = 3, .bias = Bias::none});
  x = g.max_pool(g.relu(norm(g, "bn1", x)), {.window = 3, .stride = 2, .padding = 1});
  x = g.local_response_norm(g.relu(g.convolution("c2", x, {.filters = 24, .kernel = 3, .padding = 1})), {});
  x = g.dropout(
      g.relu(norm(g, "bn2",
                  g.convolution("c3", x, {.filters = 16, .kernel = 3, .padding = 1, .bias = Bias::none}))),
      0.3F);
  x = g.max_pool(g.leaky_relu(g.convolution("c4", x, {.filters = 32, .kernel = 3, .padding = 1}), 0.2F), {});
  x = g.dropout(g.relu(g.fully_connected("f1", x, 40)), 0.5F);
  g.softmax_cross_entropy(g.fully_connected("last", g.tanh(g.fully_connected("f2", x, 24)), in.classes));
  return std::move(g).finish();
}

Value residual(GraphBuilder& g, const std::string& name, Value x, std::int64_t filters) {
  const op::Convolution same{.filters = filters, .kernel = 3, .padding = 1, .bias = Bias::none};
  const Value inner = g.relu(norm(g, name + ".bn1", g.convolution(name + ".c1", x, same)));
  const Value left = norm(g, name + ".bn2", g.convolution(name + ".c2", inner, same));
  const bool widens = g.shape(x).channels != filters;
  const Value right =
      widens ? norm(g, name + ".bn3",
                    g.convolution(name + ".c3", x, {.filters = filters, .kernel = 1, .bias = Bias::none}))
             : x;
  return g.relu(g.add(left, right));
}

Result<Graph> residuals(const InputShape& in) {
  GraphBuilder g("residuals", in);
  Value x = g.relu(
      norm(g, "bn",
           g.convolution("c", g.input(), {.filters = 16, .kernel = 3, .padding = 1, .bias = Bias::none})));
  x = residual(g, "b1", x, 16);
  x = residual(g, "b2", x, 32);
  x = residual(g, "b3", x, 32);
  x = g.average_pool(x, {});
  x = g.concat({g.convolution("left", x, {.filters = 8, .kernel = 1}),
                g.convolution("right", x, {.filters = 24, .kernel = 3, .padding = 1})});
  g.softmax_cross_entropy(g.fully_connected("last", g.global_average_pool(x), in.classes));
  return std::move(g).finish();
}

struct Block {
  op::Attention attention;
  std::int64_t packed;
  float dropout;
};

Value block(GraphBuilder& g, const std::string& name, Value x, const Block& of) {
  const std::int64_t features = g.shape(x).features();
  const Value qkv = g.linear(name + ".qkv", g.layer_norm(name + ".n1", x), {.outputs = of.packed});
  x = g.add(x, g.dropout(g.linear(name + ".out", g.attention(qkv, of.attention), {.outputs = features}),
                         of.dropout));
  const Value up = g.linear(name + ".up", g.layer_norm(name + ".n2", x), {.outputs = 4 * features});
  return g.add(
      x, g.linear(name + ".down", g.apply(op::Gelu{op::Gelu::Form::tanh}, {up}), {.outputs = features}));
}

Result<Graph> gpt(const InputShape& in, Weights head) {
  GraphBuilder g("gpt", in);
  Value x =
      g.dropout(g.embedding("tokens", g.input(), {.features = 64, .positions = 80, .init_std = 0.3F}), 0.1F);
  for (const char* const name : {"h0", "h1", "h2"})
    x = block(g, name, x, {{.heads = 4, .dropout = *name == 'h' && name[1] == '1' ? 0.2F : 0.0F}, 192, 0.1F});
  x = g.layer_norm("norm", x);
  g.vocabulary_loss(head == Weights::shared ? "tokens" : "scores", x, {.init_std = 0.3F}, head);
  return std::move(g).finish();
}

Result<Graph> llama(const InputShape& in) {
  GraphBuilder g("llama", in);
  Value x = g.embedding("tokens", g.input(), {.features = 64, .init_std = 0.3F});
  for (const std::string name : {"h0", "h1", "h2"}) {
    const Value qkv =
        g.linear(name + ".qkv", g.rms_norm(name + ".n1", x), {.outputs = 128, .bias = Bias::none});
    x = g.add(x, g.linear(name + ".out", g.attention(qkv, {.heads = 4, .key_heads = 2, .rotary_base = 500}),
                          {.outputs = 64, .bias = Bias::none}));
    const Value seen = g.rms_norm(name + ".n2", x);
    const Value gate = g.linear(name + ".gate", seen, {.outputs = 96, .bias = Bias::none});
    const Value up = g.linear(name + ".up", seen, {.outputs = 96, .bias = Bias::none});
    x = g.add(x, g.linear(name + ".down", g.swiglu(gate, up), {.outputs = 64, .bias = Bias::none}));
  }
  g.use_weights(Weights::own);
  g.vocabulary_loss("scores", g.rms_norm("norm", x), {.init_std = 0.3F}, Weights::own);
  return std::move(g).finish();
}

Result<Graph> volumes(const InputShape& in) {
  GraphBuilder g("volumes", in);
  Value x = g.max_pool(
      g.leaky_relu(g.convolution("c1", g.input(), {.filters = 8, .kernel = 3, .padding = 1}), 0.3F), {});
  x = g.max_pool(g.leaky_relu(g.convolution("c2", x, {.filters = 16, .kernel = 3, .padding = 1}), 0.3F), {});
  x = g.dropout(g.leaky_relu(g.fully_connected("f1", x, 32), 0.3F), 0.4F);
  g.softmax_cross_entropy(g.fully_connected("last", x, in.classes));
  Graph out = TRY(std::move(g).finish());
  set_measure(out, TargetMeasure::of_text("mean-squared-error").value());
  return out;
}

constexpr InputShape kImages{3, 32, 32, 7};
constexpr InputShape kVolumes{
    .channels = 3, .height = 16, .width = 16, .classes = 4, .depth = 16, .targets = 4};

const std::vector<Staged>& cases() {
  static const std::vector<Staged> all = {
      {"convolutions", kImages, convolutions},
      {"residuals", kImages, residuals},
      {"gpt", token_sequences(48, 101), [](const InputShape& in) { return gpt(in, Weights::own); }},
      {"gpt that shares weights", token_sequences(48, 101),
       [](const InputShape& in) { return gpt(in, Weights::shared); }, Rounding::of_shared_weights},
      {"llama", token_sequences(40, 101), llama},
      {"volumes", kVolumes, volumes, Rounding::of_cut}};
  return all;
}

// on_host: of gradients that go there, whose bits are then the whole model's.
enum class Adding { on_host, on_device };

struct Form {
  int stages = 1, batches = 3;
  Precision precision = Precision::f32;
  Adding adding = Adding::on_host;
  float clip = 0;
};

struct Trained {
  std::vector<double> losses;  // of updates, then of an evaluation
  std::map<std::string, std::vector<float>> tensors;
  std::size_t memory = 0;  // bytes of the largest stage
};

EngineOptions options_of(const Form& form, const StageRank& rank, PipelineLinks& links) {
  EngineOptions out{.batch = 6, .precision = form.precision, .seed = 3, .bucket_bytes = 20000};
  out.optimizer = momentum_sgd(0.9F);
  out.accumulate = form.batches;
  out.stage_links = &links;
  out.places = places_of(rank, form.batches);
  if (form.adding == Adding::on_device) return out;
  out.algorithms = AlgorithmsBy::shape;
  out.ranks = 2;
  return out;
}

// One stage, or the whole model.
class Stage {
 public:
  Stage(const Staged& of, const Form& form, const StageRank& rank) : of_(of), form_(form), rank_(rank) {}
  Result<void> compile(const CudaLibrary& library) {
    Graph graph = TRY(of_.build(of_.input));
    if (!rank_.alone()) graph = TRY(cut_graph(graph, rank_));
    engine_ = TRY(compile_cuda(library, std::move(graph), options_of(form_, rank_, links_), 0));
    return {};
  }
  Result<void> train(const CudaLibrary& library, LocalMail& mail) {
    if (library.table().use(0) != 0) return fail(library.error("no GPU"));
    if (!rank_.alone()) TRY(engine_->join(std::make_unique<LocalPipeline>(mail, rank_.stage, rank_.stages)));
    for (std::uint64_t update = 0; update < kUpdatesInStages; ++update) TRY(take(update));
    fill(*engine_, 999, of_.input.classes);
    losses_.push_back(engine_->evaluate_batch().loss_sum);
    return engine_->status();
  }
  Result<void> collect(Trained& out) const {
    if (rank_.is_last()) out.losses = losses_;
    out.memory = std::max(out.memory, engine_->memory_bytes());
    for (std::size_t i = 0; i < engine_->tensors().size(); ++i) {
      const TensorInfo& info = engine_->tensors()[i];
      std::vector<float> values(info.elements());
      TRY(engine_->read_tensor(i, values));
      const auto [at, is_new] = out.tensors.emplace(info.name, values);
      expect(is_new || at->second == values, "the same bits of " + info.name + " on both stages");
    }
    return {};
  }

 private:
  Result<void> take(std::uint64_t update) {
    losses_.push_back(0);
    sum_.clear();
    links_.begin_update(rank_.is_first() ? 0 : form_.batches);
    if (rank_.alone()) {
      for (int batch = 0; batch < form_.batches; ++batch) {
        put(update, batch);
        TRY(add(batch, [&] { return engine_->train_batch(draw(update, batch), {}); }));
      }
    } else {
      for (const PipelineStep& step : one_forward_one_backward(rank_, form_.batches)) TRY(take(update, step));
    }
    if (!sum_.empty()) std::copy(sum_.begin(), sum_.end(), engine_->gradients().begin());
    engine_->apply({.learning_rate = 0.05F,
                    .gradient_scale = 1.0F / static_cast<float>(form_.batches),
                    .updates = update,
                    .clip_norm = form_.clip});
    return engine_->status();
  }
  Result<void> take(std::uint64_t update, const PipelineStep& step) {
    if (step.pass == PipelineStep::Pass::backward)
      return add(step.micro_batch,
                 [&] { return engine_->staged()->backward(draw(update, step.micro_batch), step.place, {}); });
    put(update, step.micro_batch);
    engine_->staged()->forward(draw(update, step.micro_batch), step.place);
    return engine_->status();
  }
  void put(std::uint64_t update, int batch) { fill(*engine_, 7 + draw(update, batch), of_.input.classes); }
  std::uint64_t draw(std::uint64_t update, int batch) const {
    return update * static_cast<std::uint64_t>(form_.batches) + static_cast<std::uint64_t>(batch);
  }

  template <class Work>
  Result<void> add(int batch, const Work& work) {
    const bool is_last = batch + 1 == form_.batches;
    if (DeviceAccumulating* const device = engine_->accumulating())
      device->set_batch(is_last ? DeviceAccumulating::Batch::last : DeviceAccumulating::Batch::earlier);
    losses_.back() += work().loss_sum;
    TRY(engine_->status());
    if (form_.adding == Adding::on_device) return {};
    const std::span<const float> own = engine_->gradients();
    sum_.resize(own.size());
    for (std::size_t i = 0; i < own.size(); ++i) sum_[i] += own[i];
    return {};
  }

  const Staged& of_;
  Form form_;
  StageRank rank_;
  PipelineLinks links_;
  std::unique_ptr<CudaEngine> engine_;
  std::vector<float> sum_;
  std::vector<double> losses_;
};

Result<Trained> train(const CudaLibrary& library, const Staged& of, const Form& form) {
  std::deque<Stage> stages;
  for (int stage = 0; stage < form.stages; ++stage)
    TRY(stages.emplace_back(of, form, StageRank{stage, form.stages}).compile(library));
  LocalMail mail(make_cuda_device_calls(library));
  std::vector<Result<void>> ended(stages.size());
  std::vector<std::thread> threads;
  for (std::size_t stage = 0; stage < stages.size(); ++stage)
    threads.emplace_back([&, stage] {
      ended[stage] = stages[stage].train(library, mail);
      if (!ended[stage]) mail.end();
    });
  for (std::thread& thread : threads) thread.join();
  for (const Result<void>& one : ended) TRY(one);
  Trained out;
  for (const Stage& stage : stages) TRY(stage.collect(out));
  stages.clear();  // before the mail that they hold on to
  return out;
}

// The largest distance of a tensor, and how many numbers are other bits.
struct Apart {
  double worst = 0;
  std::size_t numbers = 0;
};
Apart compare(const Trained& whole, const Trained& staged, const std::string& where) {
  Apart out;
  expect(whole.tensors.size() == staged.tensors.size(), where + ": as many tensors");
  for (const auto& [name, values] : whole.tensors) {
    const auto found = staged.tensors.find(name);
    if (found == staged.tensors.end() || found->second.size() != values.size()) {
      expect(false, where + ": a tensor " + name);
      continue;
    }
    out.worst = std::max(out.worst, distance(values, found->second, 1e-6));
    for (std::size_t i = 0; i < values.size(); ++i)
      out.numbers += std::memcmp(&values[i], &found->second[i], sizeof(float)) == 0 ? 0 : 1;
  }
  for (std::size_t i = 0; i < whole.losses.size(); ++i) {
    const double off =
        std::abs(whole.losses[i] - staged.losses[i]) / std::max(1e-3, std::abs(whole.losses[i]));
    out.worst = std::max(out.worst, off);
    out.numbers += whole.losses[i] == staged.losses[i] ? 0 : 1;
  }
  return out;
}

Result<void> compare_form(const CudaLibrary& library, const Staged& of, Form form, double allowed) {
  const std::string where = fmt::format("{} {} in {} stages of {} batches{}", name_of(form.precision),
                                        of.name, form.stages, form.batches, form.clip > 0 ? ", clipped" : "");
  const Trained staged = TRY(train(library, of, form));
  form.stages = 1;
  const Trained whole = TRY(train(library, of, form));
  const Apart apart = compare(whole, staged, where);
  fmt::print("{}: {:.1e} apart, {} other numbers, {} of {} KiB; losses {:.4f}\n", where, apart.worst,
             apart.numbers, staged.memory >> 10, whole.memory >> 10, fmt::join(whole.losses, " "));
  if (allowed == 0)
    expect(apart.numbers == 0, where + ": the bits of the whole model");
  else
    expect(apart.worst <= allowed, fmt::format("{}: at most {:.0e} apart", where, allowed));
  return {};
}

}  // namespace

Result<void> compare_stages(const CudaLibrary& library, Precision precision) {
  // Algorithms chosen by time may be others, and a ReLU near zero may fall to the other side.
  const double near = precision == Precision::f32 ? 0.02 : 0.1;
  const auto check = [&](const Staged& of, const Form& form, double allowed) {
    if (const auto done = compare_form(library, of, form, allowed); !done)
      expect(false, fmt::format("{} in {} stages: {}", of.name, form.stages, done.error().text()));
  };
  for (const Staged& of : cases()) {
    // Gradients of shared weights are added once per update, on the device.
    if (of.rounding != Rounding::of_shared_weights)
      for (const auto& [stages, batches] : {std::pair(2, 3), std::pair(3, 5)})
        check(of, {.stages = stages, .batches = batches, .precision = precision},
              of.rounding == Rounding::none ? 0 : 1e-5);
    for (const float clip : {0.0F, 0.5F})
      check(of,
            {.stages = 3, .batches = 4, .precision = precision, .adding = Adding::on_device, .clip = clip},
            near);
  }
  return {};
}

}  // namespace dlrun::runtime::gpu
