// See sync_section.hpp.
#include "runtime/train/sync_section.hpp"

#include "runtime/models/models.hpp"

namespace dlrun::runtime {
namespace {

struct Conflict {
  std::string what, hint;
};

// What sums gradients in each step, or has parts of a state that ranks change by themselves.
std::optional<Conflict> conflict_of(const TrainSpec& spec) {
  if (spec.shards)
    return Conflict{"train.shards is set: shards have one set of weights, whatever the ranks are",
                    "remove train.shards or train.sync"};
  if (spec.parameter_server)
    return Conflict{"train.parameter-server is set: servers sum gradients in each step",
                    "remove train.parameter-server or train.sync"};
  if (spec.optimizer.state == OptimizerSpec::State::sharded)
    return Conflict{"train.optimizer.state is sharded: a rank cannot update the weights by itself",
                    "set train.optimizer.state to replicated, or remove train.sync"};
  if (purpose_of(spec.model) == Purpose::generate)
    return Conflict{fmt::format("{} is a GAN, for which that is not supported", spec.model),
                    "remove train.sync"};
  if (spec.benchmark)
    return Conflict{"train.benchmark measures steps that are all alike",
                    "remove train.benchmark or train.sync"};
  return std::nullopt;
}

Result<Interval> read_from(const yaml::Node& node) {
  const auto interval = parse_interval(TRY(yaml::as_text(node, "train.sync.from")));
  if (interval && interval->unit != Interval::Unit::time) return *interval;
  return yaml::error_at(node,
                        interval ? "train.sync.from must be in steps or epochs, so that a run can be repeated"
                                 : "train.sync.from: " + interval.error().what,
                        "write 30epochs or 2000steps");
}

}  // namespace

Result<void> read_sync(yaml::Fields& train, TrainSpec& out) {
  const yaml::Node* node = train.find("sync");
  if (node == nullptr) return {};
  yaml::Fields fields = TRY(yaml::Fields::of(*node, train.path("sync")));
  SyncSpec sync;
  TRY(fields.require("every"));
  sync.every = static_cast<std::uint64_t>(TRY(fields.integer_or("every", 2, 2, 1'000'000)));
  if (const yaml::Node* from = fields.find("from")) sync.from = TRY(read_from(*from));
  TRY(fields.finish());
  if (const auto conflict = conflict_of(out))
    return yaml::error_at(*node, "train.sync is set, and " + conflict->what, conflict->hint);
  out.sync = sync;
  return {};
}

Result<void> check_sync(const TrainSpec& spec, Communicator& comm) {
  if (!spec.sync) return {};
  if (comm.elastic() == nullptr) return {};
  return fail(Error{.kind = ErrorKind::usage,
                    .what = "train.sync is set, and the run is elastic: the steps that a rank took by itself "
                            "would be lost with it",
                    .hint = "remove elastic or train.sync"});
}

std::string text_of(const std::optional<SyncSpec>& sync) {
  if (!sync) return "none";
  std::string every = fmt::format("every {} steps", sync->every);
  if (sync->from.amount <= 0) return every;
  return fmt::format("{}, from {} {} on", every, sync->from.amount,
                     sync->from.unit == Interval::Unit::steps ? "steps" : "epochs");
}

}  // namespace dlrun::runtime
