// Arenas, buckets, initial values and conversion to the plain layout.
#include "runtime/cpu/parameters.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/base/keyed_random.hpp"
#include "runtime/cpu/kernels/kernels.hpp"
#include "runtime/cpu/parallel.hpp"
#include "runtime/engine/initial_values.hpp"

namespace dlrun::runtime {

namespace {

Dims dims_of(const std::vector<std::int64_t>& shape) {
  return {shape.begin(), shape.end()};
}

Desc plain_desc(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (std::size_t axis = dims.size() - 1; axis > 0; --axis) strides[axis - 1] = strides[axis] * dims[axis];
  return {dims, DataType::f32, strides};
}

void reorder(const Desc& from, const void* source, const Desc& to, void* target, const dnnl::engine& engine) {
  dnnl::stream stream(engine);
  dnnl::memory in(from, engine, const_cast<void*>(source));  // oneDNN has no read-only memory
  dnnl::memory out(to, engine, target);
  dnnl::reorder(in, out).execute(stream, in, out);
  stream.wait();
}

// Between the arena's layout and plain; through the plain matrix where `columns` is set.
struct Path {
  Desc arena, plain;
  std::optional<Desc> columns;
};

// The arena's layout of a matrix whose columns are an image, as one layout of `shape`: a block of the
// matrix's columns must be a run of channels of one pixel. Nothing where it is not so.
std::optional<Desc> joined(const Desc& arena, const Desc& columns) {
  const auto& matrix = arena.data.format_desc.blocking;
  const auto& image = columns.data.format_desc.blocking;
  const dnnl_dim_t run = matrix.inner_blks[0];
  const bool rows = arena.data.ndims == 2 && matrix.inner_nblks == 2 && matrix.inner_idxs[0] == 1 &&
                    matrix.inner_idxs[1] == 0;
  if (!rows || columns.data.ndims != 4 || columns.data.padded_dims[1] % run != 0) return std::nullopt;
  const bool blocked = image.inner_nblks == 1 && image.inner_idxs[0] == 1 && image.inner_blks[0] == run;
  const bool plain = image.inner_nblks == 0 && image.strides[1] == 1;
  if (!blocked && !plain) return std::nullopt;
  const std::array<dnnl_dim_t, 3> steps{plain ? run : image.strides[1], image.strides[2], image.strides[3]};
  Desc out = columns;
  auto& both = out.data.format_desc.blocking;
  both = matrix;
  out.data.padded_dims[0] = arena.data.padded_dims[0];
  for (std::size_t axis = 0; axis < steps.size(); ++axis) {
    if (steps[axis] % run != 0) return std::nullopt;
    both.strides[axis + 1] = steps[axis] / run * matrix.strides[1];
  }
  return out;
}

Path path_of(const Parameter* parameter, const Desc& layout, const TensorInfo& info) {
  if (parameter != nullptr && parameter->columns)
    if (const auto direct = joined(layout, *parameter->columns))
      return {*direct, plain_desc(parameter->columns->dims()), std::nullopt};
  // Grouped weights have an axis more in oneDNN: the filters, cut by group. Plain, that is the same order.
  const bool grouped = layout.data.ndims == 5;
  return {layout, plain_desc(grouped ? layout.dims() : dims_of(info.shape)),
          parameter ? parameter->columns : std::nullopt};
}

Desc matrix_desc(const Path& path) {
  return plain_desc(path.arena.dims());
}

// Bytes that the way needs in between; 0 where it is direct.
std::size_t bytes_between(const Path& path) {
  return path.columns && path.arena != matrix_desc(path) ? matrix_desc(path).get_size() : 0;
}

void to_plain(const Path& path, const void* source, void* target, std::byte* between,
              const dnnl::engine& engine) {
  if (!path.columns) return reorder(path.arena, source, path.plain, target, engine);
  const Desc viewed_plain(path.columns->dims(), DataType::f32, Tag::abcd);
  if (path.arena == matrix_desc(path)) return reorder(*path.columns, source, viewed_plain, target, engine);
  reorder(path.arena, source, matrix_desc(path), between, engine);
  reorder(*path.columns, between, viewed_plain, target, engine);
}

void from_plain(const Path& path, const void* source, void* target, std::byte* between,
                const dnnl::engine& engine) {
  if (!path.columns) return reorder(path.plain, source, path.arena, target, engine);
  const Desc viewed_plain(path.columns->dims(), DataType::f32, Tag::abcd);
  if (path.arena == matrix_desc(path)) return reorder(viewed_plain, source, *path.columns, target, engine);
  reorder(viewed_plain, source, *path.columns, between, engine);
  reorder(matrix_desc(path), between, path.arena, target, engine);
}

// The row length where `copy` is bf16 rows of the matrix `arena` interleaved by two, padded the same; else 0.
// That is what bf16 products want, and worth its own code: oneDNN's reorder of it is slow.
std::size_t interleaved_row(const Desc& arena, const Desc& copy) {
  const auto& from = arena.data.format_desc.blocking;
  const auto& to = copy.data.format_desc.blocking;
  if (copy.data_type() != DataType::bf16 || arena.data.ndims != 2) return 0;
  const bool rows = from.inner_nblks == 2 && from.inner_idxs[0] == 1 && from.inner_idxs[1] == 0;
  const bool pairs = to.inner_nblks == 3 && to.inner_idxs[0] == 1 && to.inner_idxs[1] == 0 &&
                     to.inner_idxs[2] == 1 && to.inner_blks[2] == 2;
  if (!rows || !pairs || from.inner_blks[1] != to.inner_blks[1] || to.inner_blks[0] < 1) return 0;
  const dnnl_dim_t row = from.inner_blks[1], inputs = arena.data.padded_dims[1];
  // Column blocks follow each other without a gap, so that a block's height does not matter.
  const bool dense = row % 16 == 0 && copy.data.padded_dims[1] == inputs &&
                     copy.data.padded_dims[0] == arena.data.padded_dims[0] &&
                     from.strides[1] == from.inner_blks[0] * row && from.strides[0] == inputs * row &&
                     to.strides[1] == 2 * to.inner_blks[0] * row && to.strides[0] == inputs * row;
  return dense ? static_cast<std::size_t>(row) : 0;
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

void Parameters::gather(std::size_t node, const dnnl::stream& stream) {
  for (Part& part : parts_)
    if (part.of->node == node) part.add.run(stream);
}

Buffer* Parameters::as(Parameter* parameter, const Desc& wanted) {
  if (wanted == parameter->layout) return &parameter->value;
  for (Copy& copy : copies_)
    if (copy.from == parameter && copy.layout == wanted) return &copy.value;
  return &copies_.emplace_back(Copy{parameter, wanted, {}, interleaved_row(parameter->layout, wanted), {}})
              .value;
}

Result<void> Parameters::lay_out(const EngineOptions& options) {
  adam_ = options.adam;
  std::vector<Parameter*> order;
  for (Parameter& parameter : parameters_) order.push_back(&parameter);
  std::stable_sort(order.begin(), order.end(),
                   [](const Parameter* left, const Parameter* right) { return left->node > right->node; });
  std::size_t offset = 0;
  for (Parameter* parameter : order) {
    const std::size_t bytes = aligned(parameter->layout.get_size());
    for (Buffer* buffer :
         {&parameter->value, &parameter->gradient, &parameter->momentum, &parameter->square}) {
      buffer->offset = offset;
      buffer->bytes = bytes;
    }
    offset += bytes;
  }
  floats_ = offset / sizeof(float) + kSpareSlots;
  values_ = TRY(HugeBuffer::make(floats_ * sizeof(float)));
  gradients_ = TRY(HugeBuffer::make(floats_ * sizeof(float)));
  momenta_ = TRY(HugeBuffer::make(floats_ * sizeof(float)));
  if (adam_) squares_ = TRY(HugeBuffer::make(floats_ * sizeof(float)));
  for (Parameter& parameter : parameters_) {
    parameter.value.data = values_.data() + parameter.value.offset;
    parameter.gradient.data = gradients_.data() + parameter.gradient.offset;
    parameter.momentum.data = momenta_.data() + parameter.momentum.offset;
    if (adam_) parameter.square.data = squares_.data() + parameter.square.offset;
  }
  std::size_t extra = 0;
  const auto place = [&extra](Buffer& buffer, std::size_t bytes) {
    buffer.offset = extra;
    buffer.bytes = aligned(bytes);
    extra += buffer.bytes;
  };
  for (Copy& copy : copies_) place(copy.value, copy.layout.get_size());
  for (Statistic& statistic : statistics_)
    place(statistic.value, static_cast<std::size_t>(statistic.elements) * sizeof(float));
  extras_ = TRY(HugeBuffer::make(extra));
  for (Copy& copy : copies_) copy.value.data = extras_.data() + copy.value.offset;
  for (Statistic& statistic : statistics_) statistic.value.data = extras_.data() + statistic.value.offset;
  cut_buckets(options.bucket_bytes, order);
  list_tensors();
  return {};
}

void Parameters::cut_buckets(std::size_t bucket_bytes, const std::vector<Parameter*>& order) {
  std::size_t begin = 0;
  const auto close = [this, &begin](std::size_t end, std::size_t node) {
    buckets_.push_back({begin, end - begin});
    bucket_nodes_.push_back(node);
    begin = end;
  };
  for (std::size_t index = 0; index < order.size(); ++index) {
    const std::size_t end = (order[index]->value.offset + order[index]->value.bytes) / sizeof(float);
    if (index + 1 == order.size())
      close(floats_, order[index]->node);  // with the spare slots
    else if ((end - begin) * sizeof(float) >= bucket_bytes)
      close(end, order[index]->node);
  }
}

std::vector<GradientSlice> Parameters::gradient_slices() const {
  std::vector<GradientSlice> slices;
  for (const Parameter& parameter : parameters_)
    slices.push_back({parameter.name, parameter.gradient.offset / sizeof(float),
                      parameter.gradient.bytes / sizeof(float)});
  std::sort(slices.begin(), slices.end(),
            [](const GradientSlice& left, const GradientSlice& right) { return left.offset < right.offset; });
  return slices;
}

std::pair<std::size_t, std::size_t> Parameters::final_after(std::size_t node) const {
  // Nodes of buckets fall, as backward runs from the last node to the first.
  const auto [first, last] =
      std::equal_range(bucket_nodes_.begin(), bucket_nodes_.end(), node, std::greater<>());
  return {first - bucket_nodes_.begin(), last - bucket_nodes_.begin()};
}

void Parameters::list_tensors() {
  const auto list = [this](std::string name, std::vector<std::int64_t> shape, TensorInfo::Role role,
                           Named place) {
    tensors_.push_back({std::move(name), std::move(shape), role});
    named_.push_back(place);
  };
  for (const Parameter& parameter : parameters_)
    list(parameter.name, parameter.shape, TensorInfo::Role::parameter,
         {&parameter, &parameter.value, parameter.layout});
  for (const Statistic& statistic : statistics_)
    list(statistic.name, {statistic.elements}, TensorInfo::Role::statistic,
         {nullptr, &statistic.value, vector_desc(statistic.elements)});
  list_momenta();
}

// PyTorch's names for Adam's.
void Parameters::list_momenta() {
  const auto list = [this](const Parameter& parameter, const char* what, const Buffer& value) {
    tensors_.push_back({parameter.name + what, parameter.shape, TensorInfo::Role::momentum});
    named_.push_back({&parameter, &value, parameter.layout});
  };
  for (const Parameter& parameter : parameters_)
    list(parameter, adam_ ? ".exp_avg" : ".momentum", parameter.momentum);
  if (!adam_) return;
  for (const Parameter& parameter : parameters_) list(parameter, ".exp_avg_sq", parameter.square);
}

void Parameters::initialise(std::uint64_t seed, const dnnl::engine& engine) {
  // The other two arenas hold nothing yet: they serve as room, so that no page is touched for this alone.
  auto* const plain = reinterpret_cast<float*>(momenta_.data());
  for (std::size_t index = 0; index < tensors_.size(); ++index) {
    if (tensors_[index].role != TensorInfo::Role::parameter) continue;
    const Parameter& parameter = *named_[index].parameter;
    const std::uint64_t key = random_key({seed, hash_text(parameter.name)});
    uniform({plain, tensors_[index].elements()}, key, parameter.bound, parameter.constant);
    from_plain(path_of(&parameter, parameter.layout, tensors_[index]), plain, parameter.value.data,
               gradients_.data(), engine);
  }
  std::fill_n(momenta_.data(), momenta_.size(), std::byte{0});
  std::fill_n(gradients_.data(), gradients_.size(), std::byte{0});
  for (Statistic& statistic : statistics_)
    std::fill_n(statistic.value.floats(), statistic.elements, statistic.constant);
  for (Copy& copy : copies_) {
    if (copy.interleaved_row > 0) continue;
    const dnnl::reorder::primitive_desc reorder(engine, copy.from->layout, engine, copy.layout, attributes());
    copy.refresh = Call(dnnl::reorder(reorder), {{DNNL_ARG_FROM, {copy.from->layout, &copy.from->value}},
                                                 {DNNL_ARG_TO, {copy.layout, &copy.value}}});
  }
  stale_ = true;
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

void Parameters::apply(const SgdStep& sgd, const dnnl::stream& stream) {
  if (adam_) {
    for (Parameter& parameter : parameters_) update_by_adam(parameter, sgd);
    stale_ = true;
    return refresh(stream);
  }
  for (Parameter& parameter : parameters_) update(parameter, sgd);
  for (Copy& copy : copies_)
    if (copy.interleaved_row == 0) refresh(copy, stream);
  stale_ = false;
}

// One pass over the parameter, its momentum, its gradient and its interleaved copy where it has one.
void Parameters::update(Parameter& parameter, const SgdStep& sgd) {
  const std::size_t count = parameter.layout.get_size() / sizeof(float);
  float* values = parameter.value.floats();
  float* momentum = parameter.momentum.floats();
  const float* gradients = parameter.gradient.floats();
  for (Copy& copy : copies_) {
    if (copy.from != &parameter || copy.interleaved_row == 0) continue;
    const std::size_t row = copy.interleaved_row;
    auto* interleaved = reinterpret_cast<kernels::Bf16*>(copy.value.data);
    const std::size_t grain = (kernels::kGrain / (2 * row) + 1) * 2 * row;
    return parallel_for(count, grain, [&](std::size_t begin, std::size_t end) {
      kernels::sgd_interleave(interleaved + begin, values + begin, momentum + begin, gradients + begin,
                              end - begin, row, sgd);
    });
  }
  parallel_for(count, kernels::kGrain, [&](std::size_t begin, std::size_t end) {
    kernels::sgd(values + begin, momentum + begin, gradients + begin, end - begin, sgd);
  });
}

void Parameters::update_by_adam(Parameter& parameter, const SgdStep& step) {
  const std::size_t count = parameter.layout.get_size() / sizeof(float);
  parallel_for(count, kernels::kGrain, [&](std::size_t begin, std::size_t end) {
    kernels::adam({.values = parameter.value.floats() + begin,
                   .means = parameter.momentum.floats() + begin,
                   .squares = parameter.square.floats() + begin},
                  parameter.gradient.floats() + begin, end - begin, step, *adam_);
  });
}

Result<void> Parameters::read(std::size_t index, std::span<float> out, const dnnl::engine& engine) const {
  const TensorInfo& info = tensors_[index];
  if (out.size() != info.elements())
    return fail(ErrorKind::internal, "tensor '{}' has {} numbers, room for {}", info.name, info.elements(),
                out.size());
  const Named& named = named_[index];
  const Path path = path_of(named.parameter, named.layout, info);
  to_plain(path, named.value->data, out.data(), TRY(room(bytes_between(path))), engine);
  return {};
}

// Kept from call to call: a checkpoint reads large tensors again and again, and fresh pages are dear.
Result<std::byte*> Parameters::room(std::size_t bytes) const {
  if (bytes > room_.size()) room_ = TRY(HugeBuffer::make(bytes));
  return room_.data();
}

Result<void> Parameters::write(std::size_t index, std::span<const float> values, const dnnl::engine& engine) {
  const TensorInfo& info = tensors_[index];
  if (values.size() != info.elements())
    return fail(Error{
        .kind = ErrorKind::input,
        .what = fmt::format("tensor '{}' has {} numbers, not {}", info.name, info.elements(), values.size()),
        .hint = "the values are from another model or another number of classes"});
  const Named& named = named_[index];
  const Path path = path_of(named.parameter, named.layout, info);
  from_plain(path, values.data(), named.value->data, TRY(room(bytes_between(path))), engine);
  stale_ = true;
  return {};
}

std::size_t Parameters::memory_bytes() const {
  return values_.size() + gradients_.size() + momenta_.size() + squares_.size() + extras_.size();
}

std::uint64_t Parameters::hash(std::uint64_t start) const {
  std::uint64_t hash = start;
  for (const Parameter& parameter : parameters_)
    hash = random_key({hash, hash_text(parameter.name), hash_text(text(parameter.layout)),
                       parameter.value.offset, parameter.value.bytes});
  for (const Bucket& bucket : buckets_) hash = random_key({hash, bucket.offset, bucket.length});
  return hash;
}

}  // namespace dlrun::runtime
