// See pipeline_links.hpp.
#include "runtime/train/pipeline_links.hpp"

namespace dlrun::runtime {

Result<void> PipelineLinks::receive_values(std::span<std::byte> values) {
  TRY(group_->receive(values, group_->rank() - 1));
  turns().values_came();
  if (waiting_.empty()) return {};
  TRY(group_->send(waiting_, group_->rank() - 1));
  waiting_.clear();
  return {};
}

Result<void> PipelineLinks::send_gradients(std::span<const std::byte> gradients) {
  if (!turns().gradient_waits()) return group_->send(gradients, group_->rank() - 1);
  waiting_.assign(gradients.begin(), gradients.end());
  return {};
}

Result<void> PipelineLinks::send_values(std::span<const std::byte> values) {
  return group_->send(values, group_->rank() + 1);
}

Result<void> PipelineLinks::receive_gradients(std::span<std::byte> gradients) {
  return group_->receive(gradients, group_->rank() + 1);
}

}  // namespace dlrun::runtime
