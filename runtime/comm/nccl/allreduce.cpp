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
  return connect_as<NamedAllreduce, NcclAllreduce>(world, group, library);
}

}  // namespace dlrun::runtime
