// See evaluation.hpp.
#include "runtime/train/evaluation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "runtime/train/parameter_update.hpp"
#include "runtime/train/rows.hpp"

namespace dlrun::runtime {
namespace {

Result<Totals> evaluate_range(Engine& engine, const BatchFiller& filler, std::uint64_t begin,
                              std::uint64_t end, const std::function<std::uint64_t(std::uint64_t)>& sample) {
  const auto batch = static_cast<std::uint64_t>(engine.batch());
  const std::uint64_t of_each_row = std::max(engine.labels().size(), engine.targets().size()) / batch;
  const auto answers = static_cast<double>(of_each_row);
  Totals out;
  std::uint64_t announced = begin;
  for (std::uint64_t at = begin; at < end; at += batch) {
    const std::uint64_t rows = std::min(batch, end - at);
    for (; announced < end && filler.free_rows() > 0; ++announced)
      filler.announce(sample(announced), std::nullopt);
    const std::uint64_t counted = filler.fill(
        rows, [&](std::uint64_t i) { return sample(at + i); }, std::nullopt, rows_of(engine));
    TRY(filler.state());
    const BatchResult result = engine.evaluate_batch();
    TRY(engine.status());
    out.add({.loss_sum = result.loss_sum,
             .correct = static_cast<double>(result.correct) / answers,
             .rows = static_cast<double>(counted),
             .generator_loss_sum = 0,
             .targets = result.target_sums});
  }
  return out;
}

// In the order of the shards. Ranks have blocks of equal length, of which they may not fill the last place.
Result<Totals> add_up(const std::vector<Totals>& own, Communicator& comm, int shards) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  const std::size_t block = (static_cast<std::size_t>(shards) + ranks - 1) / ranks;
  std::vector<std::array<double, 7>> mine(block), all(block * ranks);
  for (std::size_t i = 0; i < own.size(); ++i) {
    const TargetSums& targets = own[i].targets;
    mine[i] = {own[i].loss_sum, own[i].correct, own[i].rows,   targets.absolute,
               targets.squared, targets.found,  targets.marked};
  }
  TRY(comm.allgather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all))));
  Totals sum;
  for (const auto& [loss, correct, rows, absolute, squared, found, marked] : all)
    sum.add({.loss_sum = loss,
             .correct = correct,
             .rows = rows,
             .generator_loss_sum = 0,
             .targets = {absolute, squared, found, marked}});
  return sum;
}

}  // namespace

Result<void> share_statistics(Engine& engine, Communicator& comm) {
  if (comm.size() == 1) return {};
  for (std::size_t i = 0; i < engine.tensors().size(); ++i) {
    const TensorInfo& tensor = engine.tensors()[i];
    if (tensor.role != TensorInfo::Role::statistic) continue;
    std::vector<float> values(tensor.elements());
    TRY(engine.read_tensor(i, values));
    TRY(comm.broadcast(std::as_writable_bytes(std::span(values)), 0));
    TRY(engine.write_tensor(i, values));
  }
  return {};
}

Result<Totals> evaluate(const Evaluators& by, const BatchFiller& filler, std::uint64_t count,
                        const std::function<std::uint64_t(std::uint64_t)>& sample) {
  TRY(share_statistics(by.engine, by.comm));
  ShardedEngine* const sharded = by.engine.sharded();
  const bool in_parts = sharded != nullptr && sharded->keeps_averages();
  std::optional<AveragedWeights> averaged(by.engine);
  if (in_parts) TRY(gather_weights(by.engine, by.comm));
  const auto shards = static_cast<std::uint64_t>(by.shards.shards);
  std::vector<Totals> own;
  for (int number = by.shards.own.begin; number < by.shards.own.end; ++number) {
    const auto shard = static_cast<std::uint64_t>(number);
    own.push_back(
        TRY(evaluate_range(by.engine, filler, count * shard / shards, count * (shard + 1) / shards, sample)));
  }
  averaged.reset();
  if (in_parts) TRY(gather_weights(by.engine, by.comm));
  const Totals sum = TRY(add_up(own, by.comm, by.shards.shards));
  if (sum.rows == 0 && count > 0) return none_left("to evaluate");
  return sum;
}

tl::unexpected<Error> none_left(std::string_view what_for) {
  return fail(
      Error{.kind = ErrorKind::input,
            .what = fmt::format("no sample is left {}: all of them are damaged, and were dropped", what_for),
            .hint = "look at train.data, or set damaged: refuse, which names the first one"});
}

namespace {

std::string_view thing(const Dataset& data) {
  return data.numbers ? "sample" : "image";
}

}  // namespace

void name_dropped(std::span<const std::string> dropped, const Dataset& data) {
  for (const std::string& one : dropped)
    fmt::print(stderr, "dlrun-train: damaged {} left out: {}\n", thing(data), one);
}

std::string left_out_text(double samples, const Dataset& data, std::string_view of) {
  const auto count = std::llround(samples);
  if (data.damaged != Damaged::dropped || count <= 0) return {};
  return fmt::format("{} damaged {}(s) left out of {}", count, thing(data), of);
}

}  // namespace dlrun::runtime
