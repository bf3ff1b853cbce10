// See nccl_sum.hpp.
#include "runtime/comm/nccl/allreduce.hpp"

#include <numeric>
#include <vector>

#include "runtime/comm/nccl/ranks.hpp"

namespace dlrun::runtime {

namespace {

class OverNccl final : public DeviceAllreduce {
 public:
  explicit OverNccl(std::unique_ptr<NcclRanks> ranks) : ranks_(std::move(ranks)) {}

  Result<void> sum(float* data, std::size_t count, void* stream) override {
    TRY(ranks_->state());
    return ranks_->nccl().sum_floats(data, count, ranks_->comm(), stream);
  }
  Result<void> check() override { return ranks_->check(); }

 private:
  std::unique_ptr<NcclRanks> ranks_;
};

}  // namespace

Result<NamedAllreduce> make_nccl_sum(Communicator& world, const std::filesystem::path& library) {
  std::vector<int> all(static_cast<std::size_t>(world.size()));
  std::iota(all.begin(), all.end(), 0);
  auto ranks = TRY(NcclRanks::connect(world, all, library));
  const std::string name = ranks->name();
  return NamedAllreduce{std::make_unique<OverNccl>(std::move(ranks)), name};
}

}  // namespace dlrun::runtime
