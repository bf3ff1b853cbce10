// See startup.hpp.
#include "runtime/train/startup.hpp"

#include <algorithm>
#include <future>

#include <fmt/format.h>

#include "runtime/base/checksum.hpp"
#include "runtime/base/counted.hpp"
#include "runtime/checkpoint/file_system.hpp"
#include "runtime/checkpoint/snapshot.hpp"
#include "runtime/checkpoint/writer.hpp"
#include "runtime/comm/backend.hpp"
#include "runtime/cpu/cpu_engine.hpp"
#include "runtime/graph/label_smoothing.hpp"
#include "runtime/models/models.hpp"
#include "runtime/train/gpu_decoder.hpp"
#include "runtime/train/model_checks.hpp"
#include "runtime/train/pipeline_schedule.hpp"
#include "runtime/train/servers/server_roles.hpp"
#include "runtime/train/stage_agreement.hpp"
#include "runtime/train/sync_section.hpp"
#include "src/base/units.hpp"

namespace dlrun::runtime {
namespace {

Result<int> rank_of(const Environment& environment) {
  const auto rank = parse_integer(environment.get("DLRUN_RANK", "0"), 0, 1 << 30);
  if (!rank)
    return fail(Error{.kind = ErrorKind::usage,
                      .what = fmt::format("DLRUN_RANK is '{}', not a rank", environment.get("DLRUN_RANK"))});
  return static_cast<int>(*rank);
}

// Where the targets are labels: each is there or is not.
Result<void> check_label_targets(const TrainSpec& spec, const Dataset& data) {
  if (!spec.measure || !spec.measure->is_labels()) return {};
  if (std::all_of(data.targets.begin(), data.targets.end(),
                  [](float target) { return target == 0 || target == 1; }))
    return {};
  TRY(spec.data.source->check_label_targets());  // only the files tell where it is
  return bad_input(spec.data.source->place(), "its targets have changed while they were read");
}

// How many there are before they have met; where nothing tells, more than one. One's gradients stay where
// they are, unless servers need them.
int ranks_of(const Environment& environment) {
  if (environment.find("DLRUN_SERVERS")) return 2;
  const auto backend = choose_backend(environment);
  if (backend && *backend == Backend::one_rank) return 1;
  const auto ranks = parse_integer(environment.get("DLRUN_SIZE", "2"), 1, 1 << 30);
  return ranks ? static_cast<int>(*ranks) : 2;
}

// What does not fit the data has the place of the model.
Result<Graph> build(const TrainSpec& spec, const InputShape& shape) {
  auto out = spec.layers ? build_layers(*spec.layers, shape) : build_model(spec.model, shape);
  return std::move(out).map_error([&spec](Error error) {
    if (error.where.empty()) error.where = spec.model_where;
    return error;
  });
}

// Before the groups are connected.
std::optional<StatePart> state_part(const TrainSpec& spec, const GroupRanks& groups,
                                    const Communicator* world) {
  if (spec.optimizer.state == OptimizerSpec::State::replicated) return std::nullopt;
  return groups.model.alone() ? StatePart{world->rank(), world->size()}
                              : StatePart{groups.data, groups.data_ranks};
}

Result<void> check_parameters(const TrainSpec& spec, const Graph& graph) {
  TRY(check_patterns(graph, spec.patterns));
  if (spec.parameter_server && spec.parameter_server->placement != Placement::split)
    TRY(check_server_count(graph, spec.parameter_server->processes,
                           spec.place_of("parameter-server.placement")));
  return check_state_size(graph, 2 + spec.optimizer.optimizer.traits->state.size() + (spec.ema ? 1 : 0));
}

// Small samples, of which a model accepts one whatever its data are.
std::vector<InputShape> small_shapes(const DataSource& source, const ModelRank& rank) {
  if (source.kind() == SampleKind::tokens)
    return {token_sequences(rank.tensor.slices() ? rank.tensor.parts : 2, std::max(2, rank.tensor.parts))};
  std::vector<InputShape> out;
  if (source.channels() == 0) return out;  // the files alone tell
  for (const std::int64_t side : {28, 32, 224, 299})
    out.push_back({static_cast<std::int64_t>(source.channels()), side, side, 2});
  return out;
}

// Where the files alone tell how many channels there are.
Result<void> check_channels(const TrainSpec& spec, const InputShape& shape) {
  const auto channels = static_cast<std::size_t>(shape.channels);
  const auto check = [&](const char* key, const std::vector<double>& numbers,
                         const std::string& where) -> Result<void> {
    if (numbers.size() <= 1 || numbers.size() == channels) return {};
    return bad_input(where, fmt::format("train.data.{} has {} numbers for {}", key, numbers.size(),
                                        counted(channels, "channel")));
  };
  TRY(check("mean", spec.conversion.mean, spec.mean_where));
  return check("std", spec.conversion.std_dev, spec.std_where);
}

Result<Graph> graph_of(const TrainSpec& spec, const InputShape& shape) {
  Graph out = TRY(build(spec, shape));
  if (shape.kind == SampleKind::tokens &&
      !std::holds_alternative<op::VocabularyLoss>(out.nodes.back().operation))
    return fail(
        Error{.kind = ErrorKind::input,
              .what = fmt::format("model '{}' is not a language model, and the data are tokens", spec.model),
              .where = spec.model_where,
              .hint = "choose a language model, or data of images"});
  if (spec.measure) {
    TRY(check_target_loss(out));
    set_measure(out, *spec.measure);
  }
  if (shape.classes < 2 && shape.targets == 0 && purpose_of(spec.model) != Purpose::generate)
    return fail(Error{.kind = ErrorKind::input,
                      .what = fmt::format("model '{}' needs labels, and train.data has none", spec.model),
                      .where = spec.model_where,
                      .hint = "name them in train.data.labels, or choose a GAN"});
  TRY(check_channels(spec, shape));
  TRY(check_patterns(out, spec.patterns));
  if (spec.mixup) TRY(check_softmax_loss(out, "train.mixup"));
  if (spec.label_smoothing > 0) TRY(smooth_labels(out, spec.label_smoothing));
  return out;
}

struct MadeEngine {
  std::unique_ptr<Engine> engine;
  CudaEngine* on_gpu = nullptr;
  Device device;
};

// A rank's place in the world, and how it takes part in its model.
struct Place {
  int rank = 0;
  GroupRanks groups;
  ProcessGroups* connected = nullptr;
  int of_data() const { return groups.model.alone() ? rank : groups.data; }
};

// Of a device that the job does not name.
Result<void> check_device(const TrainSpec& spec, const Device& device, const ModelRank& rank) {
  return device.library ? check_gpu_settings(spec, rank) : Result<void>{};
}

Result<MadeEngine> make_engine(const TrainSpec& spec, const Environment& environment, const InputShape& shape,
                               const Place& place, const std::optional<StatePart>& part) {
  EngineOptions options = engine_options(spec, place.of_data());
  options.tensor_group = place.connected;
  options.stage_links = &place.connected->links();
  options.state_part = part;
  MadeEngine out;
  out.device = TRY(choose_device(spec.device, environment));
  TRY(check_device(spec, out.device, place.groups.model));
  if (!out.device.library) {
    const Graph whole = TRY(graph_of(spec, shape));
    out.engine = TRY(compile(TRY(divided_graph(spec, whole, place.groups.model)), options));
    if (!is_native(spec.precision))
      out.device.said += fmt::format("{}this processor has no bf16 instructions: f32 is faster here",
                                     out.device.said.empty() ? "" : "; ");
    return out;
  }
  if (!spec.freeze.empty())
    return fail(Error{.kind = ErrorKind::unavailable,
                      .what = "train.freeze is supported on CPUs only",
                      .hint = "set train.device to cpu, or remove train.freeze"});
  const ModelRank& model = place.groups.model;
  options.ranks = model.alone() ? ranks_of(environment) : place.groups.data_ranks;
  options.places = places_of(model.stage, spec.accumulate);
  if (spec.shards) options.algorithms = AlgorithmsBy::shape;
  // Mixed images are no bytes.
  if (!spec.mixup && !spec.data.source->holds_numbers())
    options.pixels = input_scaling_of(spec.conversion, static_cast<std::size_t>(shape.channels));
  const Graph whole = TRY(graph_of(spec, shape));
  auto engine = TRY(
      compile_cuda(*out.device.library, TRY(divided_graph(spec, whole, model)), options, out.device.number));
  out.on_gpu = engine.get();
  out.engine = std::move(engine);
  return out;
}

void take(PreparedTraining& out, MadeEngine made) {
  out.engine = std::move(made.engine);
  out.on_gpu = made.on_gpu;
  out.device = std::move(made.device);
}

struct Facts {
  std::uint64_t plan = 0, data = 0, job = 0;
  std::int64_t model_rank = 0;  // among those that have parts of the same model
};

}  // namespace

std::uint64_t job_checksum(const TrainSpec& spec, const ModelRank& rank) {
  const std::string servers =
      spec.parameter_server
          ? fmt::format("{} {}", name_of(spec.parameter_server->placement),
                        spec.parameter_server->servers.value_or(0)) +
                (spec.parameter_server->staleness == 0 ? std::string()
                                                       : fmt::format(" {}", spec.parameter_server->staleness))
          : "none";
  const std::string init = spec.init_from ? fmt::format("{} {}", spec.init_from->file.string(),
                                                        fmt::join(spec.init_from->skip, " "))
                                          : std::string("none");
  const std::string start =
      fmt::format("{} {} {}", init, fmt::join(spec.freeze, " "), spec.clip_norm.value_or(0));
  const std::string shards =
      spec.shards ? fmt::format("{}", spec.shards->count.value_or(0)) : std::string("none");
  const bool in_parts = spec.optimizer.state == OptimizerSpec::State::sharded;
  const std::string recipe =
      fmt::format("{} {} {} {} {}{}", spec.optimizer.no_decay.text(), spec.accumulate, spec.label_smoothing,
                  spec.ema.value_or(0), spec.mixup.value_or(0), in_parts ? " sharded" : "") +
      (spec.measure ? " " + spec.measure->text() : std::string()) +
      (spec.sync ? " " + text_of(spec.sync) : std::string()) + (rank.tensor.slices() ? " sequence" : "");
  return checksum(fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", rank.tensor.parts,
                              rank.stage.stages, recipe, start, spec.batch, spec.epochs, spec.seed,
                              spec.optimizer.learning_rate, spec.optimizer.weight_decay,
                              name_of(spec.precision), name_of(spec.allreduce.dtype), servers,
                              spec.optimizer.optimizer.identity(), spec.allreduce.choice.text(), shards));
}

EngineOptions engine_options(const TrainSpec& spec, int rank) {
  return EngineOptions{.batch = spec.batch,
                       .precision = spec.precision,
                       .seed = spec.seed,
                       .rank = rank,
                       .bucket_bytes = spec.allreduce.bucket_bytes,
                       .pixels = {},
                       .optimizer = spec.optimizer.optimizer,
                       .frozen = spec.freeze,
                       .no_decay = spec.optimizer.no_decay,
                       .accumulate = spec.accumulate,
                       .labels = spec.mixup ? Labels::mixed : Labels::one,
                       .average = spec.ema ? std::optional(static_cast<float>(*spec.ema)) : std::nullopt};
}

namespace {

Result<void> connect(const TrainSpec& spec, const Environment& environment, PreparedTraining& out) {
  out.comm = TRY(make_communicator(environment, spec.allreduce.choice));
  if (TRY(server_roles_of(environment)).servers == 0) return {};
  out.world = std::move(out.comm);
  out.comm = TRY(out.world->split(0, out.world->rank()));
  return {};
}

// The number of ranks decides the batch of each and its part of the state, and so comes before the engine.
Result<void> divide_among_ranks(TrainSpec& spec, const Environment& environment, const GroupRanks& groups,
                                PreparedTraining& out) {
  const bool in_parts = spec.optimizer.state == OptimizerSpec::State::sharded;
  if (!spec.global_batch && !in_parts) return {};
  TRY(connect(spec, environment, out));
  if (!in_parts || out.comm->elastic() == nullptr)
    return divide_global_batch(spec, groups.model.alone() ? out.comm->size() : groups.data_ranks);
  return fail(Error{.kind = ErrorKind::usage,
                    .what =
                        "train.optimizer.state is sharded, and the run is elastic: a lost rank would take "
                        "its part of the state with it",
                    .hint = "remove elastic, or set train.optimizer.state to replicated"});
}

}  // namespace

Result<void> prepare(TrainSpec& spec, const Environment& environment, PreparedTraining& out) {
  const Place place{TRY(rank_of(environment)), TRY(group_ranks_of(environment)), &out.groups};
  TRY(check_model_settings(spec, place.groups.model));
  const InputShape shape = TRY(spec.data.source->probe());
  TRY(divide_among_ranks(spec, environment, place.groups, out));
  auto data = std::async(std::launch::async,
                         [&spec] { return load_data(*spec.data.source, spec.seed, spec.data.train_share); });
  const std::optional<StatePart> part = state_part(spec, place.groups, out.comm.get());
  auto engine = std::async(std::launch::async, [&spec, &environment, shape, place, part] {
    return make_engine(spec, environment, shape, place, part);
  });
  Result<void> connected = out.comm ? Result<void>{} : connect(spec, environment, out);
  auto made = engine.get();
  auto loaded = data.get();
  TRY(std::move(loaded).map([&](DataParts parts) { out.data = std::move(parts); }));
  for (const Dataset* part : {&out.data.train, &out.data.test}) TRY(check_label_targets(spec, *part));
  TRY(std::move(made).map([&](MadeEngine built) { take(out, std::move(built)); }));
  TRY(std::move(connected));
  if (spec.decoding.by == DecodeOptions::By::device)
    spec.decoding.decoder = TRY(make_gpu_decoder(out.device, shape));
  TRY(out.groups.connect(*out.comm, place.groups));
  if (out.comm->rank() == place.rank || out.comm->elastic() != nullptr) return {};
  // Started by something that does not say which rank this is: only now is it known.
  take(out, TRY(make_engine(spec, environment, shape, {out.comm->rank(), place.groups, &out.groups}, part)));
  return {};
}

Result<void> check_settings(const TrainSpec& spec, const ModelRank& rank) {
  TRY(check_model_settings(spec, rank));
  if (purpose_of(spec.model) == Purpose::generate)
    return {};  // a GAN has the more layers, the larger images are
  for (const InputShape& shape : small_shapes(*spec.data.source, rank))
    if (const auto graph = build(spec, shape)) {
      TRY(check_parameters(spec, *graph));
      return divided_graph(spec, *graph, rank).map([](const Graph&) {});
    }
  return {};
}

Result<std::string> check_job(const TrainSpec& spec, const Environment& environment, const ModelRank& rank) {
  const InputShape shape = TRY(spec.data.source->check());
  const Graph graph = TRY(graph_of(spec, shape));
  TRY(check_parameters(spec, graph));
  TRY(divided_graph(spec, graph, rank));
  const bool is_divided = !rank.alone() || spec.optimizer.state == OptimizerSpec::State::sharded;
  if (is_divided && spec.device == TrainSpec::Device::automatic)
    TRY(check_device(spec, TRY(choose_device(spec.device, environment)), rank));
  if (!spec.checkpoint.folder.empty()) TRY(check_writable(*real_file_system(), spec.checkpoint.folder));
  if (shape.kind == SampleKind::tokens)
    return fmt::format("job file OK: {} on sequences of {} of a vocabulary of {}", spec.model,
                       counted(shape.height, "token"), shape.classes);
  if (shape.targets > 0)
    return fmt::format("job file OK: {} on samples of {} x {} x {}, {}", spec.model, shape.channels,
                       shape.height, shape.width, counted(shape.targets, "target"));
  return fmt::format("job file OK: {} on images of {} x {} x {}, {} classes", spec.model, shape.channels,
                     shape.height, shape.width, shape.classes);
}

// A stage's parameters, then the next one's; so with statistics, and each slot of the state.
Result<std::uint64_t> tensors_of_model(const PreparedTraining& prepared) {
  std::vector<std::string> texts = tensor_texts(*prepared.engine);
  Communicator* const group = prepared.groups.pipeline();
  if (group == nullptr) return tensors_checksum(texts);
  for (std::string& text : texts) text = TRY(joined_text(*group, text));
  return tensors_checksum(texts);
}

Result<void> check_agreement(const TrainSpec& spec, const PreparedTraining& prepared) {
  const Communicator* const model = prepared.groups.model();
  const Facts mine{prepared.engine->plan_hash(), prepared.data.train.fingerprint(),
                   job_checksum(spec, prepared.groups.model_rank()), model == nullptr ? 0 : model->rank()};
  std::vector<Facts> all(static_cast<std::size_t>(prepared.comm->size()));
  TRY(prepared.comm->allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all))));
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    std::string what;
    // Of a divided model, those that have the same part.
    const auto alike = std::find_if(all.begin(), all.end(),
                                    [&](const Facts& one) { return one.model_rank == all[rank].model_rank; });
    if (all[rank].plan != alike->plan) what = "model (its plan)";
    if (all[rank].data != all[0].data) what = "training data";
    if (all[rank].job != all[0].job) what = "job";
    if (!what.empty())
      return fail(Error{.kind = ErrorKind::input,
                        .what = fmt::format("rank {} has another {} than rank 0", rank, what),
                        .hint = "every node must see the same job file, data folder and dlrun-train"});
  }
  return {};
}

}  // namespace dlrun::runtime
