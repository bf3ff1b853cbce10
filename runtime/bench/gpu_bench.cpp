// dlrun-gpu-bench train MODEL f32|tf32|bf16 BATCH STEPS [sharded|tensor]
// dlrun-gpu-bench sum [f32|bf16|f16]
// One rank per GPU, alone or started by an MPI's launcher or dlrun. train: images (of a language model:
// tokens) per second of whole steps, update included, on the host's clock: "resident", the same batch in
// every step, as benchmarks of frameworks have it, and "fed", another batch sent in every step, images as
// bytes. sharded: each rank has a part of the optimizer's state; tensor: all ranks share one model, and
// BATCH is theirs together. MODEL may be gpt2-xl-20-heads, too: 1.5 billion parameters that can be divided.
// sum: the sum of gradients over the ranks, 64 KiB to 1 GiB, in that dtype, by what DLRUN_ALLREDUCE
// says. Rank 0 prints a line of JSON per measurement.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include <fmt/core.h>

#include "runtime/bench/bench_shape.hpp"
#include "runtime/comm/allreduce/choose_device_allreduce.hpp"
#include "runtime/comm/communicator.hpp"
#include "runtime/comm/nccl/group.hpp"
#include "runtime/cuda/cuda_engine.hpp"
#include "runtime/cuda/device_calls.hpp"
#include "runtime/graph/split.hpp"
#include "runtime/models/models.hpp"
#include "runtime/models/transformer.hpp"
#include "src/base/json.hpp"
#include "src/base/units.hpp"

using namespace dlrun;
using namespace dlrun::runtime;

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kRounds = 3, kWarm = 8;

enum class Divided { nothing, state, model };

struct BenchSettings {
  std::string model = "mnist-cnn";
  Precision precision = Precision::bf16;
  std::int64_t batch = 64, steps = 40;
  CommDtype dtype = CommDtype::f32;
  Divided divided = Divided::nothing;
};

struct World {
  std::unique_ptr<Communicator> comm;
  CudaLibrary library;
  int device = 0;
  std::unique_ptr<CudaEngine> engine;
  int samples = 1;  // ranks that have other samples
};

void print(const World& world, const Json& json) {
  if (world.comm->rank() == 0) fmt::print("{}\n", to_text(json));
}

std::vector<std::uint8_t> random_bytes(std::size_t count) {
  std::vector<std::uint8_t> out(count);
  std::uint32_t state = 1;
  for (std::uint8_t& byte : out) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::uint8_t>(state >> 24);
  }
  return out;
}

Result<std::string> connect(World& world, const BenchSettings& settings, const Environment& environment) {
  if (world.library.table().use(world.device) != 0) return fail(world.library.error("no usable GPU"));
  Communicator& ranks = *world.comm;
  if (settings.divided != Divided::nothing) {
    NamedGroup made = TRY(make_nccl_group(ranks, ranks));
    TRY(settings.divided == Divided::model ? world.engine->join(std::move(made.group))
                                           : world.engine->divide_state(std::move(made.group)));
    return made.description;
  }
  NamedAllreduce summing = TRY(make_device_allreduce({.world = ranks,
                                                      .calls = make_cuda_device_calls(world.library),
                                                      .dtype = settings.dtype,
                                                      .environment = environment},
                                                     TRY(choose_allreduce(environment))));
  TRY(world.engine->connect(std::move(summing.sum)));
  return summing.description;
}

Result<Graph> graph_of(const BenchSettings& settings, const InputShape& shape, const Communicator& ranks) {
  // GPT-2's largest has 25 heads, which no tensor group of 2 can divide.
  const Transformer even{.layers = 48, .heads = 20, .features = 1600, .context = 1024, .vocabulary = 50257};
  Graph whole = TRY(settings.model == "gpt2-xl-20-heads" ? build_transformer(settings.model, even, shape)
                                                         : build_model(settings.model, shape));
  if (settings.divided != Divided::model || ranks.size() == 1) return whole;
  return split_graph(whole, {ranks.rank(), ranks.size()});
}

Result<World> start(const BenchSettings& settings) {
  const Environment environment = Environment::of_this_process();
  auto comm = TRY(make_communicator(environment));
  CudaLibrary library = TRY(CudaLibrary::open());
  World out{std::move(comm), std::move(library), 0, nullptr};
  if (settings.divided != Divided::model) out.samples = out.comm->size();
  out.device = out.comm->rank() % out.library.devices();
  const InputShape shape = bench_shape(settings.model);
  const bool tokens = shape.kind == SampleKind::tokens;
  EngineOptions options{.batch = settings.batch,
                        .precision = settings.precision,
                        .rank = settings.divided == Divided::model ? 0 : out.comm->rank(),
                        .ranks = out.samples,
                        .optimizer = tokens ? default_optimizer("adamw") : momentum_sgd(0.9)};
  const auto channels = static_cast<std::size_t>(shape.channels);
  if (!tokens)
    options.pixels = InputScaling{std::vector<float>(channels, 1.0F / 255), std::vector<float>(channels, 0)};
  if (settings.divided == Divided::state) options.state_part = StatePart{out.comm->rank(), out.comm->size()};
  out.engine = TRY(compile_cuda(out.library, TRY(graph_of(settings, shape, *out.comm)), options, out.device));
  if (out.comm->size() == 1) return out;
  const std::string sums = TRY(connect(out, settings, environment));
  print(out, Json{{"sums", sums}, {"world", out.comm->description()}});
  return out;
}

std::size_t state_bytes(const Engine& engine) {
  std::size_t numbers = 0;
  for (const TensorInfo& tensor : engine.tensors())
    if (tensor.role == TensorInfo::Role::momentum) numbers += tensor.elements();
  return numbers * sizeof(float);
}

// Seconds of `steps` steps: the median of the rounds, of the slowest rank.
Result<double> time_steps(World& world, std::int64_t steps) {
  std::vector<double> rounds;
  const bool language = !world.engine->tokens().empty();
  const float rate = language ? 1e-4F : 0.01F, clip = language ? 1.0F : 0.0F;
  for (int round = 0; round < kRounds; ++round) {
    for (std::int64_t step = round == 0 ? -kWarm : 0; step < steps; ++step) {
      if (step == 0) TRY(world.comm->barrier());
      if (step == 0) rounds.push_back(std::chrono::duration<double>(Clock::now().time_since_epoch()).count());
      world.engine->train_batch(static_cast<std::uint64_t>(step + kWarm), {});
      TRY(world.engine->status());
      world.engine->apply({.learning_rate = rate,
                           .gradient_scale = 1.0F / static_cast<float>(world.samples),
                           .clip_norm = clip});
    }
    TRY(world.comm->barrier());
    rounds.back() = std::chrono::duration<double>(Clock::now().time_since_epoch()).count() - rounds.back();
  }
  std::sort(rounds.begin(), rounds.end());
  return rounds[rounds.size() / 2];
}

Result<void> train(const BenchSettings& settings) {
  World world = TRY(start(settings));
  CudaEngine& engine = *world.engine;
  const InputShape shape = bench_shape(settings.model);
  const auto classes = static_cast<std::uint32_t>(shape.classes);
  const std::vector<std::uint8_t> bytes =
      random_bytes(std::max(engine.pixels().size(), 4 * engine.tokens().size()));
  const auto token = [&](std::size_t i) {
    std::uint32_t drawn = 0;
    std::memcpy(&drawn, bytes.data() + 4 * i, sizeof drawn);
    return static_cast<std::int32_t>(drawn % classes);
  };
  const auto fill = [&] {
    std::copy_n(bytes.begin(), engine.pixels().size(), engine.pixels().begin());
    const auto tokens = engine.tokens(), labels = engine.labels();
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = token(i);
    for (std::size_t i = 0; i < labels.size(); ++i)
      labels[i] = tokens.empty() ? static_cast<std::int32_t>(i % classes) : token((i + 1) % labels.size());
  };
  fill();
  const double resident = TRY(time_steps(world, settings.steps));
  engine.while_waiting(fill);
  const double fed = TRY(time_steps(world, settings.steps));
  const std::string unit = shape.kind == SampleKind::tokens ? "tokens" : "images";
  const auto all =
      static_cast<double>(settings.batch * shape.labels_per_sample() * settings.steps * world.samples);
  print(world, Json{{"model", settings.model},
                    {"batch", settings.batch},
                    {"ranks", world.comm->size()},
                    {"device", world.library.device_name(world.device)},
                    {unit + "_per_second", all / resident},
                    {"fed_" + unit + "_per_second", all / fed},
                    {"memory_bytes", engine.memory_bytes()},
                    {"state_bytes", state_bytes(engine)}});
  return world.comm->finish();
}

Result<void> sum(CommDtype dtype) {
  World world = TRY(start({.dtype = dtype}));
  const double ranks = world.comm->size();
  for (std::size_t bytes = std::size_t{64} << 10; bytes <= std::size_t{1} << 30; bytes *= 4) {
    const CudaEngine::SumTime time = TRY(world.engine->time_sum(bytes / sizeof(float)));
    const double moved =
        static_cast<double>(bytes) * 2 * (ranks - 1) / ranks / 1e9;  // a rank sends so many GB, as f32
    print(world, Json{{"bytes", bytes},
                      {"issued_us", time.issued * 1e6},
                      {"captured_us", time.captured * 1e6},
                      {"issued_gb_per_second", moved / time.issued},
                      {"captured_gb_per_second", moved / time.captured}});
  }
  return world.comm->finish();
}

Result<void> run(const std::vector<std::string>& words) {
  const auto usage = fail(ErrorKind::usage,
                          "usage: dlrun-gpu-bench train MODEL f32|tf32|bf16 BATCH STEPS [sharded|tensor] | "
                          "sum [f32|bf16|f16]");
  if (words.size() == 1 && words[0] == "sum") return sum(CommDtype::f32);
  for (const CommDtype dtype : {CommDtype::f32, CommDtype::bf16, CommDtype::f16})
    if (words.size() == 2 && words[0] == "sum" && words[1] == name_of(dtype)) return sum(dtype);
  if (words.size() < 5 || words.size() > 6 || words[0] != "train") return usage;
  const std::string how = words.size() == 6 ? words[5] : "";
  if (!how.empty() && how != "sharded" && how != "tensor") return usage;
  const auto batch = parse_integer(words[3], 1, 1 << 20), steps = parse_integer(words[4], 1, 1 << 20);
  if (!batch || !steps) return usage;
  const Precision precision = words[2] == "bf16"   ? Precision::bf16
                              : words[2] == "tf32" ? Precision::tf32
                                                   : Precision::f32;
  const Divided divided = how == "sharded"  ? Divided::state
                          : how == "tensor" ? Divided::model
                                            : Divided::nothing;
  return train({words[1], precision, *batch, *steps, CommDtype::f32, divided});
}

}  // namespace

int main(int count, char** values) {
  const auto done = run({values + (count > 0 ? 1 : 0), values + count});
  if (done) return 0;
  fmt::print(stderr, "dlrun-gpu-bench: error: {}\n", done.error().text());
  return 64;
}
