// See pipeline.hpp.
#include "runtime/comm/nccl/pipeline.hpp"

#include "runtime/comm/nccl/communicator.hpp"

namespace dlrun::runtime {
namespace {

class NcclPipeline final : public DevicePipeline {
 public:
  explicit NcclPipeline(std::unique_ptr<NcclCommunicator> nccl) : nccl_(std::move(nccl)) {}

  int stage() const override { return nccl_->rank(); }
  int stages() const override { return nccl_->size(); }
  Result<void> send(const void* data, std::size_t bytes, int to, void* stream) override {
    return nccl_->send(data, bytes, to, stream);
  }
  Result<void> receive(void* data, std::size_t bytes, int from, void* stream) override {
    return nccl_->receive(data, bytes, from, stream);
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

Result<NamedPipeline> make_nccl_pipeline(Communicator& world, Communicator& group,
                                         const std::filesystem::path& library) {
  return connect_as<NamedPipeline, NcclPipeline>(world, group, library);
}

}  // namespace dlrun::runtime
