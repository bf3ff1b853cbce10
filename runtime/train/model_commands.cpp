// See model_commands.hpp.
#include "runtime/train/model_commands.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/data/images/transform.hpp"
#include "runtime/train/command_flags.hpp"
#include "runtime/train/evaluation.hpp"
#include "runtime/train/number_commands.hpp"
#include "runtime/train/onnx.hpp"
#include "runtime/train/rows.hpp"
#include "runtime/train/sample_text.hpp"
#include "runtime/train/saved_model.hpp"
#include "runtime/train/scoring.hpp"
#include "runtime/train/weight_file.hpp"
#include "src/base/file.hpp"
#include "src/base/json.hpp"
#include "src/base/regular_file.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::size_t kShown = 5;     // classes of a prediction
constexpr std::size_t kMatrix = 100;  // classes up to which the whole matrix is printed

double rounded(double value) {
  return std::round(value * 1e6) / 1e6;
}

// Scores of the rows that are filled, row by row.
std::span<const float> row_of(std::span<const float> scores, std::int64_t batch, std::int64_t row) {
  const std::size_t each = scores.size() / static_cast<std::size_t>(batch);
  return scores.subspan(static_cast<std::size_t>(row) * each, each);
}

Json to_json(const SavedModel& model, std::span<const RankedClass> ranking) {
  Json top = Json::array();
  for (const auto& [label, probability] : ranking)
    top.push_back({{"label", label}, {"class", model.class_name(label)}, {"score", rounded(probability)}});
  return top;
}

// The pixels of one image file as the model was evaluated.
Result<void> fill_image(const SavedModel& model, const std::string& file, std::span<float> out) {
  const std::string bytes = TRY(read_regular_file(file));
  const InputShape& shape = model.manifest.identity.shape;
  std::vector<std::uint8_t> pixels(out.size());
  const EncodedImage image{.bytes = {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()},
                           .raw = {}};
  TRY(transform(image, shape, {}, model.evaluation, std::nullopt, file, pixels));
  const InputScaling scaling = input_scaling_of(model.conversion, static_cast<std::size_t>(shape.channels));
  const std::size_t plane = pixels.size() / scaling.scale.size();
  for (std::size_t i = 0; i < pixels.size(); ++i)
    out[i] = static_cast<float>(pixels[i]) * scaling.scale[i / plane] + scaling.shift[i / plane];
  return {};
}

Result<std::string> predict(const SavedModel& model, const std::vector<std::string>& images) {
  const auto batch = std::min<std::int64_t>(std::ssize(images), 32);
  const std::unique_ptr<Engine> engine = TRY(model.make_engine(batch));
  const std::size_t pixels = engine->input().size() / static_cast<std::size_t>(batch);
  Json out{{"schema", "dlrun.predictions/1"},
           {"checkpoint", model.folder.string()},
           {"predictions", Json::array()}};
  for (std::size_t at = 0; at < images.size(); at += static_cast<std::size_t>(batch)) {
    const std::size_t count = std::min(images.size() - at, static_cast<std::size_t>(batch));
    for (std::size_t i = 0; i < count; ++i)
      TRY(fill_image(model, images[at + i], engine->input().subspan(i * pixels, pixels)));
    std::fill(engine->labels().begin(), engine->labels().end(), -1);
    engine->evaluate_batch();
    for (std::size_t i = 0; i < count; ++i) {
      const auto ranking = ranked(row_of(engine->scores(), batch, static_cast<std::int64_t>(i)), kShown);
      out["predictions"].push_back({{"file", images[at + i]},
                                    {"label", ranking[0].label},
                                    {"class", model.class_name(ranking[0].label)},
                                    {"score", rounded(ranking[0].probability)},
                                    {"top", to_json(model, ranking)}});
    }
  }
  return to_pretty_text(out);
}

// What is evaluated must be what the model tells apart.
Result<void> check_classes(const SavedModel& model, const DataParts& data) {
  const InputShape &there = model.manifest.identity.shape, &here = data.train.shape;
  if (there.targets != here.targets || there.depth != here.depth)
    return fail(ErrorKind::input, "the data have {} targets and a depth of {}, and the model {} and {}",
                here.targets, here.depth, there.targets, there.depth);
  if (there.classes != here.classes || there.channels != here.channels || there.height != here.height ||
      there.width != here.width)
    return fail(Error{
        .kind = ErrorKind::input,
        .what = fmt::format("the data are {} x {} x {} in {} classes, and the model is of {} x {} x {} in {}",
                            here.channels, here.height, here.width, here.classes, there.channels,
                            there.height, there.width, there.classes)});
  for (std::size_t i = 0; i < std::min(data.classes.size(), model.manifest.classes.size()); ++i)
    if (data.classes[i] != model.manifest.classes[i])
      return fail(Error{.kind = ErrorKind::input,
                        .what = fmt::format("class {} is '{}' in the data, and '{}' in the model", i,
                                            data.classes[i], model.manifest.classes[i])});
  return {};
}

Json matrix_of(const Confusion& confusion, std::size_t classes) {
  Json out = Json::array();
  for (std::size_t label = 0; label < classes; ++label) {
    Json row = Json::array();
    for (std::size_t taken = 0; taken < classes; ++taken) row.push_back(confusion.count(label, taken));
    out.push_back(std::move(row));
  }
  return out;
}

Result<std::string> evaluate_part(const SavedModel& model, const Dataset& data) {
  if (data.shape.targets > 0) return evaluate_targets(model, data);
  constexpr std::int64_t kBatch = 64;
  const auto batch = std::min<std::int64_t>(kBatch, static_cast<std::int64_t>(data.count));
  const std::unique_ptr<Engine> engine = TRY(model.make_engine(batch));
  const BatchFiller filler(data, model.conversion, {}, {.evaluation = model.evaluation});
  const auto classes = static_cast<std::size_t>(data.shape.classes);
  Confusion confusion(classes);
  double loss = 0;
  std::uint64_t announced = 0;
  for (std::uint64_t at = 0; at < data.count; at += static_cast<std::uint64_t>(batch)) {
    for (; announced < data.count && filler.free_rows() > 0; ++announced)
      filler.announce(announced, std::nullopt);
    const std::uint64_t count = std::min<std::uint64_t>(static_cast<std::uint64_t>(batch), data.count - at);
    filler.fill(
        count, [&](std::uint64_t i) { return at + i; }, std::nullopt, engine->input(), engine->labels());
    TRY(filler.state());
    loss += engine->evaluate_batch().loss_sum;
    for (std::int64_t row = 0; row < batch; ++row)
      if (const std::int32_t label = engine->labels()[static_cast<std::size_t>(row)]; label >= 0)
        confusion.add(static_cast<std::size_t>(label), ranked(row_of(engine->scores(), batch, row), kShown));
  }
  if (confusion.rows() == 0) return none_left("to evaluate");
  Json out{{"schema", "dlrun.evaluation/1"},
           {"checkpoint", model.folder.string()},
           {"images", confusion.rows()},
           {"top1", rounded(confusion.top1())},
           {"top5", rounded(confusion.top5())},
           {"loss", rounded(loss / static_cast<double>(std::max<std::uint64_t>(1, confusion.rows())))},
           {"damaged", filler.take_dropped()}};
  if (!model.manifest.classes.empty()) out["classes"] = model.manifest.classes;
  if (classes <= kMatrix) out["confusion"] = matrix_of(confusion, classes);
  return to_pretty_text(out);
}

// What is evaluated must be of the words that the model knows.
Result<void> check_vocabulary(const SavedModel& model, const Dataset& data) {
  const std::int64_t there = model.manifest.identity.shape.classes, here = data.shape.classes;
  if (there != here)
    return fail(Error{.kind = ErrorKind::input,
                      .what = fmt::format("the data have a vocabulary of {} tokens, and the model one of {}",
                                          here, there)});
  const std::uint64_t tokenizer = model.manifest.tokenizer_checksum;
  if (tokenizer == 0 || data.tokens->tokenizer() == tokenizer) return {};
  return fail(Error{.kind = ErrorKind::input,
                    .what = "the data were written with another tokenizer than the model was trained with"});
}

Result<std::string> evaluate_language(const SavedModel& model, const Flags& flags) {
  const InputShape& shape = model.manifest.identity.shape;
  Flags asked = flags;
  asked.try_emplace("--from", "tokens");
  const auto source = TRY(source_of(asked, flags.at("--evaluate"), SourceUse::to_read,
                                    {{"context", std::to_string(shape.height)}}));
  if (source->kind() != SampleKind::tokens) return wrong_option("--from: the model reads tokens");
  const Dataset data = TRY(source->load_evaluated());
  TRY(check_vocabulary(model, data));
  const std::uint64_t batch = std::min<std::uint64_t>(data.count, 8);
  const std::unique_ptr<Engine> engine = TRY(model.make_engine(static_cast<std::int64_t>(batch)));
  const BatchFiller filler(data, {}, {});
  double loss = 0, correct = 0;
  for (std::uint64_t at = 0; at < data.count; at += batch) {
    filler.fill(
        std::min(batch, data.count - at), [at](std::uint64_t i) { return at + i; }, std::nullopt,
        rows_of(*engine));
    TRY(filler.state());
    const BatchResult result = engine->evaluate_batch();
    loss += result.loss_sum;
    correct += static_cast<double>(result.correct);
  }
  const auto sequences = static_cast<double>(data.count);
  return to_pretty_text(
      Json{{"schema", "dlrun.evaluation/1"},
           {"checkpoint", model.folder.string()},
           {"sequences", data.count},
           {"tokens", data.count * static_cast<std::uint64_t>(shape.height)},
           {"loss", rounded(loss / sequences)},
           {"perplexity", rounded(std::exp(loss / sequences))},
           {"accuracy", rounded(correct / (sequences * static_cast<double>(shape.height)))}});
}

// The number of classes and the size of images are the model's, where a format asks for them.
Result<std::string> evaluate_folder(const SavedModel& model, const Flags& flags) {
  const InputShape& shape = model.manifest.identity.shape;
  Flags defaults{{"size", fmt::format("[{}, {}]", shape.height, shape.width)},
                 {"classes", std::to_string(shape.classes)}};
  if (shape.channels == 1) defaults["channels"] = "1";
  if (model.reads_numbers()) {
    defaults.erase("size");
    if (shape.targets > 0) defaults.erase("classes");
    if (const auto axes = model.manifest.settings.find("data.axes"); axes != model.manifest.settings.end())
      defaults["axes"] = axes->second;
    if (model.reads_deep_images()) defaults["bit-depth"] = "16";
  }
  if (model.evaluation.centre_crop)
    defaults["centre-crop"] = fmt::format("{}", *model.evaluation.centre_crop);
  const auto source = TRY(source_of(flags, flags.at("--evaluate"), SourceUse::to_read, defaults));
  const DataParts data = TRY(source->load(0));
  TRY(check_classes(model, data));
  return evaluate_part(model, data.test.count > 0 ? data.test : data.train);
}

Result<std::string> weights_file(const SavedModel& model) {
  const std::unique_ptr<Engine> engine = TRY(model.make_engine(1));
  return weight_file_of(*engine, model.graph);
}

Result<std::string> export_model(const SavedModel& model, const std::string& file) {
  const std::string ending = std::filesystem::path(file).extension().string();
  if (ending != ".onnx" && ending != ".safetensors")
    return wrong_option(fmt::format("--export: '{}' must end in .safetensors or .onnx", file));
  const std::string content = ending == ".onnx" ? TRY(onnx_of(model)) : TRY(weights_file(model));
  TRY(replace_file(file, content, Durability::synced));
  return fmt::format("wrote {}: {} of step {}, {} bytes", file, model.manifest.identity.model,
                     model.manifest.position.step, content.size());
}

Result<SampleOptions> read_sample_options(const Flags& flags) {
  SampleOptions out;
  const auto whole = [&](const char* name, std::int64_t otherwise,
                         std::int64_t highest) -> Result<std::uint64_t> {
    const auto found = flags.find(name);
    if (found == flags.end()) return static_cast<std::uint64_t>(otherwise);
    const auto value = parse_integer(found->second, 0, highest);
    if (!value)
      return wrong_option(fmt::format("{}: '{}' is out of range [0, {}]", name, found->second, highest));
    return static_cast<std::uint64_t>(*value);
  };
  out.length = TRY(whole("--length", static_cast<std::int64_t>(out.length), 1'000'000));
  out.top_k = TRY(whole("--top-k", 0, 1 << 24));
  out.seed = TRY(whole("--seed", 1, INT64_MAX));
  const auto temperature = flags.find("--temperature");
  if (temperature == flags.end()) return out;
  const auto value = parse_number(temperature->second);
  if (!value || *value < 0 || *value > 100)
    return wrong_option(fmt::format("--temperature: '{}' is out of range [0, 100]", temperature->second));
  out.temperature = *value;
  return out;
}

// Flags that go with one command alone.
Result<void> check_flags(const Flags& flags) {
  for (const char* name : {"--length", "--temperature", "--top-k", "--seed"})
    if (flags.contains(name) && !flags.contains("--sample"))
      return wrong_option(fmt::format("{} needs --sample", name));
  return {};
}

// --predict takes files until the next flag.
std::vector<std::string> take_images(std::vector<std::string>& words) {
  const auto begin = words.begin() + 1;
  const auto end =
      std::find_if(begin, words.end(), [](const std::string& word) { return word.starts_with("--"); });
  std::vector<std::string> out(begin, end);
  words.erase(words.begin(), end);
  return out;
}

}  // namespace

bool is_model_command(const std::vector<std::string>& words) {
  if (words.empty()) return false;
  const std::string name = words[0].substr(0, words[0].find('='));
  return name == "--evaluate" || name == "--predict" || name == "--export" || name == "--sample";
}

Result<std::string> run_model_command(const std::vector<std::string>& all) {
  std::vector<std::string> words = all, images;
  if (words[0] == "--predict") images = take_images(words);
  static const std::vector<std::string> known{
      "--evaluate",    "--export",  "--checkpoint",  "--from",      "--list",      "--classes",
      "--test-list",   "--damaged", "--first-label", "--image-key", "--label-key", "--channels",
      "--samples",     "--labels",  "--targets",     "--axes",      "--sample",    "--length",
      "--temperature", "--top-k",   "--seed"};
  const Flags flags = TRY(read_flags(words, known));
  TRY(check_flags(flags));
  if (!flags.contains("--checkpoint")) return wrong_option("--checkpoint DIR, of the model, is missing");
  const SavedModel model = TRY(SavedModel::open(flags.at("--checkpoint")));
  if (flags.contains("--export")) return export_model(model, flags.at("--export"));
  if (flags.contains("--sample"))
    return sample_text(model, flags.at("--sample"), TRY(read_sample_options(flags)));
  if (model.is_gan())
    return wrong_option(
        fmt::format("{} needs classes, which {}, a GAN, does not have", all[0].substr(0, all[0].find('=')),
                    model.manifest.identity.model),
        "--export FILE.safetensors writes its weights, a training images (samples-epoch-0001.png)");
  if (flags.contains("--evaluate"))
    return model.is_language() ? evaluate_language(model, flags) : evaluate_folder(model, flags);
  if (model.is_language())
    return wrong_option(
        fmt::format("--predict is for images, and {} is a language model", model.manifest.identity.model),
        "use --sample TEXT");
  if (images.empty())
    return wrong_option(model.reads_numbers() && !model.reads_deep_images() ? "--predict needs .npy files"
                                                                            : "--predict needs images");
  if (model.reads_numbers()) return predict_numbers(model, images);
  return predict(model, images);
}

}  // namespace dlrun::runtime
