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
  if (std::exchange(began_, true)) return {};
  if (DeviceReducing* const device = engine_.reducing()) device->set_sums(DeviceReducing::Sums::alone);
  return share_statistics(engine_, comm_);
}

void LocalSteps::add(const StepTotals& own) {
  ++steps_;
  own_.totals.add(own.totals);
  own_.requests = own.requests;  // what was asked for is repeated until all are told
}

Result<StepTotals> LocalSteps::average() {
  DeviceReducing* const device = engine_.reducing();
  TRY(device != nullptr && device->averages_state() ? average_on_device(*device) : average_here());
  own_ = {};
  steps_ = 0;
  return load(std::span(all_).last(totals_slots));
}

// The device first: who waits there hears of a rank that is lost.
Result<void> LocalSteps::average_on_device(DeviceReducing& device) {
  TRY(device.average_state(comm_.size()));
  all_.resize(totals_slots);
  store(own_, all_);
  return comm_.allreduce(all_);
}

Result<void> LocalSteps::average_here() {
  std::size_t state = 0;
  for (const TensorInfo& tensor : engine_.tensors()) state += tensor.elements();
  all_.resize(state + totals_slots);
  float* at = all_.data();
  for (std::size_t i = 0; i < engine_.tensors().size(); at += engine_.tensors()[i++].elements())
    TRY(engine_.read_tensor(i, {at, engine_.tensors()[i].elements()}));
  store(own_, std::span(all_).subspan(state));
  TRY(comm_.allreduce(all_));
  const auto ranks = static_cast<float>(comm_.size());
  at = all_.data();
  for (std::size_t i = 0; i < engine_.tensors().size(); ++i) {
    const std::span<float> tensor(at, engine_.tensors()[i].elements());
    for (float& number : tensor) number /= ranks;
    TRY(engine_.write_tensor(i, tensor));
    at += tensor.size();
  }
  return {};
}

}  // namespace dlrun::runtime
