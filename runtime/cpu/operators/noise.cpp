// Noise: standard normal numbers, a function of seed, step and sample alone (a sample is a row of the batches
// of all ranks), so that no state is kept and a resumed run draws the same. In evaluation always the same
// ones.
#include "runtime/cpu/operators/noise.hpp"

#include "runtime/base/keyed_normal.hpp"
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

namespace {

class Noise final : public Operator {
 public:
  explicit Noise(Plan& plan)
      : out_(plan.output()), options_(plan.options()), size_(plan.node().shape.channels) {
    const Desc plain = activation_desc(plan.batch(), plan.node().shape, DataType::f32, {Tag::nchw, 1});
    drawn_ = plan.scratch(plain.get_size(), Pass::forward);
    const dnnl::reorder::primitive_desc reorder(plan.engine(), plain, plan.engine(), out_.desc, attributes());
    lay_ = Call(dnnl::reorder(reorder),
                {{DNNL_ARG_FROM, {plain, drawn_}}, {DNNL_ARG_TO, {out_.desc, out_.value}}});
  }

  void forward(const Run& run) override {
    const std::uint64_t step = run.mode == Mode::train ? run.step : kShownNoise;
    const auto size = static_cast<std::size_t>(size_);
    options_.rank = run.shard;
    for (std::int64_t row = 0; row < options_.batch; ++row)
      draw_noise({drawn_->floats() + static_cast<std::size_t>(row) * size, size}, options_, step, row);
    lay_.run(run.stream);
  }

 private:
  Tensor& out_;
  EngineOptions options_;
  std::int64_t size_;
  Buffer* drawn_;
  Call lay_;
};

}  // namespace

void draw_noise(std::span<float> out, const EngineOptions& options, std::uint64_t step, std::int64_t row) {
  const auto sample = static_cast<std::uint64_t>(options.rank * options.batch + row);
  kernels::normal(out.data(), out.size(), with_part(noise_key(options, step), sample));
}

OperatorPtr make_operator(Plan& plan, const op::Noise&) {
  return std::make_unique<Noise>(plan);
}

}  // namespace dlrun::runtime
