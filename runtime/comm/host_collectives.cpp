// See host_collectives.hpp.
#include "runtime/comm/host_collectives.hpp"

#include "runtime/comm/collectives.hpp"

namespace dlrun::runtime {

// Through shared memory the processors move the numbers themselves, so nothing is gained by starting early,
// and one barrier of the ranks per step costs less than one per bucket: such sums wait for wait_all().
Result<void> HostCollectives::allreduce_start(std::span<float> data, CommDtype dtype) {
  if (link_.size() == 1) return {};
  if (dtype != CommDtype::f32 && !suits_nodes() &&
      choice_.algorithm->dtypes == AllreduceAlgorithm::Dtypes::f32_only)
    return fail(Error{
        .kind = ErrorKind::usage,
        .what = fmt::format("{}, which sends f32, and the job asks for {}", choice_.text(), name_of(dtype)),
        .hint = "set the algorithm to auto or direct, or train.allreduce.dtype to f32"});
  if (shared_)
    deferred_.push_back({data, dtype});
  else
    thread_.post([this, data, dtype] {
      return traced("allreduce", data.size(), [&] { return run_allreduce(data, dtype); });
    });
  return {};
}

Result<void> HostCollectives::parameter_server_allreduce_start(std::span<const ServedPiece> pieces) {
  if (link_.size() == 1) return {};
  thread_.post([this, all = std::vector<ServedPiece>(pieces.begin(), pieces.end())] {
    std::size_t floats = 0;
    for (const ServedPiece& piece : all) floats += piece.data.size();
    return traced("parameter servers", floats, [&] {
      return nodes_ ? nodes_->serve(all, scratch_) : parameter_server_allreduce(link_, all, scratch_);
    });
  });
  return {};
}

Result<void> HostCollectives::tree_allreduce_start(const TreeTerms& data) {
  if (shared_)
    deferred_trees_.push_back(data);
  else
    thread_.post([this, data] {
      return traced("tree allreduce", data.sum.size(), [&] { return tree_allreduce(link_, data, scratch_); });
    });
  return {};
}

Result<void> HostCollectives::reduce_scatter_start(std::span<float> data,
                                                   std::span<const std::size_t> borders, CommDtype dtype) {
  TRY(check_borders(borders, data.size(), size()));
  DeferredParts parts{DeferredParts::Kind::reduce_scatter, data, {borders.begin(), borders.end()}, dtype};
  if (link_.size() == 1) return {};
  if (shared_)
    deferred_parts_.push_back(std::move(parts));
  else
    thread_.post([this, parts = std::move(parts)] {
      return traced("reduce-scatter", parts.data.size(), [&] {
        return direct_reduce_scatter(link_, parts.data, parts.borders, parts.dtype, scratch_);
      });
    });
  return {};
}

Result<void> HostCollectives::allgather_start(std::span<float> data, std::span<const std::size_t> borders) {
  TRY(check_borders(borders, data.size(), size()));
  DeferredParts parts{DeferredParts::Kind::allgather, data, {borders.begin(), borders.end()}, CommDtype::f32};
  if (link_.size() == 1) return {};
  if (shared_)
    deferred_parts_.push_back(std::move(parts));
  else
    thread_.post([this, parts = std::move(parts)] {
      return traced("allgather", parts.data.size(),
                    [&] { return direct_allgather(link_, parts.data, parts.borders); });
    });
  return {};
}

Result<void> HostCollectives::run_shared(const DeferredParts& parts) {
  const bool sums = parts.kind == DeferredParts::Kind::reduce_scatter;
  return traced(sums ? "reduce-scatter" : "allgather", parts.data.size(), [&] {
    if (sums)
      shared_->reduce_scatter(parts.data, parts.borders, parts.dtype);
    else
      shared_->allgather(parts.data, parts.borders);
    return shared_->state();
  });
}

Result<void> HostCollectives::wait_all() {
  TRY(thread_.wait());
  for (const DeferredParts& parts : deferred_parts_) TRY(run_shared(parts));
  deferred_parts_.clear();
  for (const TreeTerms& sum : deferred_trees_)
    TRY(traced("tree allreduce", sum.sum.size(), [&] { return shared_->allreduce(sum), shared_->state(); }));
  deferred_trees_.clear();
  for (const Deferred& sum : deferred_)
    TRY(traced("allreduce", sum.data.size(),
               [&] { return shared_->allreduce(sum.data, sum.dtype), shared_->state(); }));
  deferred_.clear();
  return {};
}

Result<void> HostCollectives::traced(const char* what, std::size_t floats,
                                     const std::function<Result<void>()>& sum) {
  Result<void> out;
  Trace::timed(
      trace_, Trace::Track::communication, "sum", [&] { out = sum(); },
      [&] { return fmt::format("{} of {} kB", what, (floats * sizeof(float) + 500) / 1000); });
  return out;
}

Result<void> HostCollectives::run_allreduce(std::span<float> data, CommDtype dtype) {
  if (choice_.is("mpi") && library_) return library_(data);
  if (nodes_ && choice_.is("hierarchical")) return nodes_->allreduce(data, dtype, scratch_);
  if (!choice_.is_auto() && choice_.algorithm->run != nullptr)
    return choice_.algorithm->run(link_, data, dtype, scratch_);
  return allreduce_by_size(link_, data, dtype, scratch_);
}

// In the order of the ranks: the same world gives the same bits.
Result<void> HostCollectives::allreduce(std::span<double> data) {
  std::vector<double> all(data.size() * static_cast<std::size_t>(size()));
  TRY(allgather(std::as_bytes(data), std::as_writable_bytes(std::span(all))));
  for (std::size_t i = 0; i < data.size(); ++i) {
    data[i] = all[i];
    for (std::size_t at = i + data.size(); at < all.size(); at += data.size()) data[i] += all[at];
  }
  return {};
}

Result<void> HostCollectives::reduce_scatter(std::span<const float> data, std::span<float> mine,
                                             CommDtype dtype) {
  TRY(check_reduce_scatter(data.size(), mine.size(), size()));
  return thread_.run([=, this] { return direct_reduce_scatter(link_, data, mine, dtype, scratch_); });
}

Result<void> HostCollectives::broadcast(std::span<std::byte> data, int root) {
  TRY(check_rank(root));
  return thread_.run([=, this] { return tree_broadcast(link_, data, root); });
}

Result<void> HostCollectives::allgather(std::span<const std::byte> mine, std::span<std::byte> all) {
  TRY(check_allgather(mine.size(), all.size(), size()));
  return thread_.run([=, this] { return direct_allgather(link_, mine, all); });
}

// By flags where there are some: through the thread, ranks would leave it apart by what its wake-ups take.
Result<void> HostCollectives::barrier() {
  if (!shared_) return thread_.run([this] { return dissemination_barrier(link_); });
  TRY(thread_.wait());
  shared_->barrier();
  return shared_->state();
}

Result<void> HostCollectives::send(std::span<const std::byte> data, int to) {
  TRY(check_peer(to));
  return thread_.run([=, this]() -> Result<void> { return link_.wait(TRY(link_.send_start(data, to))); });
}

Result<void> HostCollectives::receive(std::span<std::byte> data, int from) {
  TRY(check_peer(from));
  return thread_.run(
      [=, this]() -> Result<void> { return link_.wait(TRY(link_.receive_start(data, from))); });
}

Result<void> HostCollectives::exchange_start(std::function<Result<void>(Transport& link)> exchange) {
  thread_.post([this, exchange = std::move(exchange)] { return exchange(link_); });
  return {};
}

Result<void> HostCollectives::check_rank(int rank) const {
  if (rank >= 0 && rank < size()) return {};
  return fail(ErrorKind::internal, "rank {} is out of range [0, {}]", rank, size() - 1);
}

Result<void> HostCollectives::check_peer(int rank) const {
  TRY(check_rank(rank));
  if (rank != this->rank()) return {};
  return fail(ErrorKind::internal, "rank {} cannot send a message to itself", rank);
}

}  // namespace dlrun::runtime
