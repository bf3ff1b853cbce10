// See evaluation.hpp.
#include "runtime/train/evaluation.hpp"

#include <algorithm>

#include "runtime/train/rows.hpp"

namespace dlrun::runtime {
namespace {

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

}  // namespace

Result<Totals> evaluate(Engine& engine, Communicator& comm, const BatchFiller& filler, std::uint64_t count,
                        const std::function<std::uint64_t(std::uint64_t)>& sample) {
  TRY(share_statistics(engine, comm));
  const auto rank = static_cast<std::uint64_t>(comm.rank()), size = static_cast<std::uint64_t>(comm.size());
  const std::uint64_t begin = count * rank / size, end = count * (rank + 1) / size;
  const auto batch = static_cast<std::uint64_t>(engine.batch());
  Totals mine;
  for (std::uint64_t at = begin; at < end; at += batch) {
    const std::uint64_t rows = std::min(batch, end - at);
    filler.fill(
        rows, [&](std::uint64_t i) { return sample(at + i); }, std::nullopt, rows_of(engine));
    TRY(filler.state());
    const BatchResult result = engine.evaluate_batch();
    TRY(engine.status());
    mine.add({result.loss_sum, static_cast<double>(result.correct), static_cast<double>(rows)});
  }
  std::array<double, 3> sums = {mine.loss_sum, mine.correct, mine.rows};
  TRY(comm.allreduce(std::span<double>(sums)));
  return Totals{sums[0], sums[1], sums[2]};
}

}  // namespace dlrun::runtime
