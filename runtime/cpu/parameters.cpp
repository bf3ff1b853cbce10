// Arenas, copies in other layouts, updates, and conversion to the plain layout.
#include "runtime/cpu/parameters.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/base/name_pattern.hpp"
#include "runtime/cpu/kernels/kernels.hpp"
#include "runtime/cpu/measured.hpp"
#include "runtime/cpu/parallel.hpp"
#include "runtime/optim/average.hpp"

namespace dlrun::runtime {

namespace {

// The row length where `copy` is bf16 rows of the matrix `arena` interleaved by two, padded the same; else 0.
// That is what bf16 products want, and worth its own code: oneDNN's reorder of it is slow.
std::size_t interleaved_row(const Desc& arena, const Desc& copy) {
  const Blocking from = blocking_of(arena), to = blocking_of(copy);
  using Axes = std::vector<std::int64_t>;
  if (type_of(copy) != DataType::bf16 || from.dims.size() != 2) return 0;
  const bool rows = from.inner_axes == Axes{1, 0};
  const bool pairs = to.inner_axes == Axes{1, 0, 1} && to.inner_blocks[2] == 2;
  if (!rows || !pairs || from.inner_blocks[1] != to.inner_blocks[1] || to.inner_blocks[0] < 1) return 0;
  const std::int64_t row = from.inner_blocks[1], inputs = from.padded_dims[1];
  // Column blocks follow each other without a gap, so that a block's height does not matter.
  const bool dense = row % 16 == 0 && to.padded_dims == from.padded_dims &&
                     from.strides[1] == from.inner_blocks[0] * row && from.strides[0] == inputs * row &&
                     to.strides[1] == 2 * to.inner_blocks[0] * row && to.strides[0] == inputs * row;
  return dense ? static_cast<std::size_t>(row) : 0;
}

std::size_t floats_of(const Parameter& parameter) {
  return parameter.layout.get_size() / sizeof(float);
}

// What a reduce-scatter leaves in the parts of other ranks is not said, and no backward pass writes padding.
void clear_padding(Buffer& gradient, std::size_t numbers) {
  std::fill(gradient.floats() + numbers, gradient.floats() + gradient.bytes / sizeof(float), 0.0F);
}

}  // namespace

Parameter* Parameters::declare(Parameter parameter) {
  return &parameters_.emplace_back(std::move(parameter));
}

Statistic* Parameters::declare(Statistic statistic) {
  return &statistics_.emplace_back(std::move(statistic));
}

Parameter* Parameters::find_parameter(const std::string& name) {
  for (Parameter& parameter : parameters_)
    if (parameter.name == name) return &parameter;
  return nullptr;
}

Statistic* Parameters::find_statistic(const std::string& name) {
  for (Statistic& statistic : statistics_)
    if (statistic.name == name) return &statistic;
  return nullptr;
}

void Parameters::add_to_gradient(Parameter* parameter, Buffer* gradient, const Desc& layout,
                                 const dnnl::engine& engine) {
  dnnl::primitive_attr sum = attributes();
  dnnl::post_ops after;
  after.append_sum(1.0F);
  sum.set_post_ops(after);
  const dnnl::reorder::primitive_desc desc(engine, layout, engine, parameter->layout, sum);
  parts_.push_back(
      {parameter, Call(dnnl::reorder(desc), {{DNNL_ARG_FROM, {layout, gradient}},
                                             {DNNL_ARG_TO, {parameter->layout, &parameter->gradient}}})});
}

void Parameters::accumulate_shared_gradients(std::size_t node, const dnnl::stream& stream) {
  for (Part& part : parts_)
    if (part.of->node == node) part.add.run(stream);
}

void Parameters::clear_frozen_gradients(std::size_t node) {
  for (Parameter* parameter : frozen_)
    if (parameter->node == node) std::memset(parameter->gradient.data, 0, parameter->gradient.bytes);
}

Buffer* Parameters::as(Parameter* parameter, const Desc& wanted) {
  if (wanted == parameter->layout) return &parameter->value;
  for (Copy& copy : copies_)
    if (copy.from == parameter && copy.layout == wanted) return &copy.value;
  return &copies_.emplace_back(Copy{parameter, wanted, {}, interleaved_row(parameter->layout, wanted), {}})
              .value;
}

void Parameters::declare_layout() {
  for (const Parameter& parameter : parameters_)
    layout_.declare(ParameterSpec{.name = parameter.name,
                                  .shape = parameter.shape,
                                  .node = parameter.node,
                                  .floats = floats_of(parameter),
                                  .form = text(parameter.layout),
                                  .bound = parameter.bound,
                                  .constant = parameter.constant,
                                  .of = parameter.of,
                                  .cuts = cuts_of(whole_path(parameter), parameter.shape),
                                  .weights = parameter.weights,
                                  .gradient = parameter.gradient_of});
  for (const Statistic& statistic : statistics_)
    layout_.declare(StatisticSpec{statistic.name, statistic.elements, statistic.constant});
}

Result<void> Parameters::lay_out(const EngineOptions& options) {
  optimizer_ = options.optimizer;
  for (Parameter& parameter : parameters_) {
    parameter.frozen = matches_any(options.frozen, parameter.name);
    if (parameter.frozen) frozen_.push_back(&parameter);
    parameter.decays = !options.no_decay.covers(parameter.name, parameter.shape);
  }
  declare_layout();
  average_ = options.average;
  layout_.finish(*optimizer_->traits, options.bucket_bytes,
                 average_ ? StateLayout::Averages::kept : StateLayout::Averages::none, options.state_part);
  TRY(make_arenas());
  return place_copies();
}

Result<void> Parameters::make_arenas() {
  const std::size_t bytes = layout_.floats() * sizeof(float);
  values_ = TRY(HugeBuffer::make(bytes));
  gradients_ = TRY(HugeBuffer::make(bytes));
  const std::size_t slots = optimizer_->traits->state.size() + (average_ ? 1 : 0);
  for (std::size_t slot = 0; slot < slots; ++slot)
    state_.push_back(TRY(HugeBuffer::make(layout_.state_floats() * sizeof(float))));
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    Parameter& parameter = parameters_[index];
    const Bucket& slice = layout_.slice(index);
    const auto place = [&slice](Buffer& buffer, const HugeBuffer& arena) {
      buffer.offset = slice.offset * sizeof(float);
      buffer.bytes = slice.length * sizeof(float);
      buffer.data = arena.data() + buffer.offset;
    };
    place(parameter.value, values_);
    place(parameter.gradient, gradients_);
    place_owned(parameter, index);
  }
  return {};
}

void Parameters::place_owned(Parameter& parameter, std::size_t index) const {
  const OwnedRange& own = parameter.owned = layout_.owned(index);
  for (std::size_t slot = 0; slot < state_.size(); ++slot) {
    Buffer& buffer = parameter.state[slot];
    buffer.offset = own.state_offset * sizeof(float);
    buffer.bytes = (own.end - own.begin) * sizeof(float);
    buffer.data = state_[slot].data() + buffer.offset;
  }
  const std::size_t length = layout_.slice(index).length;
  if (own.begin == own.end || own.end - own.begin == length) return;
  const Cuts& cuts = layout_.parameters()[index].cuts;
  const auto row = [&](std::size_t at) {
    return at == length ? parameter.shape[cuts.axis]
                        : static_cast<std::int64_t>(at / cuts.floats) * cuts.rows;
  };
  parameter.owned_path =
      path_of_rows(whole_path(parameter), cuts, row(own.begin), row(own.end) - row(own.begin));
}

PlainPath Parameters::whole_path(const Parameter& parameter) const {
  return plain_path(parameter.layout, parameter.columns, parameter.shape);
}

// Statistics first, then the copies.
Result<void> Parameters::place_copies() {
  std::size_t bytes = layout_.statistic_floats() * sizeof(float);
  for (Copy& copy : copies_) {
    copy.value.offset = bytes;
    copy.value.bytes = aligned(copy.layout.get_size());
    bytes += copy.value.bytes;
  }
  extras_ = TRY(HugeBuffer::make(bytes));
  for (Copy& copy : copies_) copy.value.data = extras_.data() + copy.value.offset;
  for (std::size_t index = 0; index < statistics_.size(); ++index)
    statistics_[index].value.data = extras_.data() + layout_.statistic_offset(index) * sizeof(float);
  return {};
}

PlainPath Parameters::path_of(std::size_t tensor) const {
  const TensorPlace& place = layout_.place(tensor);
  const TensorInfo& info = layout_.tensors()[tensor];
  if (place.arena == TensorPlace::Arena::statistics)
    return plain_path(vector_desc(statistics_[place.owner].elements), std::nullopt, info.shape);
  const Parameter& parameter = parameters_[place.owner];
  if (place.arena == TensorPlace::Arena::state && parameter.owned_path) return *parameter.owned_path;
  return whole_path(parameter);
}

std::byte* Parameters::data_of(std::size_t tensor) const {
  const TensorPlace& place = layout_.place(tensor);
  if (place.arena == TensorPlace::Arena::statistics) return statistics_[place.owner].value.data;
  const Parameter& parameter = parameters_[place.owner];
  if (place.arena == TensorPlace::Arena::values) return parameter.value.data;
  // The layout of a part counts from where the whole would begin.
  const std::size_t before = parameter.owned_path ? parameter.owned.begin * sizeof(float) : 0;
  return parameter.state[place.slot].data - before;
}

Result<void> Parameters::initialise(std::uint64_t seed, const dnnl::engine& engine) {
  // The other arenas hold nothing yet: they serve as workspace, so that no page is touched for this alone.
  std::size_t largest = 0;
  for (const TensorInfo& tensor : layout_.tensors()) largest = std::max(largest, elements_of(tensor.shape));
  const bool state_has_space = !state_.empty() && state_.front().size() >= largest * sizeof(float);
  auto* const plain = reinterpret_cast<float*>(state_has_space ? state_.front().data()
                                                               : TRY(workspace(largest * sizeof(float))));
  for (std::size_t tensor = 0; tensor < layout_.tensors().size(); ++tensor) {
    const std::size_t count = layout_.tensors()[tensor].elements();
    if (layout_.place(tensor).arena == TensorPlace::Arena::state) continue;
    layout_.first_values(tensor, seed, {plain, count});
    from_plain(path_of(tensor), plain, data_of(tensor), gradients_.data(), engine);
  }
  for (HugeBuffer* arena : {&gradients_, state_has_space ? &state_.front() : &workspace_})
    std::fill_n(arena->data(), arena->size(), std::byte{0});
  for (Copy& copy : copies_) {
    if (copy.interleaved_row > 0) continue;
    const dnnl::reorder::primitive_desc reorder(engine, copy.from->layout, engine, copy.layout, attributes());
    copy.refresh = Call(dnnl::reorder(reorder), {{DNNL_ARG_FROM, {copy.from->layout, &copy.from->value}},
                                                 {DNNL_ARG_TO, {copy.layout, &copy.value}}});
  }
  stale_ = true;
  return {};
}

void Parameters::refresh(const dnnl::stream& stream) {
  if (!stale_) return;
  for (Copy& copy : copies_) refresh(copy, stream);
  stale_ = false;
}

void Parameters::refresh(Copy& copy, const dnnl::stream& stream) {
  if (copy.interleaved_row == 0) return copy.refresh.run(stream);
  kernels::interleave(reinterpret_cast<kernels::Bf16*>(copy.value.data), copy.from->value.floats(),
                      copy.from->layout.get_size() / sizeof(float), copy.interleaved_row);
}

Parameters::Copy* Parameters::interleaved_copy_of(const Parameter& parameter) {
  for (Copy& copy : copies_)
    if (copy.from == &parameter && copy.interleaved_row > 0) return &copy;
  return nullptr;
}

Parameters::UpdateFactors Parameters::factors_of(const UpdateStep& step) const {
  UpdateStep exempt = step;
  exempt.weight_decay = 0;
  return {optimizer_->factors(step), optimizer_->factors(exempt)};
}

// A tensor of one dimension has others where the optimizer looks at whole tensors.
Factors Parameters::factors_of(const Parameter& parameter, const UpdateFactors& all) const {
  const Factors& common = parameter.decays ? all.with_decay : all.without_decay;
  const TensorPass* const pass = optimizer_->traits->tensor_pass;
  return pass != nullptr && parameter.shape.size() == 1 ? pass->of_vector(common) : common;
}

void Parameters::apply(const UpdateStep& step, const dnnl::stream& stream) {
  const UpdateFactors all = factors_of(step);
  const TensorPass* const pass = optimizer_->traits->tensor_pass;
  if (average_) kept_average_ = kept_average(*average_, step.updates);
  for (Parameter& parameter : parameters_) {
    if (parameter.frozen) {
      average(parameter, 0, floats_of(parameter));
      continue;
    }
    const Factors factors = factors_of(parameter, all);
    update(parameter, pass == nullptr ? factors : pass->adapt(factors, measure(parameter, factors)));
  }
  const bool interleaves = optimizer_->traits->update_and_interleave != nullptr;
  for (Copy& copy : copies_)
    if (copy.interleaved_row == 0 || !interleaves) refresh(copy, stream);
  stale_ = false;
}

std::vector<double> Parameters::measure(const UpdateStep& step) {
  std::vector<double> out;
  if (optimizer_->traits->tensor_pass == nullptr) return out;
  const UpdateFactors all = factors_of(step);
  for (Parameter& parameter : parameters_) {
    const TensorSums sums = parameter.frozen ? TensorSums{} : measure(parameter, factors_of(parameter, all));
    out.insert(out.end(), sums.begin(), sums.end());
  }
  return out;
}

void Parameters::update(const UpdateStep& step, std::size_t bucket, std::span<const double> sums) {
  const UpdateFactors all = factors_of(step);
  const TensorPass* const pass = optimizer_->traits->tensor_pass;
  if (average_) kept_average_ = kept_average(*average_, step.updates);
  const Bucket& which = layout_.buckets()[bucket];
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    Parameter& parameter = parameters_[index];
    const std::size_t at = layout_.slice(index).offset;
    if (at < which.offset || at >= which.offset + which.length) continue;
    clear_padding(parameter.gradient, floats_of(parameter));
    if (parameter.frozen) {
      average(parameter, parameter.owned.begin, owned_end(parameter));
      continue;
    }
    const Factors factors = factors_of(parameter, all);
    update(parameter,
           pass == nullptr ? factors : pass->adapt(factors, {sums[2 * index], sums[2 * index + 1]}));
  }
}

// Of numbers that an update has just changed, and which are still near.
void Parameters::average(Parameter& parameter, std::size_t begin, std::size_t end) const {
  if (!average_) return;
  float* const averages = parameter.state[state_.size() - 1].floats() + (begin - parameter.owned.begin);
  average_weights(averages, parameter.value.floats() + begin, end - begin, kept_average_);
}

void Parameters::swap_averages() {
  if (!average_) return;
  for (Parameter& parameter : parameters_) {
    const OwnedRange& own = parameter.owned;
    float* const averages = parameter.state[state_.size() - 1].floats();
    float* const values = parameter.value.floats() + own.begin;
    parallel_for(own.end - own.begin, kernels::kGrain, [&](std::size_t begin, std::size_t end) {
      swap_weights(averages + begin, values + begin, end - begin);
    });
  }
  stale_ = true;
}

UpdateRange Parameters::range_of(Parameter& parameter, std::size_t begin, std::size_t end) const {
  UpdateRange out{parameter.value.floats() + begin, parameter.gradient.floats() + begin, {}, end - begin};
  for (std::size_t slot = 0; slot < optimizer_->traits->state.size(); ++slot)
    out.state[slot] = parameter.state[slot].floats() + (begin - parameter.owned.begin);
  return out;
}

// Where the numbers of this rank's part end, without what pads the slice.
std::size_t Parameters::owned_end(const Parameter& parameter) const {
  return std::max(parameter.owned.begin, std::min(parameter.owned.end, floats_of(parameter)));
}

// By a pass over the whole parameter, or this rank's part of it.
TensorSums Parameters::measure(Parameter& parameter, const Factors& factors) const {
  const std::size_t first = parameter.owned.begin, count = owned_end(parameter) - first;
  return measured(*optimizer_->traits->tensor_pass, factors, count, [&](std::size_t begin, std::size_t end) {
    return range_of(parameter, first + begin, first + end);
  });
}

// One pass over the parameter, its gradient, its state and, where the optimizer can, its interleaved copy.
void Parameters::update(Parameter& parameter, const Factors& factors) {
  const std::size_t first = parameter.owned.begin, count = owned_end(parameter) - first;
  const OptimizerTraits& traits = *optimizer_->traits;
  const Copy* const copy = interleaved_copy_of(parameter);
  const bool is_whole = layout_.borders().empty();
  if (copy == nullptr || traits.update_and_interleave == nullptr || !is_whole)
    return parallel_for(count, kernels::kGrain, [&](std::size_t begin, std::size_t end) {
      traits.update(range_of(parameter, first + begin, first + end), factors);
      average(parameter, first + begin, first + end);
    });
  const std::size_t row = copy->interleaved_row, rows = 2 * row;
  auto* const interleaved = reinterpret_cast<kernels::Bf16*>(copy->value.data);
  parallel_for(count, (kernels::kGrain / rows + 1) * rows, [&](std::size_t begin, std::size_t end) {
    traits.update_and_interleave(range_of(parameter, begin, end), {interleaved + begin, row}, factors);
    average(parameter, begin, end);
  });
}

Result<void> Parameters::read(std::size_t index, std::span<float> out, const dnnl::engine& engine) const {
  TRY(layout_.check_size(index, out.size()));
  if (out.empty()) return {};
  const PlainPath path = path_of(index);
  to_plain(path, data_of(index), out.data(), TRY(workspace(bytes_between(path))), engine);
  return {};
}

Result<void> Parameters::write(std::size_t index, std::span<const float> values, const dnnl::engine& engine) {
  TRY(layout_.check_size(index, values.size()));
  if (values.empty()) return {};
  const PlainPath path = path_of(index);
  from_plain(path, values.data(), data_of(index), TRY(workspace(bytes_between(path))), engine);
  stale_ = true;
  return {};
}

// Kept from call to call: a checkpoint reads large tensors again and again, and fresh pages are dear.
Result<std::byte*> Parameters::workspace(std::size_t bytes) const {
  if (bytes > workspace_.size()) workspace_ = TRY(HugeBuffer::make(bytes));
  return workspace_.data();
}

std::size_t Parameters::memory_bytes() const {
  return values_.size() + gradients_.size() + extras_.size() + state_bytes();
}

std::size_t Parameters::state_bytes() const {
  std::size_t bytes = 0;
  for (const HugeBuffer& slot : state_) bytes += slot.size();
  return bytes;
}

}  // namespace dlrun::runtime
