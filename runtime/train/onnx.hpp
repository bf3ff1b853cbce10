// ONNX: a trained model as a file that other programs run. Its input is "image", f32 pixels as the model was
// evaluated on (value / 255, less the mean, over the deviation: both are among the file's properties), and
// its output "scores", before the softmax. What helps training alone is left out.
#pragma once

#include <string>

#include "runtime/train/saved_model.hpp"

namespace dlrun::runtime {

/// The bytes of the file. An Error names an operator that ONNX has not.
Result<std::string> onnx_of(const SavedModel& model);

}  // namespace dlrun::runtime
