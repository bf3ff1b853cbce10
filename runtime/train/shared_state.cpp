// See shared_state.hpp.
#include "runtime/train/shared_state.hpp"

#include <cstring>
#include <type_traits>

namespace dlrun::runtime {
namespace {

template <class Body>
Result<void> for_each_tensor(Engine& engine, float* place, Body body) {
  for (std::size_t i = 0; i < engine.tensors().size(); ++i) {
    const std::size_t count = engine.tensors()[i].elements();
    TRY(body(i, std::span(place, count)));
    place += count;
  }
  return {};
}

}  // namespace

SharedState::SharedState(Engine& engine) : engine_(engine) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < engine.tensors().size(); ++i)
    if (engine.tensors()[i].role == TensorInfo::Role::statistic) {
      statistics_.push_back(i);
      count += engine.tensors()[i].elements();
    }
  if (const DeviceStatistics* const all = engine_.device_statistics()) count = all->statistic_floats();
  before_.resize(count);
  after_.resize(count);
}

Result<Standing> SharedState::share(Communicator& comm, int source, const Standing& mine) {
  static_assert(std::is_trivially_copyable_v<Standing>);
  std::size_t bytes = sizeof(Standing);
  for (const TensorInfo& tensor : engine_.tensors()) bytes += tensor.elements() * sizeof(float);
  if (image_.size() < bytes) image_ = TRY(HugeBuffer::make(bytes));
  auto* const tensors = reinterpret_cast<float*>(image_.data() + sizeof(Standing));
  if (comm.rank() == source) {
    std::memcpy(image_.data(), &mine, sizeof mine);
    TRY(for_each_tensor(engine_, tensors,
                        [&](std::size_t i, std::span<float> at) { return engine_.read_tensor(i, at); }));
  }
  TRY(comm.broadcast({image_.data(), bytes}, source));
  Standing there;
  std::memcpy(&there, image_.data(), sizeof there);
  if (there.results.done <= mine.results.done) return there;
  TRY(for_each_tensor(engine_, tensors,
                      [&](std::size_t i, std::span<float> at) { return engine_.write_tensor(i, at); }));
  return there;
}

Result<void> SharedState::read_statistics(std::vector<float>& into) const {
  if (const DeviceStatistics* const all = engine_.device_statistics()) return all->read_statistics(into);
  float* at = into.data();
  for (const std::size_t i : statistics_) {
    TRY(engine_.read_tensor(i, {at, engine_.tensors()[i].elements()}));
    at += engine_.tensors()[i].elements();
  }
  return {};
}

Result<void> SharedState::write_statistics(const std::vector<float>& from) {
  if (DeviceStatistics* const all = engine_.device_statistics()) return all->write_statistics(from);
  const float* at = from.data();
  for (const std::size_t i : statistics_) {
    TRY(engine_.write_tensor(i, {at, engine_.tensors()[i].elements()}));
    at += engine_.tensors()[i].elements();
  }
  return {};
}

Result<void> SharedState::begin_step(Attempt attempt) {
  if (statistics_.empty()) return {};
  in_step_ = true;
  return attempt == Attempt::first ? read_statistics(before_) : write_statistics(before_);
}

Result<void> SharedState::share_statistics(Communicator& comm) {
  if (statistics_.empty()) return {};
  if (comm.rank() == 0) TRY(read_statistics(after_));
  TRY(comm.broadcast(std::as_writable_bytes(std::span(after_)), 0));
  in_step_ = false;
  return comm.rank() == 0 ? Result<void>{} : write_statistics(after_);
}

}  // namespace dlrun::runtime
