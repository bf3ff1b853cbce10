// See dnn_graph.hpp.
#include <algorithm>

#include "runtime/cuda/plugin/dnn_graph.hpp"

namespace dlrun::cuda {
namespace {

constexpr auto kDescriptor = CUDNN_TYPE_BACKEND_DESCRIPTOR;
constexpr int kConfigurations = 12;  // as many as are tried

}  // namespace

DnnGraph::~DnnGraph() {
  while (!all_.empty()) {
    cudnnBackendDestroyDescriptor(all_.back());
    all_.pop_back();
  }
}

DnnGraph::Descriptor DnnGraph::make(cudnnBackendDescriptorType_t type) {
  Descriptor made = nullptr;
  check(cudnnBackendCreateDescriptor(type, &made), "a descriptor of cuDNN");
  all_.push_back(made);
  return made;
}

void DnnGraph::set(Descriptor descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                   std::int64_t count, const void* values) {
  check(cudnnBackendSetAttribute(descriptor, name, type, count, values), "an operation of cuDNN");
}

void DnnGraph::finish(Descriptor descriptor) {
  check(cudnnBackendFinalize(descriptor), "an operation of cuDNN");
}

DnnGraph::Id DnnGraph::tensor(const Shape& shape, cudnnDataType_t type, Kept kept) {
  const Descriptor made = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const Id id = static_cast<Id>(tensors_.size());
  const auto axes = static_cast<std::int64_t>(shape.extents.size());
  set(made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
  set(made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
  set(made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, std::int64_t{16});
  set(made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, axes, shape.extents.data());
  set(made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, axes, shape.strides.data());
  set(made, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, kept == Kept::inside);
  set(made, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, kept == Kept::by_value);
  finish(made);
  tensors_.push_back(made);
  return id;
}

DnnGraph::Id DnnGraph::value(float number) {
  const Id id = tensor({{1, 1, 1, 1}, {1, 1, 1, 1}}, CUDNN_DATA_FLOAT, Kept::by_value);
  values_.emplace_back(id, std::make_unique<float>(number));
  return id;
}

void DnnGraph::add(Descriptor operation) {
  finish(operation);
  operations_.push_back(operation);
}

void DnnGraph::product(Id a, Id b, Id to) {
  const Descriptor how = make(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  set(how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  finish(how);
  const Descriptor made = make(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  set(made, CUDNN_ATTR_OPERATION_MATMUL_ADESC, kDescriptor, tensors_[a]);
  set(made, CUDNN_ATTR_OPERATION_MATMUL_BDESC, kDescriptor, tensors_[b]);
  set(made, CUDNN_ATTR_OPERATION_MATMUL_CDESC, kDescriptor, tensors_[to]);
  set(made, CUDNN_ATTR_OPERATION_MATMUL_DESC, kDescriptor, how);
  add(made);
}

DnnGraph::Descriptor DnnGraph::pointwise(cudnnPointwiseMode_t mode, cudnnDataType_t computed,
                                         std::optional<std::int64_t> axis) {
  const Descriptor how = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  set(how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  set(how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, computed);
  if (axis) set(how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, *axis);
  finish(how);
  const Descriptor made = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  set(made, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kDescriptor, how);
  return made;
}

void DnnGraph::map(cudnnPointwiseMode_t mode, Id x, Id to) {
  const Descriptor made = pointwise(mode, CUDNN_DATA_FLOAT, std::nullopt);
  set(made, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, kDescriptor, tensors_[x]);
  set(made, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, kDescriptor, tensors_[to]);
  add(made);
}

void DnnGraph::map(cudnnPointwiseMode_t mode, Id x, Id other, Id to) {
  const Descriptor made = pointwise(mode, CUDNN_DATA_FLOAT, std::nullopt);
  set(made, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, kDescriptor, tensors_[x]);
  set(made, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, kDescriptor, tensors_[other]);
  set(made, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, kDescriptor, tensors_[to]);
  add(made);
}

void DnnGraph::places(std::int64_t axis, Id like, Id to) {
  const Descriptor made = pointwise(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32, axis);
  set(made, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, kDescriptor, tensors_[like]);
  set(made, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, kDescriptor, tensors_[to]);
  add(made);
}

void DnnGraph::compare(cudnnPointwiseMode_t mode, Id x, Id other, Id to) {
  const Descriptor made = pointwise(mode, CUDNN_DATA_BOOLEAN, std::nullopt);
  set(made, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, kDescriptor, tensors_[x]);
  set(made, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, kDescriptor, tensors_[other]);
  set(made, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, kDescriptor, tensors_[to]);
  add(made);
}

void DnnGraph::choose(Id x, Id other, Id holds, Id to) {
  const Descriptor made = pointwise(CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, std::nullopt);
  set(made, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, kDescriptor, tensors_[x]);
  set(made, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, kDescriptor, tensors_[other]);
  set(made, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, kDescriptor, tensors_[holds]);
  set(made, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, kDescriptor, tensors_[to]);
  add(made);
}

void DnnGraph::reduce(cudnnReduceTensorOp_t by, Id x, Id to) {
  const Descriptor how = make(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  set(how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, by);
  set(how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  finish(how);
  const Descriptor made = make(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  set(made, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, kDescriptor, tensors_[x]);
  set(made, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, kDescriptor, tensors_[to]);
  set(made, CUDNN_ATTR_OPERATION_REDUCTION_DESC, kDescriptor, how);
  add(made);
}

void DnnGraph::reshape(Id x, Id to) {
  const Descriptor made = make(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  set(made, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, kDescriptor, tensors_[x]);
  set(made, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, kDescriptor, tensors_[to]);
  add(made);
}

DnnGraph::Descriptor DnnGraph::windows_of(const Windows& windows) {
  const std::vector<std::int64_t> ones(static_cast<std::size_t>(windows.axes), 1),
      strides(ones.size(), windows.stride), paddings(ones.size(), windows.padding);
  const Descriptor made = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  set(made, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  set(made, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
  set(made, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, windows.axes);
  set(made, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, windows.axes, ones.data());
  set(made, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, windows.axes, strides.data());
  set(made, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, windows.axes, paddings.data());
  set(made, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, windows.axes, paddings.data());
  finish(made);
  return made;
}

void DnnGraph::convolution(Pass pass, const Windows& windows, Id x, Id w, Id y) {
  struct Names {
    cudnnBackendDescriptorType_t operation;
    cudnnBackendAttributeName_t windows, x, w, y, alpha, beta;
  };
  static constexpr Names kForward = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  static constexpr Names kFilters = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  static constexpr Names kData = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
  const Names& names = pass == Pass::forward ? kForward : pass == Pass::filters ? kFilters : kData;
  const Descriptor made = make(names.operation);
  set(made, names.windows, kDescriptor, windows_of(windows));
  set(made, names.x, kDescriptor, tensors_[x]);
  set(made, names.w, kDescriptor, tensors_[w]);
  set(made, names.y, kDescriptor, tensors_[y]);
  set(made, names.alpha, CUDNN_TYPE_FLOAT, 1.0F);
  set(made, names.beta, CUDNN_TYPE_FLOAT, 0.0F);
  add(made);
}

// An engine says of itself where it adds in any order, and with what it computes.
bool DnnGraph::is_allowed(Descriptor configuration, Arithmetic arithmetic) {
  Descriptor engine = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  std::int64_t count = 0;
  check(cudnnBackendGetAttribute(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, kDescriptor, 1, &count, &engine),
        "asking for an engine of cuDNN");
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  check(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                 CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes),
        "asking what an engine of cuDNN does");
  return std::none_of(notes, notes + count, [&](cudnnBackendNumericalNote_t note) {
    if (note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) return true;
    return arithmetic == Arithmetic::plain &&
           (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE || note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
  });
}

void DnnGraph::plan(cudnnHandle_t handle, Descriptor configuration, std::size_t limit) {
  const Descriptor made = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  set(made, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle);
  set(made, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, kDescriptor, configuration);
  if (cudnnBackendFinalize(made) != CUDNN_STATUS_SUCCESS) return;
  std::int64_t count = 0, bytes = 0;
  check(cudnnBackendGetAttribute(made, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count,
                                 &bytes),
        "asking for a workspace");
  if (static_cast<std::size_t>(bytes) <= limit) plans_.push_back({made, static_cast<std::size_t>(bytes)});
}

std::vector<DnnGraph::Descriptor> DnnGraph::found_by(cudnnBackendHeurMode_t rule, Descriptor graph) {
  const Descriptor rules = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  set(rules, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, kDescriptor, graph);
  set(rules, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, rule);
  if (cudnnBackendFinalize(rules) != CUDNN_STATUS_SUCCESS) return {};
  std::vector<Descriptor> found(kConfigurations);
  for (Descriptor& one : found) one = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  std::int64_t count = 0;
  if (cudnnBackendGetAttribute(rules, CUDNN_ATTR_ENGINEHEUR_RESULTS, kDescriptor, kConfigurations, &count,
                               found.data()) != CUDNN_STATUS_SUCCESS)
    return {};
  found.resize(static_cast<std::size_t>(std::min<std::int64_t>(count, kConfigurations)));
  return found;
}

bool DnnGraph::build(cudnnHandle_t handle, const Search& search) {
  const Descriptor graph = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, kDescriptor, static_cast<std::int64_t>(operations_.size()),
      operations_.data());
  set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
  if (cudnnBackendFinalize(graph) != CUDNN_STATUS_SUCCESS) return false;
  for (Descriptor one : found_by(CUDNN_HEUR_MODE_A, graph))
    if (plans_.size() < search.engines && is_allowed(one, search.arithmetic)) plan(handle, one, search.limit);
  return !plans_.empty();
}

cudnnStatus_t DnnGraph::try_run(const Stream& stream, const std::vector<Address>& addresses,
                                void* workspace) const {
  std::vector<Id> ids;
  std::vector<const void*> places;
  for (const Address& address : addresses) ids.push_back(address.id), places.push_back(address.at);
  for (const auto& [id, number] : values_) ids.push_back(id), places.push_back(number.get());
  Descriptor pack = nullptr;
  check(cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack), "a run of cuDNN");
  const struct Guard {
    Descriptor of;
    ~Guard() { cudnnBackendDestroyDescriptor(of); }
  } guard{pack};
  const auto count = static_cast<std::int64_t>(ids.size());
  set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids.data());
  set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, places.data());
  set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  finish(pack);
  return cudnnBackendExecute(stream.dnn, plans_[chosen_].of, pack);
}

}  // namespace dlrun::cuda
