// A step of an engine: rows come in on their own stream, the graph runs on main with the gradients of weights
// and the sums over the ranks beside it, results go out. And its parts alone on the clock.
#include <cstring>
#include <thread>

#include "runtime/cuda/plugin/engine.hpp"

namespace dlrun::cuda {
namespace {

// What batches before the last one left is added to the gradients, and is gone.
void add_kept(float* gradients, float* kept, std::size_t length, cudaStream_t stream) {
  for_each(stream, static_cast<std::int64_t>(length), [=] __device__(std::int64_t i) {
    gradients[i] = kept[i] + gradients[i];
    kept[i] = 0;
  });
}

void keep_gradients(const float* gradients, float* kept, std::size_t length, cudaStream_t stream) {
  for_each(stream, static_cast<std::int64_t>(length),
           [=] __device__(std::int64_t i) { kept[i] += gradients[i]; });
}

}  // namespace

// A stage that is not the first reads no rows.
std::size_t Engine::row_bytes() const {
  if (has_stage_before()) return 0;
  const std::size_t one = plan_.pixel_scale == nullptr ? sizeof(float) : 1;
  const DlrunCudaNode& rows = nodes_[0];
  return static_cast<std::size_t>(plan_.batch * rows.channels * rows.height * rows.width) * one;
}

std::size_t Engine::label_bytes() const {
  std::int64_t labels = plan_.batch;
  if (has_stage_before()) {
    const op::StageInput border = settings_of<op::StageInput>(nodes_[0]);
    if (border.kind == runtime::SampleKind::tokens) labels *= border.rows.positions();
  } else if (settings_of<op::Input>(nodes_[0]).kind == runtime::SampleKind::tokens) {
    labels *= nodes_[0].height;
  }
  return static_cast<std::size_t>(labels) * sizeof(std::int32_t);
}

void Engine::copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  check(cudaMemcpyAsync(to, from, bytes, kind, device_.stream), "a copy");
}

// The host must not write rows that are still on their way.
void Engine::await_staged() {
  use();
  check(cudaEventSynchronize(staged_), "sending a batch");
}
float* Engine::input() {
  await_staged();
  return plan_.pixel_scale == nullptr ? static_cast<float*>(host_rows_) : nullptr;
}
std::uint8_t* Engine::pixels() {
  await_staged();
  return plan_.pixel_scale == nullptr ? nullptr : static_cast<std::uint8_t*>(host_rows_);
}
std::int32_t* Engine::labels() {
  await_staged();
  return host_labels_;
}

std::int32_t* Engine::mixed_labels() {
  await_staged();
  return host_mixed_;
}

float* Engine::targets() {
  await_staged();
  return host_targets_;
}

void Engine::stage() {
  use();
  check(cudaStreamWaitEvent(copies_, taken_, 0), "sending a batch");
  check(cudaMemcpyAsync(staged_rows_, host_rows_, row_bytes(), cudaMemcpyHostToDevice, copies_),
        "sending a batch");
  check(cudaMemcpyAsync(staged_labels_, host_labels_, label_bytes(), cudaMemcpyHostToDevice, copies_),
        "sending labels");
  if (host_mixed_ != nullptr)
    check(cudaMemcpyAsync(staged_mixed_, host_mixed_, mixed_bytes(), cudaMemcpyHostToDevice, copies_),
          "sending other labels");
  if (host_targets_ != nullptr)
    check(cudaMemcpyAsync(staged_targets_, host_targets_, target_bytes(), cudaMemcpyHostToDevice, copies_),
          "sending targets");
  check(cudaEventRecord(staged_, copies_), "sending a batch");
}

// A copy on the device, so that one graph serves every batch; it is a hundredth of a step.
void Engine::take_rows() {
  check(cudaStreamWaitEvent(device_.stream, staged_, 0), "taking a batch");
  const void* rows =
      device_.input.bytes != nullptr ? static_cast<const void*>(device_.input.bytes) : device_.input.numbers;
  copy(const_cast<void*>(rows), staged_rows_, row_bytes(), cudaMemcpyDeviceToDevice);
  copy(device_.labels, staged_labels_, label_bytes(), cudaMemcpyDeviceToDevice);
  if (device_.mixed != nullptr) copy(device_.mixed, staged_mixed_, mixed_bytes(), cudaMemcpyDeviceToDevice);
  if (device_.targets != nullptr)
    copy(device_.targets, staged_targets_, target_bytes(), cudaMemcpyDeviceToDevice);
  check(cudaEventRecord(taken_, device_.stream), "taking a batch");
}

// What has become final on main and on the side stream; neither waits for the sums.
void Engine::send_buckets(std::size_t node) {
  if (!sums_over_ranks()) return;
  for (std::size_t which = 0; which < buckets_.size(); ++which) {
    const DlrunCudaBucket& bucket = buckets_[which];
    if (bucket.node != node) continue;
    for (const Stream* stream : {&device_.main, &device_.side}) {
      if (stream == &device_.side && !device_.side_runs) continue;
      check(cudaEventRecord(final_, stream->stream), "a bucket of gradients");
      check(cudaStreamWaitEvent(sums_, final_, 0), "a bucket of gradients");
    }
    const std::size_t end = bucket.offset + bucket.length;
    const std::size_t length = (end < gradient_count() ? end : gradient_count()) - bucket.offset;
    if (adds_kept()) add_kept(device_.gradients + bucket.offset, kept_ + bucket.offset, length, sums_);
    if (length > 0 && bucket.waits == 0) sum_bucket(which, length);
    summing_ = true;
  }
}

void Engine::sum_bucket(std::size_t bucket, std::size_t length) {
  const int code =
      peers_.scatter != nullptr
          ? peers_.scatter(peers_.context, device_.gradients, bucket, sums_)
          : peers_.sum(peers_.context, device_.gradients + buckets_[bucket].offset, length, sums_);
  told(code, "summing gradients over the ranks");
}

void Engine::join_sums() {
  if (!summing_) return;
  check(cudaEventRecord(summed_, sums_), "joining the sums");
  check(cudaStreamWaitEvent(device_.stream, summed_, 0), "joining the sums");
  summing_ = false;
}

// An operator whose output no loss depends on has nothing to pass on.
void Engine::go_back(std::size_t node) {
  if (device_.tensors[node].gradient == nullptr) return;
  for (std::size_t i = 0; i < nodes_[node].input_count; ++i)
    if (const std::size_t input = nodes_[node].inputs[i]; device_.tensors[input].again != nullptr)
      operators_[input]->restore(device_);
  operators_[node]->backward(device_);
}

void Engine::compute(DlrunCudaWork work) {
  pass_forward(work == DLRUN_CUDA_EVALUATE ? Mode::evaluate : Mode::train);
  if (work != DLRUN_CUDA_EVALUATE) pass_back(work);
}

void Engine::pass_forward(Mode mode) {
  for (Tensor& tensor : device_.tensors) tensor.begin_pass();
  check(cudaMemsetAsync(device_.result, 0, kResults * sizeof(double), device_.stream), "clearing results");
  for (const OperatorPtr& made : operators_) made->forward(device_, mode);
  join_side(device_);
}

// Gradients of buckets that wait are summed over the ranks later.
void Engine::pass_back(DlrunCudaWork work) {
  for (std::size_t node = operators_.size(); node-- > 0;) {
    go_back(node);
    if (work == DLRUN_CUDA_TRAIN) send_buckets(node);
  }
  join_side(device_);
  if (sends_beside_sums(work)) send_gradients();
  const bool sums = work == DLRUN_CUDA_TRAIN && sums_over_ranks();
  if (sums) mark(backward_done_);
  join_sums();
  if (sums) mark(all_summed_);
  if (work == DLRUN_CUDA_ACCUMULATE && adds_kept())
    keep_gradients(device_.gradients, kept_, gradient_count(), device_.stream);
  if (work == DLRUN_CUDA_TRAIN && adds_kept() && !sums_over_ranks())
    add_kept(device_.gradients, kept_, gradient_count(), device_.stream);
  // A stage's may wait for gradients of other stages.
  if (work == DLRUN_CUDA_TRAIN && !is_stage()) common_.average(device_);
}

// While a graph is captured, each of its launches is to record the event anew.
void Engine::mark(cudaEvent_t event) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(device_.stream, &status), "timing a step");
  check(cudaEventRecordWithFlags(
            event, device_.stream,
            status == cudaStreamCaptureStatusNone ? cudaEventRecordDefault : cudaEventRecordExternal),
        "timing a step");
}

void Engine::keep_facts(DlrunCudaStatistics statistics, const std::uint64_t* keys) {
  for (std::size_t i = 0; i < plan_.rng_keys; ++i) host_keys_[i] = keys[i];
  if (host_stay_ != nullptr) *host_stay_ = statistics == DLRUN_CUDA_STATISTICS_UNCHANGED ? 1 : 0;
}
void Engine::send_facts() {
  if (plan_.rng_keys > 0)
    copy(device_.keys, host_keys_, plan_.rng_keys * sizeof(std::uint64_t), cudaMemcpyHostToDevice);
  if (stay_ != nullptr) copy(stay_, host_stay_, sizeof *stay_, cudaMemcpyHostToDevice);
}
void Engine::refresh_copies() {
  if (stale_) refresh(device_, plan_.floats);
  stale_ = false;
}

void Engine::send_gradients_home(DlrunCudaWork work) {
  if (work == DLRUN_CUDA_TRAIN && plan_.gradients == DLRUN_CUDA_GRADIENTS_STAGED_THROUGH_HOST)
    copy(host_gradients_, device_.gradients, gradient_count() * sizeof(float), cudaMemcpyDeviceToHost);
}

void Engine::issue(DlrunCudaWork work) {
  send_facts();
  compute(work);
  copy(host_result_, device_.result, kResults * sizeof(double), cudaMemcpyDeviceToHost);
  send_gradients_home(work);
}

void Engine::begin(DlrunCudaWork work, DlrunCudaStatistics statistics, const std::uint64_t* keys) {
  use();
  take_place(0);
  keep_facts(statistics, keys);
  take_rows();
  refresh_copies();
  receive_values();
  timed_ = work == DLRUN_CUDA_TRAIN && sums_over_ranks();
  if (timed_) check(cudaEventRecord(begun_, device_.stream), "timing a step");
  run(programs_[work], [&] { issue(work); });
  send_values();
  if (work == DLRUN_CUDA_ACCUMULATE && peers_.keep != nullptr)
    told(peers_.keep(peers_.context, device_.gradients, gradient_count(), device_.stream),
         "keeping the gradients of a shard");
}

// A peer that died leaves sums that never end: so the host asks for it as long as it waits. Groups of ranks
// notice it one after the other.
void Engine::wait_for(const DlrunCudaPeers& peers) {
  awaits_peers_ = false;
  if (peers.lost == nullptr) return check(cudaStreamSynchronize(device_.stream), "a step");
  bool lost = false;
  for (cudaError_t now = cudaStreamQuery(device_.stream); now != cudaSuccess;
       now = cudaStreamQuery(device_.stream)) {
    if (now != cudaErrorNotReady) check(now, "a step");
    lost = peers.lost(peers.context) != 0 || lost;
    std::this_thread::yield();
  }
  if (lost || peers.lost(peers.context) != 0) throw Failure("a peer was lost");
}

DlrunCudaResult Engine::end() {
  use();
  wait_for(peers_);
  DlrunCudaResult out{host_result_[0],
                      static_cast<std::int64_t>(host_result_[1]),
                      host_result_[2],
                      host_result_[3],
                      host_result_[4],
                      host_result_[5],
                      host_result_[6],
                      0,
                      0};
  if (!timed_) return out;
  check(cudaEventElapsedTime(&out.busy, begun_, backward_done_), "timing a step");
  check(cudaEventElapsedTime(&out.waited, backward_done_, all_summed_), "timing a step");
  return out;
}

void Engine::next_scores(std::int64_t position, float* scores) {
  use();
  if (!operators_.back()->next_scores(device_, position, scores))
    throw Failure("the model has no scores of a vocabulary");
}

void Engine::profile(float* milliseconds) {
  use();
  const DlrunCudaPeers peers = peers_;
  peers_ = {};  // a rank's own work
  for (std::size_t node = 0; node < operators_.size(); ++node) {
    for (Tensor& tensor : device_.tensors) tensor.begin_pass();
    *milliseconds++ =
        milliseconds_of(device_.stream, [&] { operators_[node]->forward(device_, Mode::train); });
    *milliseconds++ = milliseconds_of(device_.stream, [&] {
      for (Tensor& tensor : device_.tensors) tensor.begin_pass();
      go_back(node);
      join_side(device_);
    });
  }
  *milliseconds++ = milliseconds_of(
      device_.stream, [&] { copy(staged_rows_, host_rows_, row_bytes(), cudaMemcpyHostToDevice); });
  *milliseconds++ = milliseconds_of(device_.stream, [&] {
    const runtime::Factors none{};
    apply(none.data(), 1, 1, 0);
  });
  *milliseconds++ = milliseconds_of(device_.stream, [&] { compute(DLRUN_CUDA_TRAIN); });
  peers_ = peers;
}

void Engine::time_sum(std::size_t count, float& issued, float& captured_time) {
  use();
  if (!sums_over_ranks()) throw Failure("this engine is alone");
  Memory memory;
  const std::size_t floats = peers_.scatter != nullptr ? plan_.floats : count;
  auto* const data = static_cast<float*>(memory.device(floats * sizeof(float), "floats to be summed"));
  const auto sum = [&] {
    if (peers_.sum != nullptr)
      return told(peers_.sum(peers_.context, data, count, sums_), "a sum over the ranks");
    for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket)
      told(peers_.scatter(peers_.context, data, bucket, sums_), "a sum over the ranks");
    told(peers_.gather(peers_.context, data, sums_), "gathering weights");
  };
  sum();
  check(cudaStreamSynchronize(sums_), "a sum over the ranks");
  captured_time = milliseconds_of(sums_, sum);
  cudaEvent_t begin = nullptr, end = nullptr;
  check(cudaEventCreate(&begin), "a timer");
  check(cudaEventCreate(&end), "a timer");
  constexpr int kTimes = 20;
  check(cudaEventRecord(begin, sums_), "a timer");
  for (int i = 0; i < kTimes; ++i) sum();
  check(cudaEventRecord(end, sums_), "a timer");
  check(cudaEventSynchronize(end), "a sum over the ranks");
  check(cudaEventElapsedTime(&issued, begin, end), "a timer");
  issued /= kTimes;
  cudaEventDestroy(begin), cudaEventDestroy(end);
}

void Engine::move(DlrunCudaArena arena, std::size_t offset, std::size_t count, void* host,
                  cudaMemcpyKind kind) {
  use();
  float* const starts[] = {device_.values, device_.statistics, device_.state[0], device_.state[1],
                           device_.state[2]};
  float* const at = starts[arena] + offset;
  if (kind == cudaMemcpyHostToDevice) {
    copy(at, host, count * sizeof(float), kind);
    stale_ = stale_ || arena == DLRUN_CUDA_VALUES;
  } else {
    copy(host, at, count * sizeof(float), kind);
  }
  if (awaits_peers_) return wait_for(peers_);
  check(cudaStreamSynchronize(device_.stream), "moving a tensor");  // whether or not a peer is there
}

}  // namespace dlrun::cuda
