// Evaluation: a set of samples once, divided over the shards of all ranks. Batch statistics are rank 0's on
// every rank (they are what a checkpoint holds), so that the figure does not depend on whether the run was
// interrupted; and sums are added in the order of the shards, so that it does not depend on how many ranks
// share these.
#pragma once

#include "runtime/comm/communicator.hpp"
#include "runtime/data/batch_filler.hpp"
#include "runtime/train/gradient_exchange.hpp"
#include "runtime/train/totals.hpp"

namespace dlrun::runtime {

/// While it lives, the weights are their averages where the job keeps some.
class AveragedWeights {
 public:
  explicit AveragedWeights(Engine& engine) : engine_(engine) { engine_.swap_averages(); }
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;
  ~AveragedWeights() { engine_.swap_averages(); }

 private:
  Engine& engine_;
};

struct Evaluators {
  Engine& engine;
  Communicator& comm;
  ShardsOfRank shards;
};

/// Running statistics become rank 0's on all ranks, which all call it.
Result<void> share_statistics(Engine& engine, Communicator& comm);

/// By the averaged weights. `count` samples; the i-th is number `sample(i)` of the filler's data. An Error
/// where all of them were dropped.
Result<Totals> evaluate(const Evaluators& by, const BatchFiller& filler, std::uint64_t count,
                        const std::function<std::uint64_t(std::uint64_t)>& sample);

/// The Error of data of which all samples were dropped.
tl::unexpected<Error> none_left(std::string_view what_for);

/// On standard error: damaged samples of `data` that this rank left out, with their places.
void name_dropped(std::span<const std::string> dropped, const Dataset& data);
/// How many of them all ranks left out: "3 damaged image(s) left out of epoch 2"; empty where none was.
std::string left_out_text(double samples, const Dataset& data, std::string_view of);

}  // namespace dlrun::runtime
