// Input: what the trainer fills (f32, channels x height x width) turned into the layout and type that the
// first operator likes. Where that is what the trainer fills, nothing is done; tokens, which are whole
// numbers of 32 bits, stay as they are.
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

namespace {

class Input final : public Operator {
 public:
  Input(Plan& plan, const op::Input& spec) {
    const Shape& shape = plan.node().shape;
    Tensor& out = plan.output();
    const Desc given = activation_desc(plan.batch(), shape, DataType::f32, {Tag::nchw, 1});
    Desc wanted = out.desc;
    const auto& readers = plan.readers_of_output();
    if (spec.kind == SampleKind::tokens) {
      wanted = given;
    } else if (readers.size() == 1) {
      const Node& reader = plan.graph().nodes[readers[0]];
      wanted =
          std::visit([&](const auto& spec) { return preferred_source(plan, reader, spec); }, reader.operation)
              .value_or(wanted);
    }
    plan.set_layout(out, wanted, type_of(wanted) == DataType::bf16 ? Precision::bf16 : Precision::f32,
                    out.extents);
    plan.keep(out.value);
    plan.set_rows(out.value);
    if (wanted == given) return;
    Buffer* rows = plan.buffer(given.get_size());
    plan.keep(rows);
    plan.set_rows(rows);
    const dnnl::reorder::primitive_desc reorder(plan.engine(), given, plan.engine(), wanted, attributes());
    convert_ =
        Call(dnnl::reorder(reorder), {{DNNL_ARG_FROM, {given, rows}}, {DNNL_ARG_TO, {wanted, out.value}}});
  }

  void forward(const Run& run) override {
    if (convert_) convert_.run(run.stream);
  }

 private:
  Call convert_;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::Input& spec) {
  return std::make_unique<Input>(plan, spec);
}

}  // namespace dlrun::runtime
