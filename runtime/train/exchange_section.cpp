// See exchange_section.hpp.
#include "runtime/train/exchange_section.hpp"

#include <array>

#include "runtime/models/models.hpp"

namespace dlrun::runtime {
namespace {

using yaml::Fields;
using YamlNode = yaml::Node;

// `wire` is what dtype was called before.
Result<CommDtype> read_dtype(Fields& fields, TrainSpec& out) {
  static const std::vector<std::string> names = {"f32", "bf16", "f16"};
  const YamlNode* const old = fields.node().find("wire");
  const std::string_view key = old == nullptr ? "dtype" : "wire";
  if (old != nullptr && fields.has("dtype"))
    return yaml::error_at(*old, "train.allreduce has both dtype and wire, its old name", "keep dtype");
  if (old != nullptr)
    out.warnings.push_back(
        fmt::format("{} is the old name of {}", fields.path("wire"), fields.path("dtype")));
  return std::array{CommDtype::f32, CommDtype::bf16, CommDtype::f16}[TRY(fields.choice_or(key, 0, names))];
}

Result<ParameterServerSpec> read_parameter_server_section(const YamlNode& node, const std::string& path) {
  Fields fields = TRY(Fields::of(node, path));
  static const std::vector<std::string> names = {"round-robin", "greedy", "split"};
  ParameterServerSpec spec;
  spec.placement = std::array{Placement::round_robin, Placement::greedy,
                              Placement::split}[TRY(fields.choice_or("placement", 1, names))];
  if (fields.find("servers") != nullptr)
    spec.servers = static_cast<int>(TRY(fields.integer_or("servers", 1, 1, 1 << 20)));
  spec.staleness = static_cast<int>(TRY(fields.integer_or("staleness", 0, 0, 1'000'000)));
  static const std::vector<std::string> sums = {"auto", "on", "off"};
  spec.node_sum = static_cast<ParameterServerSpec::NodeSum>(TRY(fields.choice_or("node-sum", 0, sums)));
  TRY(fields.finish());
  return spec;
}

// What would make the bits depend on the number of ranks, or is not there yet for shards.
Result<void> check_shards(const YamlNode& node, const TrainSpec& spec) {
  const auto refuse = [&](const std::string& what, const std::string& hint) {
    return yaml::error_at(node, "train.shards is set, and " + what, hint);
  };
  if (spec.parameter_server)
    return refuse("parameter servers are asked for, which add in the order of the ranks",
                  "keep one of the two");
  if (!spec.allreduce.choice.is_auto())
    return refuse(fmt::format("{}: shards are added in an order of their own", spec.allreduce.choice.text()),
                  "set train.allreduce.algorithm to auto, or remove train.shards");
  if (spec.allreduce.dtype != CommDtype::f32)
    return refuse(fmt::format("train.allreduce.dtype is {}: sums of shards are sent as f32",
                              name_of(spec.allreduce.dtype)),
                  "set train.allreduce.dtype to f32, or remove train.shards");
  if (purpose_of(spec.model) == Purpose::generate)
    return refuse(fmt::format("{} is a GAN, for which shards are not supported", spec.model),
                  "remove train.shards");
  return {};
}

}  // namespace

Result<void> read_allreduce(Fields& train, TrainSpec& out) {
  const YamlNode* node = train.find("allreduce");
  if (node == nullptr) return {};
  Fields fields = TRY(Fields::of(*node, train.path("allreduce")));
  AllreduceSpec& spec = out.allreduce;
  const std::vector<std::string> names = allreduce_names();
  spec.choice.algorithm = find_allreduce(names[TRY(fields.choice_or("algorithm", 0, names))]);
  spec.bucket_bytes = TRY(fields.size_or("bucket", spec.bucket_bytes));
  if (spec.bucket_bytes < 1024 || spec.bucket_bytes > (std::uint64_t{4} << 30))
    return yaml::error_at(*fields.find("bucket"), "train.allreduce.bucket must be 1KiB to 4GiB");
  spec.dtype = TRY(read_dtype(fields, out));
  TRY(fields.finish());
  if (spec.dtype == CommDtype::f32 || spec.choice.is_auto() ||
      spec.choice.algorithm->dtypes == AllreduceAlgorithm::Dtypes::all)
    return {};
  return yaml::error_at(
      *fields.find("algorithm"),
      fmt::format("train.allreduce.algorithm {} sends f32, and train.allreduce.dtype asks for {}",
                  spec.choice.algorithm->name, name_of(spec.dtype)),
      "write algorithm: direct or auto, or dtype: f32");
}

Result<void> read_parameter_server(Fields& train, TrainSpec& out) {
  const YamlNode* node = train.find("parameter-server");
  const AllreduceChoice& choice = out.allreduce.choice;
  if (node == nullptr) {
    if (choice.is("parameter-server")) out.parameter_server.emplace();
    return {};
  }
  out.parameter_server = TRY(read_parameter_server_section(*node, train.path("parameter-server")));
  if (choice.is_auto() || choice.is("parameter-server")) return {};
  return yaml::error_at(*node, fmt::format("train.parameter-server is set, and {}", choice.text()),
                        "keep one of the two");
}

Result<void> read_shards(Fields& train, TrainSpec& out) {
  const YamlNode* node = train.find("shards");
  if (node == nullptr) return {};
  out.shards.emplace();
  if (node->scalar != "auto")
    out.shards->count = static_cast<int>(TRY(yaml::as_integer(*node, "train.shards", 1, 1 << 16)));
  return check_shards(*node, out);
}

Result<void> check_sharded_state(Fields& train, const TrainSpec& spec) {
  if (spec.optimizer.state == OptimizerSpec::State::replicated) return {};
  const YamlNode& node = *TRY(Fields::of(*train.find("optimizer"), "train.optimizer")).find("state");
  const auto refuse = [&](const std::string& what, const std::string& hint) {
    return yaml::error_at(node, "train.optimizer.state is sharded, and " + what, hint);
  };
  if (spec.parameter_server)
    return refuse("train.parameter-server is set: servers send all sums to all ranks",
                  "remove one of the two");
  if (!spec.allreduce.choice.is_auto() && !spec.shards)
    return refuse(fmt::format("{}: gradients are summed by a reduce-scatter", spec.allreduce.choice.text()),
                  "set train.allreduce.algorithm to auto, or state to replicated");
  if (purpose_of(spec.model) == Purpose::generate)
    return refuse(fmt::format("{} is a GAN, for which that is not supported", spec.model),
                  "set state to replicated");
  return {};
}

}  // namespace dlrun::runtime
