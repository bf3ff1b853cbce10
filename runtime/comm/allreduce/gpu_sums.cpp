// See gpu_sums.hpp.
#include "runtime/comm/allreduce/gpu_sums.hpp"

#include <algorithm>
#include <vector>

namespace dlrun::runtime {
namespace {

struct OfRank {
  GpuSums before;
  bool has_nccl;
};

bool any(const std::vector<OfRank>& all, GpuSums before) {
  return std::any_of(all.begin(), all.end(), [&](const OfRank& one) { return one.before == before; });
}

Result<AgreedSums> refuse(const OfRank& own, std::ptrdiff_t without, const Result<void>& nccl) {
  if (own.before != GpuSums::unconnected)
    return fail(ErrorKind::lost, "rank {} has no NCCL, and the GPUs that join need it", without);
  return fail(Error{.kind = ErrorKind::unavailable,
                    .what = "the GPUs of this run are summed by NCCL, and " +
                            (nccl ? fmt::format("rank {} has none", without) : nccl.error().what),
                    .hint = "install NCCL (libnccl.so.2) on all nodes"});
}

}  // namespace

Result<AgreedSums> agree_on_sums(Communicator& world, GpuSums before, const Result<void>& nccl) {
  const OfRank own{before, nccl.has_value()};
  std::vector<OfRank> all(static_cast<std::size_t>(world.size()));
  TRY(world.allgather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all))));
  const bool on_host = any(all, GpuSums::through_host);
  const bool is_first = !on_host && !any(all, GpuSums::on_device);
  AgreedSums out{.how = on_host ? GpuSums::through_host : GpuSums::on_device,
                 .why = {},
                 .some_join = !is_first && any(all, GpuSums::unconnected)};
  const auto without = std::find_if(all.begin(), all.end(), [](const OfRank& one) { return !one.has_nccl; });
  if (on_host || all.size() == 1 || without == all.end()) return out;
  const auto rank = without - all.begin();
  if (!is_first) return refuse(own, rank, nccl);
  out.how = GpuSums::through_host;
  out.why = nccl ? fmt::format("rank {} cannot use NCCL; its log says why", rank) : nccl.error().what;
  return out;
}

}  // namespace dlrun::runtime
