// See stage_agreement.hpp.
#include "runtime/train/stage_agreement.hpp"

#include <algorithm>

#include "runtime/train/gradient_parts.hpp"
#include "runtime/train/number_sums.hpp"

namespace dlrun::runtime {

StageAgreement::StageAgreement(Engine& engine, Communicator& pipeline)
    : engine_(&engine), pipeline_(&pipeline), tied_(engine.gradient_slices()) {
  const std::vector<std::string>& names = engine.staged()->tied();
  std::erase_if(tied_, [&names](const GradientSlice& slice) {
    return std::find(names.begin(), names.end(), slice.name) == names.end();
  });
}

bool StageAgreement::is_tied(std::size_t bucket) const {
  const Bucket& of = engine_->buckets()[bucket];
  return std::any_of(tied_.begin(), tied_.end(), [&of](const GradientSlice& slice) {
    return slice.offset >= of.offset && slice.offset < of.offset + of.length;
  });
}

bool StageAgreement::counts(const GradientSlice& slice) const {
  return is_first() || std::none_of(tied_.begin(), tied_.end(), [&slice](const GradientSlice& tied) {
           return tied.offset == slice.offset;
         });
}

// As one message.
void StageAgreement::take_tied() {
  together_.clear();
  append_parts(engine_->gradients(), tied_, together_);
}

void StageAgreement::put_tied() {
  put_parts(together_, tied_, engine_->gradients());
}

Result<void> StageAgreement::add_tied() {
  if (tied_.empty()) return {};
  take_tied();
  if (is_last()) return pipeline_->send(tied_bytes(), 0);
  received_.resize(together_.size());
  TRY(pipeline_->receive(std::as_writable_bytes(std::span(received_)), pipeline_->size() - 1));
  add_numbers(together_.data(), received_.data(), together_.size());
  put_tied();
  return {};
}

Result<void> StageAgreement::share_tied(Communicator& data, ParameterUpdate::Sums sums) {
  if (tied_.empty()) return {};
  if (is_last()) {
    TRY(pipeline_->receive(tied_bytes(), 0));
    put_tied();
    return {};
  }
  if (sums == ParameterUpdate::Sums::own_part) TRY(gather_sums(*engine_, tied_, data));
  take_tied();
  return pipeline_->send(tied_bytes(), pipeline_->size() - 1);
}

Result<void> StageAgreement::share_totals() {
  return pipeline_->allreduce(engine_->spare_slots());
}

Result<double> StageAgreement::sum(double own) const {
  TRY(pipeline_->allreduce(std::span(&own, 1)));
  return own;
}

Result<std::string> joined_text(Communicator& group, const std::string& mine) {
  const std::uint64_t length = mine.size();
  std::vector<std::uint64_t> lengths(static_cast<std::size_t>(group.size()));
  TRY(group.allgather(std::as_bytes(std::span(&length, 1)), std::as_writable_bytes(std::span(lengths))));
  std::string out;
  for (int rank = 0; rank < group.size(); ++rank) {
    std::string part = rank == group.rank() ? mine : std::string();
    part.resize(lengths[static_cast<std::size_t>(rank)]);
    TRY(group.broadcast(std::as_writable_bytes(std::span(part)), rank));
    out += part;
  }
  return out;
}

}  // namespace dlrun::runtime
