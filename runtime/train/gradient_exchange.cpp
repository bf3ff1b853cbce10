// See gradient_exchange.hpp.
#include "runtime/train/gradient_exchange.hpp"

#include <cassert>

namespace dlrun::runtime {

Result<GradientExchange> GradientExchange::make(const TrainSpec& spec, Engine& engine, Communicator& comm,
                                                std::optional<int> shards, const ModelGroups& groups) {
  GradientExchange out(spec, engine, comm);
  if (shards)
    out.sums_ = TRY(ShardSums::make({*shards, spec.accumulate}, engine, comm));
  else if (spec.accumulate > 1)
    out.accumulated_ = TRY(AccumulatedGradients::make(engine));
  out.groups_ = groups;
  if (groups.servers != nullptr)
    out.loads_ = groups.servers->loads();
  else if (spec.parameter_server)
    TRY(out.choose_servers(*spec.parameter_server));
  if (groups.tensor != nullptr)
    out.tensor_.emplace(engine, TensorAgreement::Groups{*groups.tensor, comm}, out.sums());
  if (groups.pipeline != nullptr) out.stages_.emplace(engine, *groups.pipeline);
  return out;
}

Result<void> GradientExchange::choose_servers(const ParameterServerSpec& spec) {
  const int servers = spec.servers.value_or(comm_->size());
  if (servers > comm_->size())
    return fail(Error{.kind = ErrorKind::input,
                      .what = fmt::format("train.parameter-server.servers is {}, but the job has {} rank{}",
                                          servers, comm_->size(), comm_->size() == 1 ? "" : "s"),
                      .hint = "a server runs inside a rank: set fewer servers or more ranks"});
  const std::vector<GradientSlice> tensors = engine_->gradient_slices();
  assert(!tensors.empty());  // a model learns something
  slices_ = place(tensors, spec.placement, servers);
  loads_ = loads(slices_, servers, comm_->size(), dtype_);
  for (PlacedSlice& slice : slices_) slice.server = rank_of_server(slice.server, servers, comm_->size());
  return {};
}

ShardsOfRank GradientExchange::shards() const {
  if (!sums_) return {comm_->size(), {comm_->rank(), comm_->rank() + 1}};
  const int shards = sums_->of().shards;
  return {shards, shards_of(shards, comm_->rank(), comm_->size())};
}

ShardsOfRank GradientExchange::batches() const {
  if (sums_) return {sums_->of().all(), sums_->range()};
  const int first = comm_->rank() * accumulate_;
  return {comm_->size() * accumulate_, {first, first + accumulate_}};
}

Result<void> GradientExchange::regroup() {
  if (sums_) TRY(check_shards(sums_->of().shards, comm_->size()));
  if (connect_devices_) TRY(connect_devices_());  // what is left to the host depends on it
  if (sums_) sums_ = TRY(ShardSums::make(sums_->of(), *engine_, *comm_));
  return {};
}

Result<void> GradientExchange::begin(int batch) {
  const ShardRange own = batches().own;
  if (batch == own.begin && sums_) sums_->begin();
  if (batch == own.begin && accumulated_) accumulated_->begin();
  if (DeviceAccumulating* const device = engine_->accumulating())
    device->set_batch(batch + 1 == own.end ? DeviceAccumulating::Batch::last
                                           : DeviceAccumulating::Batch::earlier);
  return sums_ ? engine_->set_shard(batch) : Result<void>{};
}

std::span<float> GradientExchange::gradients(std::size_t bucket) const {
  const Bucket& which = engine_->buckets()[bucket];
  const std::span<float> all = engine_->gradients();
  const std::size_t end =
      is_last(bucket) ? all.size() - engine_->spare_slots().size() : which.offset + which.length;
  return all.subspan(which.offset, end - which.offset);
}

// The last bucket of a plain allreduce waits for the spare slots: one sum less.
Result<void> GradientExchange::start(std::size_t bucket) {
  if (sums_) return is_last(bucket) ? Result<void>{} : sums_->start(gradients(bucket));
  if (accumulated_) accumulated_->add_to(gradients(bucket));
  return stages_ && stages_->is_tied(bucket) ? Result<void>{} : send(bucket);
}

Result<void> GradientExchange::send(std::size_t bucket) {
  if (exchange_ == Exchange::alone) return {};
  if (groups_.servers != nullptr)
    return groups_.servers->start({engine_->buckets()[bucket].offset, gradients(bucket).size()});
  if (scatters())
    return comm_->reduce_scatter_start(gradients(bucket), engine_->sharded()->borders()[bucket], dtype_);
  if (travels_whole()) return is_last(bucket) ? Result<void>{} : comm_->allreduce_start(gradients(bucket));
  if (loads_.empty()) return comm_->allreduce_start(gradients(bucket), dtype_);
  const std::size_t begin = engine_->buckets()[bucket].offset, end = begin + gradients(bucket).size();
  std::vector<ServedPiece> pieces;
  for (const PlacedSlice& slice : slices_)
    if (slice.offset >= begin && slice.offset < end)
      pieces.push_back({engine_->gradients().subspan(slice.offset, slice.length), slice.server, dtype_});
  return comm_->parameter_server_allreduce_start(pieces);
}

// Another stage's gradients are there only once its backward is done.
Result<void> GradientExchange::start_tied() {
  TRY(stages_->add_tied());
  for (std::size_t bucket = 0; bucket < engine_->buckets().size(); ++bucket)
    if (stages_->is_tied(bucket)) TRY(send(bucket));
  return {};
}

Result<void> GradientExchange::finish() {
  if (stages_) TRY(start_tied());
  TRY(finish_over_data());
  if (tensor_) TRY(tensor_->agree());
  if (!stages_) return {};
  TRY(stages_->share_tied(*comm_, sums()));
  return stages_->share_totals();
}

// Of some gradients each rank has the sums of all, of the others a part, of its own.
Result<double> GradientExchange::square_sum() const {
  const std::span<const float> arena = engine_->gradients();
  const bool has_all = sums() == ParameterUpdate::Sums::all;
  double common = 0, own = 0;
  for (const GradientSlice& slice : engine_->gradient_slices()) {
    if (stages_ && !stages_->counts(slice)) continue;
    const bool is_common = slice.of != GradientOf::part && (tensor_ || has_all);
    const Bucket part = is_common || has_all ? Bucket{slice.offset, slice.length}
                                             : summed_part(*engine_, slice, comm_->rank());
    (is_common ? common : own) += square_sum_of(arena.subspan(part.offset, part.length));
  }
  if (!has_all) TRY(comm_->allreduce(std::span(&own, 1)));
  if (tensor_) TRY(groups_.tensor->allreduce(std::span(&own, 1)));
  return stages_ ? stages_->sum(common + own) : common + own;
}

Result<void> GradientExchange::finish_over_data() {
  if (sums_) {
    const bool on_device = engine_->reducing() != nullptr;
    TRY(sums_->start(on_device ? engine_->spare_slots()
                               : engine_->gradients().subspan(engine_->buckets().back().offset)));
    return comm_->wait_all();
  }
  if (accumulated_) accumulated_->add_to(engine_->spare_slots());
  if (exchange_ == Exchange::alone) return {};
  // Those of a step that others need not take at once are the rank's own.
  if (groups_.servers != nullptr && groups_.servers->staleness() > 0) return comm_->wait_all();
  const std::span<float> last = engine_->gradients().subspan(engine_->buckets().back().offset);
  const bool whole = travels_whole() && !scatters() && engine_->reducing() == nullptr;
  TRY(comm_->allreduce_start(whole ? last : engine_->spare_slots()));
  return comm_->wait_all();
}

}  // namespace dlrun::runtime
