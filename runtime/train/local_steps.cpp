// See local_steps.hpp.
#include "runtime/train/local_steps.hpp"

#include <utility>

#include "runtime/train/evaluation.hpp"

namespace dlrun::runtime {

bool LocalSteps::is_local(const Position& position) const {
  if (spec_.from.unit == Interval::Unit::steps)
    return static_cast<double>(position.step) >= spec_.from.amount;
  const double epochs = static_cast<double>(position.epoch) +
                        static_cast<double>(position.seen) / static_cast<double>(samples_);
  return epochs >= spec_.from.amount;
}

Result<void> LocalSteps::begin() {
  return std::exchange(began_, true) ? Result<void>{} : share_statistics(engine_, comm_);
}

void LocalSteps::add(const StepTotals& own) {
  ++steps_;
  own_.totals.add(own.totals);
  own_.requests = own.requests;  // what was asked for is repeated until all are told
}

Result<StepTotals> LocalSteps::average() {
  std::size_t state = 0;
  for (const TensorInfo& tensor : engine_.tensors()) state += tensor.elements();
  all_.resize(state + totals_slots);
  float* at = all_.data();
  for (std::size_t i = 0; i < engine_.tensors().size(); at += engine_.tensors()[i++].elements())
    TRY(engine_.read_tensor(i, {at, engine_.tensors()[i].elements()}));
  const std::span<float> totals = std::span(all_).subspan(state);
  store(own_, totals);
  TRY(comm_.allreduce(all_));
  const auto ranks = static_cast<float>(comm_.size());
  at = all_.data();
  for (std::size_t i = 0; i < engine_.tensors().size(); ++i) {
    const std::span<float> tensor(at, engine_.tensors()[i].elements());
    for (float& number : tensor) number /= ranks;
    TRY(engine_.write_tensor(i, tensor));
    at += tensor.size();
  }
  own_ = {};
  steps_ = 0;
  return load(totals);
}

}  // namespace dlrun::runtime
