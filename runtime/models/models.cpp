// The table of models.
#include "runtime/models/models.hpp"

#include <array>

#include "src/base/strings.hpp"

namespace dlrun::runtime {

std::span<const Model> models() {
  static constexpr std::array kModels = {Model{"mnist-cnn", mnist_cnn},
                                         Model{"cifar10-convnet", cifar10_convnet},
                                         Model{"resnet18-cifar", resnet18_cifar},
                                         Model{"resnet18", resnet18},
                                         Model{"resnet34", resnet34},
                                         Model{"resnet50", resnet50},
                                         Model{"resnet101", resnet101},
                                         Model{"resnet152", resnet152},
                                         Model{"alexnet", alexnet},
                                         Model{"caffenet", caffenet},
                                         Model{"googlenet", googlenet},
                                         Model{"inception-v3", inception_v3},
                                         Model{"hep-cnn", hep_cnn},
                                         Model{"cosmoflow", cosmoflow},
                                         Model{"dcgan", dcgan, Purpose::generate},
                                         Model{"cosmogan", cosmogan, Purpose::generate},
                                         Model{"gpt2", gpt2, Purpose::continue_text},
                                         Model{"gpt2-medium", gpt2_medium, Purpose::continue_text},
                                         Model{"gpt2-large", gpt2_large, Purpose::continue_text},
                                         Model{"gpt2-xl", gpt2_xl, Purpose::continue_text}};
  return kModels;
}

Purpose purpose_of(std::string_view model) {
  for (const Model& known : models())
    if (known.name == model) return known.purpose;
  return Purpose::classify;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Model& model : models()) names.emplace_back(model.name);
  return names;
}

Result<Graph> build_model(const std::string& model, const InputShape& input) {
  for (const Model& known : models())
    if (known.name == model) return known.build(input);
  return fail(Error{.kind = ErrorKind::input,
                    .what = fmt::format("there is no model '{}'", model),
                    .hint = did_you_mean(model, model_names())});
}

}  // namespace dlrun::runtime
