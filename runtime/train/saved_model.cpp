// See saved_model.hpp.
#include "runtime/train/saved_model.hpp"

#include <algorithm>

#include "runtime/base/checksum.hpp"
#include "runtime/base/mapped_file.hpp"
#include "runtime/checkpoint/catalog.hpp"
#include "runtime/checkpoint/file_system.hpp"
#include "runtime/checkpoint/snapshot.hpp"
#include "runtime/checkpoint/tensor_reader.hpp"
#include "runtime/cpu/cpu_engine.hpp"
#include "runtime/graph/target_measure.hpp"
#include "runtime/models/layer_list.hpp"
#include "runtime/models/models.hpp"
#include "runtime/optim/average.hpp"
#include "src/base/regular_file.hpp"
#include "src/base/strings.hpp"

namespace dlrun::runtime {
namespace {

namespace fs = std::filesystem;

// The folder itself, or the newest checkpoint in it.
Result<fs::path> checkpoint_in(const fs::path& folder) {
  std::error_code problem;
  if (fs::is_regular_file(folder / manifest_name, problem)) return folder;
  const auto files = real_file_system();
  const auto all = TRY(list_checkpoints(*files, folder));
  if (!all.empty()) return folder / all.front().name;
  return bad_input(folder.string(), "has no checkpoint",
                   "name a checkpoint, or the folder checkpoint.dir of a job");
}

Result<void> verify(const fs::path& folder, const Manifest& manifest) {
  for (const ManifestFile& file : manifest.files) {
    const MappedFile mapped = TRY(MappedFile::open(folder / file.name));
    if (mapped.bytes().size() != file.bytes || checksum(mapped.bytes()) != file.checksum)
      return bad_input(mapped.name(), "has another size or checksum than in the manifest: it is damaged");
  }
  return {};
}

// "0.485 0.456 0.406", or "none".
Result<std::vector<double>> numbers_of(const Manifest& manifest, const std::string& key) {
  std::vector<double> out;
  const auto found = manifest.settings.find(key);
  if (found == manifest.settings.end() || found->second == "none") return out;
  for (const std::string& word : split(found->second, ' ')) {
    char* end = nullptr;
    out.push_back(std::strtod(word.c_str(), &end));
    if (*end != '\0' || word.empty())
      return bad_input("the manifest", fmt::format("{} is '{}'", key, found->second));
  }
  return out;
}

Result<Graph> layers_of(const Manifest& manifest) {
  const Identity& id = manifest.identity;
  if (!manifest.layers.empty()) {
    const yaml::Node node = TRY(yaml::parse(manifest.layers, "the manifest"));
    return build_layers(TRY(read_layer_list(node, "model")), id.shape);
  }
  const auto named = [&](const Model& model) { return model.name == id.model; };
  if (std::any_of(models().begin(), models().end(), named)) return build_model(id.model, id.shape);
  return bad_input("the manifest", fmt::format("the layers of model '{}' are not in it", id.model),
                   "an older version wrote it: train one step more with this version");
}

Result<Graph> graph_of(const Manifest& manifest) {
  Graph out = TRY(layers_of(manifest));
  if (const auto loss = manifest.settings.find("loss"); loss != manifest.settings.end())
    set_measure(out, TRY(TargetMeasure::of_text(loss->second)));
  return out;
}

// The weights by which the training was evaluated: the averages, where it kept them.
Result<void> take_weights(Engine& engine, const TensorReader& from, const Manifest& manifest) {
  const auto ema = manifest.settings.find("ema");
  const bool averages = ema != manifest.settings.end() && ema->second != "none";
  std::vector<float> values;
  for (std::size_t i = 0; i < engine.tensors().size(); ++i) {
    const TensorInfo& tensor = engine.tensors()[i];
    if (tensor.role == TensorInfo::Role::momentum) continue;
    const bool is_average = averages && tensor.role == TensorInfo::Role::parameter;
    values.resize(tensor.elements());
    TRY(from.read(tensor.name + (is_average ? kAverageSuffix : ""), tensor.shape, whole_box(tensor.shape),
                  values));
    TRY(engine.write_tensor(i, values));
  }
  return {};
}

}  // namespace

Result<SavedModel> SavedModel::open(const fs::path& folder) {
  SavedModel out;
  out.folder = TRY(checkpoint_in(folder));
  const fs::path path = out.folder / manifest_name;
  out.manifest = TRY(parse_manifest(TRY(read_regular_file(path)), path.string()));
  TRY(verify(out.folder, out.manifest));
  const auto channels = static_cast<std::size_t>(out.manifest.identity.shape.channels);
  out.conversion = {TRY(numbers_of(out.manifest, "data.mean")), TRY(numbers_of(out.manifest, "data.std"))};
  for (const auto* numbers : {&out.conversion.mean, &out.conversion.std_dev})
    if (numbers->size() > 1 && numbers->size() != channels)
      return bad_input(path.string(), "data.mean or data.std has another number of channels than the input");
  if (const auto scale = TRY(numbers_of(out.manifest, "data.scale")); scale.size() == 1)
    out.conversion.scale = scale[0];
  if (const auto found = out.manifest.settings.find("data.transform");
      found != out.manifest.settings.end() && found->second == "log1p")
    out.conversion.transform = NumberScaling::Transform::log1p;
  if (const auto share = TRY(numbers_of(out.manifest, "data.centre-crop")); share.size() == 1)
    out.evaluation.centre_crop = share[0];
  out.graph = TRY(graph_of(out.manifest));
  return out;
}

Result<std::unique_ptr<Engine>> SavedModel::make_engine(std::int64_t batch) const {
  return engine_of(graph, batch);
}

Result<std::unique_ptr<Engine>> SavedModel::engine_of(const Graph& of, std::int64_t batch) const {
  std::unique_ptr<Engine> out = TRY(compile(of, {.batch = batch}));
  TRY(take_weights(*out, TRY(TensorReader::open(folder, manifest)), manifest));
  return out;
}

// A model whose parameters go with the length keeps its own.
Result<std::unique_ptr<Engine>> SavedModel::make_language_engine(std::int64_t batch,
                                                                 std::int64_t positions) const {
  Manifest shorter = manifest;
  if (positions >= shorter.identity.shape.height) return make_engine(batch);
  shorter.identity.shape.height = positions;
  const Result<Graph> of_shorter = graph_of(shorter);
  if (!of_shorter || parameter_count(*of_shorter) != parameter_count(graph)) return make_engine(batch);
  return engine_of(*of_shorter, batch);
}

Result<Tokenizer> SavedModel::tokenizer() const {
  if (is_gan())
    return fail(ErrorKind::usage, "{} is a GAN: it makes images and continues no texts",
                manifest.identity.model);
  if (!is_language())
    return fail(ErrorKind::usage, "{} is not a language model: it cannot continue a text",
                manifest.identity.model);
  const fs::path path = folder / tokenizer_file_name;
  if (manifest.tokenizer_checksum == 0)
    return bad_input(folder.string(), "has no tokenizer: the data that the model was trained on had none",
                     "write token files with dlrun-train --prepare --tokens");
  const std::string text = TRY(read_regular_file(path));
  if (checksum(std::string_view(text)) != manifest.tokenizer_checksum)
    return bad_input(path.string(), "has another checksum than in the manifest: it is damaged");
  return Tokenizer::parse(text, path.string());
}

bool SavedModel::is_gan() const {
  return purpose_of(manifest.identity.model) == Purpose::generate;
}

std::string SavedModel::class_name(std::size_t number) const {
  return number < manifest.classes.size() ? manifest.classes[number] : std::to_string(number);
}

}  // namespace dlrun::runtime
