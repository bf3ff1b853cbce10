// See allreduce.hpp.
#include "runtime/comm/nccl/allreduce.hpp"

#include "runtime/comm/nccl/communicator.hpp"

namespace dlrun::runtime {
namespace {

class NcclAllreduce final : public DeviceAllreduce {
 public:
  explicit NcclAllreduce(std::unique_ptr<NcclCommunicator> nccl) : nccl_(std::move(nccl)) {}

  Result<void> sum(float* data, std::size_t count, void* stream) override {
    return nccl_->allreduce(data, count, stream);
  }
  bool is_exact() const override { return true; }
  Result<void> check() override { return nccl_->check(); }

 private:
  std::unique_ptr<NcclCommunicator> nccl_;
};

}  // namespace

Result<NamedAllreduce> make_nccl_allreduce(Communicator& world, Communicator& group,
                                           const std::filesystem::path& library) {
  auto nccl = TRY(NcclCommunicator::connect(world, group, library));
  const std::string name = nccl->name();
  return NamedAllreduce{std::make_unique<NcclAllreduce>(std::move(nccl)), name};
}

}  // namespace dlrun::runtime
