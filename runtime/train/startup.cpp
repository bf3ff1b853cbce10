// See startup.hpp.
#include "runtime/train/startup.hpp"

#include <future>

#include "runtime/checkpoint/checksum.hpp"
#include "runtime/checkpoint/file_system.hpp"
#include "runtime/checkpoint/writer.hpp"
#include "runtime/graph/cpu_engine.hpp"
#include "runtime/graph/cuda/cuda_engine.hpp"
#include "runtime/models/models.hpp"
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

// The rank's own GPU: the only one that CUDA_VISIBLE_DEVICES leaves it, else that of its number on the node.
Result<int> device_of(const CudaLibrary& library, const Environment& environment) {
  const std::string text = environment.get("DLRUN_LOCAL_RANK", "0");
  const auto local = parse_integer(text, 0, 1 << 20);
  if (library.devices() == 1 && environment.find("CUDA_VISIBLE_DEVICES")) return 0;
  if (local && *local < library.devices()) return static_cast<int>(*local);
  return fail(
      Error{.kind = ErrorKind::unavailable,
            .what = fmt::format("no GPU is left for local rank {}: {} are seen", text, library.devices()),
            .hint = "start as many ranks a node as it has GPUs"});
}

Result<Graph> graph_of(const TrainSpec& spec, const InputShape& shape) {
  return spec.layers ? build_layers(*spec.layers, shape) : build_model(spec.model, shape);
}

Result<std::unique_ptr<Engine>> make_engine(const TrainSpec& spec, const Environment& environment,
                                            const InputShape& shape, int rank) {
  EngineOptions options = engine_options(spec, rank);
  if (spec.device == TrainSpec::Device::cpu) return TRY(compile(TRY(graph_of(spec, shape)), options));
  const auto ranks = parse_integer(environment.get("DLRUN_SIZE", "2"), 1, 1 << 30);  // unknown: more than one
  options.ranks = ranks ? static_cast<int>(*ranks) : 2;
  const CudaLibrary library = TRY(CudaLibrary::open());
  const int device = TRY(device_of(library, environment));
  return TRY(compile_cuda(library, TRY(graph_of(spec, shape)), options, device));
}

struct Facts {
  std::uint64_t plan = 0, data = 0, job = 0;
};

// What must be equal on all ranks beyond the plan.
std::uint64_t job_checksum(const TrainSpec& spec) {
  const std::string servers = spec.parameter_server
                                  ? fmt::format("{} {}", name_of(spec.parameter_server->placement),
                                                spec.parameter_server->servers.value_or(0))
                                  : "none";
  return checksum(fmt::format("{} {} {} {} {} {} {} {} {}", spec.batch, spec.epochs, spec.seed,
                              spec.optimizer.learning_rate, spec.optimizer.momentum,
                              spec.optimizer.weight_decay, name_of(spec.precision), name_of(spec.wire),
                              servers));
}

}  // namespace

EngineOptions engine_options(const TrainSpec& spec, int rank) {
  return EngineOptions{.batch = spec.batch,
                       .precision = spec.precision,
                       .seed = spec.seed,
                       .rank = rank,
                       .bucket_bytes = spec.bucket_bytes};
}

Result<void> prepare(const TrainSpec& spec, const Environment& environment, Prepared& out) {
  const int rank = TRY(rank_of(environment));
  const InputShape shape = TRY(probe_data(spec.data));
  auto data = std::async(std::launch::async, [&spec] { return load_data(spec.data); });
  auto engine = std::async(std::launch::async, [&spec, &environment, shape, rank] {
    return make_engine(spec, environment, shape, rank);
  });
  auto comm = make_communicator(environment);
  if (comm) out.comm = std::move(*comm);
  auto made = engine.get();
  auto loaded = data.get();
  TRY(std::move(loaded).map([&](DataParts parts) { out.data = std::move(parts); }));
  TRY(std::move(made).map([&](std::unique_ptr<Engine> built) { out.engine = std::move(built); }));
  if (!comm) return tl::unexpected(std::move(comm).error());
  if (out.comm->rank() == rank) return {};
  // Started by something that does not say which rank this is: only now is it known.
  out.engine = TRY(make_engine(spec, environment, shape, out.comm->rank()));
  return {};
}

Result<std::string> check_job(const TrainSpec& spec) {
  const InputShape shape = TRY(check_data(spec.data));
  TRY(graph_of(spec, shape));
  if (!spec.checkpoint.folder.empty()) TRY(check_writable(*real_file_system(), spec.checkpoint.folder));
  return fmt::format("the job is sound: {} on images of {} x {} x {}, {} classes", spec.model, shape.channels,
                     shape.height, shape.width, shape.classes);
}

Result<void> check_agreement(const TrainSpec& spec, const Prepared& prepared) {
  const Facts mine{prepared.engine->plan_hash(), prepared.data.train.fingerprint(), job_checksum(spec)};
  std::vector<Facts> all(static_cast<std::size_t>(prepared.comm->size()));
  TRY(prepared.comm->allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all))));
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    std::string what;
    if (all[rank].plan != all[0].plan) what = "model (its plan)";
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
