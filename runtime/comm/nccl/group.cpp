// See group.hpp.
#include "runtime/comm/nccl/group.hpp"

#include "runtime/comm/nccl/communicator.hpp"

namespace dlrun::runtime {
namespace {

class NcclGroup final : public DeviceGroup {
 public:
  explicit NcclGroup(std::unique_ptr<NcclCommunicator> nccl) : nccl_(std::move(nccl)) {}

  int rank() const override { return nccl_->rank(); }
  int ranks() const override { return nccl_->size(); }
  Result<void> sum(void* data, std::size_t count, DeviceNumber type, void* stream) override {
    return nccl_->allreduce(data, count, type, stream);
  }
  Result<void> reduce_scatter(float* data, std::span<const std::size_t> borders, void* stream) override {
    return nccl_->reduce_scatter(data, borders, stream);
  }
  Result<void> reduce_scatter(const void* data, void* mine, std::size_t count, DeviceNumber type,
                              void* stream) override {
    return nccl_->reduce_scatter(data, mine, count, type, stream);
  }
  Result<void> allgather(float* data, std::span<const std::size_t> borders, void* stream) override {
    return nccl_->allgather(data, borders, stream);
  }
  Result<void> exchange(const void* mine, void* all, std::size_t bytes, void* stream) override {
    return nccl_->allgather(mine, all, bytes, stream);
  }
  Result<void> together(const std::function<Result<void>()>& calls) override {
    return nccl_->together(calls);
  }
  Result<void> check() override { return nccl_->check(); }

 private:
  std::unique_ptr<NcclCommunicator> nccl_;
};

}  // namespace

Result<NamedGroup> make_nccl_group(Communicator& world, Communicator& group,
                                   const std::filesystem::path& library) {
  return connect_as<NamedGroup, NcclGroup>(world, group, library);
}

}  // namespace dlrun::runtime
