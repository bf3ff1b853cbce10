// A stage of a pipeline: the halves of a step, between which those of other batches come, and the places
// where batches keep what their backward reads. What the stages send each other goes around the graphs of the
// halves, on main: so a graph does not depend on whose turn it is.
#include "runtime/cuda/plugin/engine.hpp"

namespace dlrun::cuda {
namespace {

bool is(const DlrunCudaNode& node, std::string_view kind) {
  return node.kind == kind;
}

std::size_t bytes_of(const Device& device, std::size_t node) {
  return static_cast<std::size_t>(device.tensors[node].elements) * device.size();
}

// Who has no stages beside it yet cannot take a step.
template <class Call>
Call* connected(Call* call) {
  if (call == nullptr) throw Failure("the stages of the pipeline are not connected");
  return call;
}

}  // namespace

bool Engine::has_stage_before() const {
  return is(nodes_.front(), "stage_input");
}
bool Engine::has_stage_behind() const {
  return is(nodes_.back(), "stage_output");
}

// Operators keep masks, figures and the like of a batch in memory of their own: so each place has its own
// operators. What libraries need to work on a stream, and gradients, all places share.
void Engine::make_places(const DlrunCudaPlan& plan) {
  places_.resize(plan.places == 0 ? 1 : plan.places);
  for (place_ = 0;; ++place_) {
    make_tensors(plan);
    make_input();
    check(cudaDeviceSynchronize(), "clearing memory");
    make_operators(plan);
    if (place_ + 1 == places_.size()) break;
    swap_with(places_[place_]);
  }
  take_place(0);
}

void Engine::swap_with(Place& place) {
  std::swap(device_.tensors, place.tensors);
  std::swap(device_.bias_sums, place.bias_sums);
  std::swap(device_.input, place.input);
  std::swap(device_.keys, place.keys);
  std::swap(operators_, place.operators);
}

void Engine::take_place(std::size_t place) {
  if (place == place_) return;
  if (place >= places_.size()) throw Failure("the stage has no room for so many batches at once");
  swap_with(places_[place_]);
  swap_with(places_[place]);
  place_ = place;
}

void Engine::receive_values() {
  if (!has_stage_before()) return;
  const auto call = connected(peers_.stage.receive_values);
  told(call(peers_.stage.context, device_.tensors.front().value, bytes_of(device_, 0), device_.stream),
       "receiving from the stage before");
}

void Engine::send_values() {
  if (!has_stage_behind()) return;
  const auto call = connected(peers_.stage.send_values);
  const std::size_t last = nodes_.size() - 1;
  told(call(peers_.stage.context, device_.tensors[last].value, bytes_of(device_, last), device_.stream),
       "sending to the stage behind");
}

// Nobody else reads the value that goes there, so this is its whole gradient.
void Engine::receive_gradients() {
  if (!has_stage_behind()) return;
  const auto call = connected(peers_.stage.receive_gradients);
  const std::size_t sent = nodes_.back().inputs[0];
  told(call(peers_.stage.context, device_.tensors[sent].gradient, bytes_of(device_, sent), device_.stream),
       "receiving from the stage behind");
}

// The stage before waits for the last batch's gradient, and must not wait for these sums, too. No values come
// any more, so it is this gradient's turn, also whenever the graph is launched.
bool Engine::sends_beside_sums(DlrunCudaWork work) const {
  return has_stage_before() && work == DLRUN_CUDA_TRAIN && sums_over_ranks();
}

void Engine::send_gradients() {
  if (!has_stage_before()) return;
  const auto call = connected(peers_.stage.send_gradients);
  told(call(peers_.stage.context, device_.tensors.front().gradient, bytes_of(device_, 0), device_.stream),
       "sending to the stage before");
}

void Engine::begin_half(DlrunCudaHalf half, std::size_t place, const std::uint64_t* keys) {
  use();
  take_place(place);
  timed_ = false;
  if (half == DLRUN_CUDA_FORWARD) return begin_forward(keys);
  begin_backward(half == DLRUN_CUDA_BACKWARD ? DLRUN_CUDA_TRAIN : DLRUN_CUDA_ACCUMULATE,
                 places_[place_].halves[half]);
}

void Engine::begin_forward(const std::uint64_t* keys) {
  Place& place = places_[place_];
  keep_facts(DLRUN_CUDA_STATISTICS_UPDATED, keys);
  take_rows();
  refresh_copies();
  receive_values();
  run(place.halves[DLRUN_CUDA_FORWARD], [&] {
    send_facts();
    pass_forward(Mode::train);
    copy(host_result_, device_.result, kResults * sizeof(double), cudaMemcpyDeviceToHost);
    place.written.clear();
    for (const Tensor& tensor : device_.tensors) place.written.push_back(tensor.written);
  });
  send_values();
}

void Engine::begin_backward(DlrunCudaWork work, Program& program) {
  const Place& place = places_[place_];
  receive_gradients();
  run(program, [&] {
    for (std::size_t i = 0; i < device_.tensors.size(); ++i) {
      device_.tensors[i].begin_pass();
      device_.tensors[i].written = place.written[i];
    }
    pass_back(work);
  });
  if (!sends_beside_sums(work)) send_gradients();
  if (work != DLRUN_CUDA_TRAIN) return;
  told(connected(peers_.stage.finish)(peers_.stage.context, device_.gradients, device_.stream),
       "adding the stages' gradients");
  common_.average(device_);
  send_gradients_home(work);
}

}  // namespace dlrun::cuda
