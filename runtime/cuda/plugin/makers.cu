// From the kind of a node to the operator that does it: a row per operator of graphs, and those that only a
// plan for GPUs has.
#include "runtime/cuda/plugin/engine.hpp"

namespace dlrun::cuda {

#define DLRUN_FUSED(ROW)   \
  ROW(NormPool, norm_pool) \
  ROW(NormSum, norm_sum)   \
  ROW(Elided, elided)

#define DLRUN_DECLARE(TYPE, NAME) \
  OperatorPtr make_##NAME(Device& device, const DlrunCudaPlan& plan, std::size_t index);
DLRUN_OPERATORS(DLRUN_DECLARE)
DLRUN_FUSED(DLRUN_DECLARE)
#undef DLRUN_DECLARE

namespace {

// What has joined another node, or lies where its input does.
class Nothing final : public Operator {
 public:
  void forward(Device&, Mode) override {}
  void backward(Device&) override {}
};

}  // namespace

OperatorPtr make_elided(Device&, const DlrunCudaPlan&, std::size_t) {
  return std::make_unique<Nothing>();
}
OperatorPtr make_detach(Device&, const DlrunCudaPlan&, std::size_t) {
  return std::make_unique<Nothing>();
}

// The borders of a stage of a pipeline: what comes and goes there does so around the graphs of its halves
// (stage.cu).
OperatorPtr make_stage_input(Device&, const DlrunCudaPlan&, std::size_t) {
  return std::make_unique<Nothing>();
}
OperatorPtr make_stage_output(Device&, const DlrunCudaPlan&, std::size_t) {
  return std::make_unique<Nothing>();
}

OperatorPtr make_operator(Device& device, const DlrunCudaPlan& plan, std::size_t index) {
  const std::string_view kind = plan.nodes[index].kind;
#define DLRUN_ROW(TYPE, NAME) \
  if (kind == #NAME) return make_##NAME(device, plan, index);
  DLRUN_OPERATORS(DLRUN_ROW)
  DLRUN_FUSED(DLRUN_ROW)
#undef DLRUN_ROW
  throw Failure("the operator '" + std::string(kind) + "' is not supported on GPUs");
}

}  // namespace dlrun::cuda
