// See gpu.hpp.
#include "runtime/train/gpu.hpp"

#include <chrono>
#include <filesystem>
#include <thread>

#include "runtime/comm/allreduce/choose_device_allreduce.hpp"
#include "runtime/comm/allreduce/device_shard_sums.hpp"
#include "runtime/comm/elastic/elastic_world.hpp"
#include "runtime/comm/nccl/allreduce.hpp"
#include "runtime/comm/nccl/group.hpp"
#include "runtime/comm/nccl/library.hpp"
#include "runtime/comm/nccl/pipeline.hpp"
#include "runtime/cuda/device_calls.hpp"
#include "src/base/units.hpp"

namespace dlrun::runtime {
namespace {

// The rank's own GPU: the only one that CUDA_VISIBLE_DEVICES leaves it, else that of its number on the node.
Result<int> number_of(const CudaLibrary& library, const Environment& environment) {
  const std::string text = environment.get("DLRUN_LOCAL_RANK", "0");
  const auto local = parse_integer(text, 0, 1 << 20);
  if (library.devices() == 1 && environment.find("CUDA_VISIBLE_DEVICES")) return 0;
  if (local && *local < library.devices()) return static_cast<int>(*local);
  return fail(
      Error{.kind = ErrorKind::unavailable,
            .what = fmt::format("there is no GPU for local rank {}: {} are visible", text, library.devices()),
            .hint = "start at most one rank per GPU"});
}

// A check of the driver's device file, which costs less than loading the plug-in on a node without a GPU.
Result<CudaLibrary> probe_gpu() {
  constexpr const char* driver = "/dev/nvidiactl";
  if (!std::filesystem::exists(driver))
    return fail(ErrorKind::unavailable, "there is no NVIDIA driver here ({})", driver);
  return CudaLibrary::open();
}

// Who needs NCCL is told how to do without.
tl::unexpected<Error> needs_nccl(Error error, const std::string& key) {
  error.what = key + ", which needs NCCL on GPUs: " + error.what;
  if (error.kind == ErrorKind::unavailable) error.kind = ErrorKind::usage;
  return fail(std::move(error));
}

// Those that have the same part of a model: all, where it is whole.
Result<std::string> connect_state(CudaEngine& engine, const RanksOnHosts& ranks) {
  auto made = make_nccl_group(ranks.world, ranks.groups.data());
  if (!made) return needs_nccl(std::move(made).error(), "train.optimizer.state is sharded");
  TRY(engine.divide_state(std::move(made->group)));
  return fmt::format(
      "each GPU gets the sums of its part of the gradients by {}, in parallel with the "
      "backward pass, and sends the weights that it updates",
      made->description);
}

std::string key_of(const ProcessGroups& groups) {
  return groups.tensor() != nullptr ? "parallel.tensor is above 1" : "parallel.pipeline is above 1";
}

Result<std::string> connect_parts(CudaEngine& engine, const RanksOnHosts& ranks) {
  if (ranks.groups.tensor() == nullptr) return std::string();
  auto tensor = make_nccl_group(ranks.world, *ranks.groups.tensor());
  if (!tensor) return needs_nccl(std::move(tensor).error(), key_of(ranks.groups));
  TRY(engine.join(std::move(tensor->group)));
  return fmt::format("tensor groups sum on the GPUs by {}", tensor->description);
}

Result<std::string> connect_stages(CudaEngine& engine, const RanksOnHosts& ranks) {
  if (ranks.groups.pipeline() == nullptr) return std::string();
  auto stages = make_nccl_pipeline(ranks.world, *ranks.groups.pipeline());
  if (!stages) return needs_nccl(std::move(stages).error(), key_of(ranks.groups));
  TRY(engine.join(std::move(stages->pipeline)));
  return fmt::format("stages send values and gradients from GPU to GPU by {}", stages->description);
}

// First the ranks that have the parts of a model, then those that have the same part.
Result<std::string> connect_model(CudaEngine& engine, const RanksOnHosts& ranks) {
  std::string said = TRY(connect_parts(engine, ranks));
  const std::string stages = TRY(connect_stages(engine, ranks));
  said += (said.empty() || stages.empty() ? "" : "; ") + stages;
  if (ranks.groups.data().size() == 1) return said;
  if (engine.state_part_bytes()) return said + "; " + TRY(connect_state(engine, ranks));
  auto data = make_nccl_allreduce(ranks.world, ranks.groups.data());
  if (!data) return needs_nccl(std::move(data).error(), key_of(ranks.groups));
  TRY(engine.connect(std::move(data->sum)));
  return said + "; data groups sum gradients in parallel with the backward pass";
}

constexpr auto kUntilCalled = std::chrono::seconds(1);

// Then NCCL itself has failed, and would again. Shorter than the others wait for the launcher's call.
bool nobody_is_missed(Communicator& world) {
  const auto end = std::chrono::steady_clock::now() + kUntilCalled;
  for (; std::chrono::steady_clock::now() < end; std::this_thread::sleep_for(std::chrono::milliseconds(10)))
    if (world.elastic() != nullptr && world.elastic()->is_lost()) return false;
  return true;
}

}  // namespace

Result<Device> choose_device(TrainSpec::Device wanted, const Environment& environment) {
  if (wanted == TrainSpec::Device::cpu) return Device{};
  const bool may_be_cpu = wanted == TrainSpec::Device::automatic;
  auto library = may_be_cpu ? probe_gpu() : CudaLibrary::open();
  if (!library && may_be_cpu)
    return Device{.library = {}, .said = fmt::format("on the CPU: {}", library.error().what)};
  Device out;
  out.library = TRY(std::move(library));
  out.number = TRY(number_of(*out.library, environment));
  out.said = fmt::format("on GPU {}: {}", out.number, out.library->device_name(out.number));
  return out;
}

// A device that was connected to a lost rank can do nothing before it is disconnected.
Result<std::string> GpuShardSums::connect(Communicator& world) {
  if (sums_ == GpuSums::on_device) TRY(engine_.disconnect());
  const auto nccl = world.size() == 1 ? Result<void>{} : NcclLibrary::open().map([](const auto&) {});
  const AgreedSums agreed = TRY(agree_on_sums(world, sums_, nccl));
  if (agreed.how == GpuSums::through_host) return go_through_host(agreed.why);
  if (device_.library->table().use(device_.number) != 0) return fail(device_.library->error("no usable GPU"));
  auto made = make_device_shard_sums(world, make_cuda_device_calls(*device_.library), terms_);
  const bool joins = sums_ == GpuSums::unconnected && agreed.some_join;
  if (!made && made.error().kind == ErrorKind::unavailable) {
    if (sums_ == GpuSums::unconnected && !joins) return go_through_host(made.error().what);
    if (sums_ != GpuSums::unconnected && agreed.some_join) made.error().kind = ErrorKind::lost;
  }
  // All would try the same again: who joins gives up, and the others go on without it.
  if (!made && made.error().kind == ErrorKind::lost && joins && nobody_is_missed(world))
    made.error().kind = ErrorKind::unavailable;
  NamedAllreduce summing = TRY(std::move(made));
  sums_ = GpuSums::on_device;
  TRY(engine_.connect(std::move(summing.sum)));
  return fmt::format("gradients are summed on the GPUs by {}, in parallel with the backward pass",
                     summing.description);
}

std::string GpuShardSums::go_through_host(const std::string& why) {
  sums_ = GpuSums::through_host;
  return "gradients go through the host" + (why.empty() ? why : ": " + why);
}

Result<void> GpuShardSums::start_again() {
  TRY(engine_.disconnect());
  sums_ = GpuSums::unconnected;
  return {};
}

Result<std::string> connect_gpus(CudaEngine& engine, const Device& device, const RanksOnHosts& ranks,
                                 const TrainSpec& spec, const Environment& environment) {
  Communicator& comm = ranks.world;
  if (comm.size() == 1) return std::string();
  if (spec.parameter_server) return std::string("gradients go through the host, to parameter servers");
  const AllreduceChoice choice = TRY(choose_allreduce(environment, spec.allreduce.choice));
  const bool is_divided = ranks.groups.model() != nullptr;
  if (is_divided && !choice.is_auto())
    return fail(Error{.kind = ErrorKind::usage,
                      .what = fmt::format("{}, and {}: on GPUs all sums of a divided model are NCCL's",
                                          key_of(ranks.groups), choice.text()),
                      .hint = fmt::format("unset {}", choice.asked_by)});
  if (device.library->table().use(device.number) != 0) return fail(device.library->error("no usable GPU"));
  if (is_divided) return connect_model(engine, ranks);
  if (engine.state_part_bytes()) return connect_state(engine, ranks);
  if (choice.is_of_host())
    return fmt::format("gradients go through the host: {}={}", choice.asked_by, choice.algorithm->name);
  auto made = make_device_allreduce({.world = comm,
                                     .calls = make_cuda_device_calls(*device.library),
                                     .dtype = spec.allreduce.dtype,
                                     .environment = environment},
                                    choice);
  if (!made && made.error().kind == ErrorKind::unavailable)
    return fmt::format("gradients go through the host: {}", made.error().what);
  NamedAllreduce summing = TRY(std::move(made));
  TRY(engine.connect(std::move(summing.sum)));
  return fmt::format("gradients are summed on the GPUs by {}, in parallel with the backward pass",
                     summing.description);
}

}  // namespace dlrun::runtime
