// See matrix_product.hpp.
#include "runtime/cpu/matrix_product.hpp"

namespace dlrun::runtime {

namespace {

Desc desc_of_matrix(std::int64_t rows, std::int64_t columns, const MatrixForm& form) {
  return {{rows, columns}, form.type, form.order == MatrixOrder::rows ? Tag::ab : Tag::ba};
}

}  // namespace

MatrixProduct::MatrixProduct(Plan& plan, const Size& size, const MatrixForm& left, const MatrixForm& right,
                             DataType out, ProductSum sum)
    : left_(desc_of_matrix(size.rows, size.terms, left)),
      right_(desc_of_matrix(size.terms, size.columns, right)),
      out_(desc_of_matrix(size.rows, size.columns, {out})) {
  dnnl::primitive_attr with = attributes();
  if (sum == ProductSum::onto) {
    dnnl::post_ops after;
    after.append_sum(1.0F);
    with.set_post_ops(after);
  }
  const auto desc = describe<dnnl::matmul>(plan.engine(), with, left_, right_, out_);
  scratch_desc_ = desc.scratchpad_desc();
  scratch_ = plan.scratch(scratch_desc_.get_size(), Pass::forward);
  plan.use(scratch_, Pass::backward);
  primitive_ = dnnl::matmul(desc);
  description_ = desc.impl_info_str();
}

void MatrixProduct::run(const dnnl::stream& stream, const void* left, const void* right, void* out) const {
  const dnnl::engine engine = stream.get_engine();
  // oneDNN has no read-only memory.
  primitive_.execute(stream, {{DNNL_ARG_SRC, {left_, engine, const_cast<void*>(left)}},
                              {DNNL_ARG_WEIGHTS, {right_, engine, const_cast<void*>(right)}},
                              {DNNL_ARG_DST, {out_, engine, out}},
                              {DNNL_ARG_SCRATCHPAD, {scratch_desc_, engine, scratch_->data}}});
}

}  // namespace dlrun::runtime
