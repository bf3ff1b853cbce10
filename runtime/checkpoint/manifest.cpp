// See manifest.hpp.
#include "runtime/checkpoint/manifest.hpp"

#include <algorithm>

#include "runtime/base/checksum.hpp"
#include "runtime/base/counted.hpp"
#include "src/base/json.hpp"
#include "src/base/strings.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::string_view schema = "dlrun.checkpoint/1";
constexpr std::string_view kTokens = "tokens";

Json shape_json(const InputShape& shape) {
  return Json{shape.channels, shape.height, shape.width, shape.classes};
}

Result<std::uint64_t> parse_hex(const Json& object, std::string_view key, const std::string& name) {
  const auto text = TRY(field<std::string>(object, key, name));
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    return bad_input(name, fmt::format("field '{}' is '{}', not 16 hexadecimal digits", key, text));
  return std::stoull(text, nullptr, 16);
}

Json body(const Manifest& manifest) {
  Json files = Json::array();
  for (const ManifestFile& file : manifest.files)
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"xxh3", hex(file.checksum)}});
  const Identity& id = manifest.identity;
  Json out{{"schema", schema},
           {"step", manifest.position.step},
           {"epoch", manifest.position.epoch},
           {"seen", manifest.position.seen},
           {"world", manifest.world},
           {"batch", manifest.batch},
           {"model", id.model},
           {"input", shape_json(id.shape)},
           {"seed", id.seed},
           {"samples", id.samples},
           {"data", hex(id.data)},
           {"tensors", hex(id.tensors)},
           {"precision", manifest.precision},
           {"plan", hex(manifest.plan_hash)},
           {"program", manifest.program},
           {"written", manifest.written},
           {"settings", manifest.settings},
           {"computed_with", manifest.computed_with},
           {"files", files}};
  if (id.shape.kind == SampleKind::tokens) out["input_kind"] = kTokens;
  if (id.shape.depth > 0) out["depth"] = id.shape.depth;
  if (id.shape.targets > 0) out["targets"] = id.shape.targets;
  if (manifest.tokenizer_checksum != 0) out["tokenizer"] = hex(manifest.tokenizer_checksum);
  if (!manifest.classes.empty()) out["classes"] = manifest.classes;
  if (!manifest.layers.empty()) out["layers"] = manifest.layers;
  if (manifest.shards) out["shards"] = *manifest.shards;
  if (manifest.epoch_sums) out["epoch_sums"] = *manifest.epoch_sums;
  if (manifest.parts != 0) out["parts"] = manifest.parts;
  return out;
}

Result<Identity> parse_identity(const Json& json, const std::string& name) {
  const auto shape = TRY(field<std::vector<std::int64_t>>(json, "input", name));
  if (shape.size() != 4) return bad_input(name, "field 'input' does not have four numbers");
  Identity out;
  out.model = TRY(field<std::string>(json, "model", name));
  out.shape = {shape[0], shape[1], shape[2], shape[3]};
  if (json.contains("input_kind")) {
    if (TRY(field<std::string>(json, "input_kind", name)) != kTokens)
      return bad_input(name, fmt::format("field 'input_kind' is not '{}'", kTokens));
    out.shape.kind = SampleKind::tokens;
  }
  if (json.contains("depth")) out.shape.depth = TRY(field<std::int64_t>(json, "depth", name));
  if (json.contains("targets")) out.shape.targets = TRY(field<std::int64_t>(json, "targets", name));
  out.seed = TRY(field<std::uint64_t>(json, "seed", name));
  out.samples = TRY(field<std::uint64_t>(json, "samples", name));
  out.data = TRY(parse_hex(json, "data", name));
  out.tensors = TRY(parse_hex(json, "tensors", name));
  return out;
}

Result<std::vector<ManifestFile>> parse_files(const Json& json, const std::string& name) {
  std::vector<ManifestFile> out;
  const Json list = TRY(field<Json>(json, "files", name));
  for (const Json& entry : list) {
    ManifestFile file;
    file.name = TRY(field<std::string>(entry, "name", name));
    file.bytes = TRY(field<std::uint64_t>(entry, "bytes", name));
    file.checksum = TRY(parse_hex(entry, "xxh3", name));
    if (file.name.find('/') != std::string::npos) return bad_input(name, "a file's name has a slash");
    out.push_back(std::move(file));
  }
  return out;
}

Result<EpochSums> parse_sums(const Json& json, const std::string& name) {
  const auto sums = TRY(field<std::vector<double>>(json, "epoch_sums", name));
  EpochSums out{};
  if (sums.size() != out.size())
    return bad_input(name, fmt::format("field 'epoch_sums' has {} numbers, not {}", sums.size(), out.size()));
  std::copy(sums.begin(), sums.end(), out.begin());
  return out;
}

// Without the average of the weights that it keeps.
std::string_view kind_of(std::string_view optimizer) {
  return optimizer.substr(0, optimizer.find(kWithAverage));
}

bool has_average(const Settings& settings) {
  const auto ema = settings.find("ema");
  return ema != settings.end() && ema->second != "none";
}

}  // namespace

std::string difference(const Identity& there, const Identity& here) {
  std::vector<std::string> out;
  const auto compare = [&](std::string_view what, const auto& a, const auto& b) {
    if (a != b) out.push_back(fmt::format("{} {} there, {} here", what, a, b));
  };
  compare("model", there.model, here.model);
  const auto shape = [](const InputShape& s) {
    if (s.kind == SampleKind::tokens) return fmt::format("sequences of {}", counted(s.height, "token"));
    if (s.depth > 0) return fmt::format("{}x{}x{}x{}", s.channels, s.depth, s.height, s.width);
    return fmt::format("{}x{}x{}", s.channels, s.height, s.width);
  };
  compare("input", shape(there.shape), shape(here.shape));
  compare("classes", there.shape.classes, here.shape.classes);
  compare("targets", there.shape.targets, here.shape.targets);
  compare("seed", there.seed, here.seed);
  compare("training samples", there.samples, here.samples);
  if (out.empty()) compare("training data (fingerprint)", hex(there.data), hex(here.data));
  if (out.empty() && !there.optimizer.empty() && !here.optimizer.empty())
    compare(kind_of(there.optimizer) == kind_of(here.optimizer) ? "train.ema:" : "train.optimizer.name:",
            there.optimizer, here.optimizer);
  if (out.empty())
    compare("tensors of the model and its optimizer (checksum)", hex(there.tensors), hex(here.tensors));
  return join(out, "; ");
}

std::string to_text(const Manifest& manifest) {
  Json json = body(manifest);
  json["checksum"] = hex(checksum(dlrun::to_text(json)));
  return to_pretty_text(json);
}

Result<Manifest> parse_manifest(std::string_view text, const std::string& name) {
  Json json = TRY(parse_json(text, name));
  if (TRY(field<std::string>(json, "schema", name)) != schema)
    return bad_input(name, fmt::format("schema is {}, not {}", short_text(json["schema"]), schema));
  const std::uint64_t promised = TRY(parse_hex(json, "checksum", name));
  json.erase("checksum");
  if (checksum(dlrun::to_text(json)) != promised)
    return bad_input(name, "its own checksum does not match: it was altered");
  Manifest out;
  out.position.step = TRY(field<std::uint64_t>(json, "step", name));
  out.position.epoch = TRY(field<std::uint64_t>(json, "epoch", name));
  out.position.seen = TRY(field<std::uint64_t>(json, "seen", name));
  out.identity = TRY(parse_identity(json, name));
  out.world = TRY(field<int>(json, "world", name));
  out.batch = TRY(field<std::int64_t>(json, "batch", name));
  out.precision = TRY(field<std::string>(json, "precision", name));
  out.plan_hash = TRY(parse_hex(json, "plan", name));
  out.program = TRY(field<std::string>(json, "program", name));
  out.written = TRY(field<std::string>(json, "written", name));
  out.files = TRY(parse_files(json, name));
  if (json.contains("epoch_sums")) out.epoch_sums = TRY(parse_sums(json, name));
  if (json.contains("shards")) out.shards = TRY(field<int>(json, "shards", name));
  if (json.contains("parts")) {
    out.parts = TRY(field<int>(json, "parts", name));
    if (out.parts < 1) return bad_input(name, fmt::format("field 'parts' is {}", out.parts));
  }
  if (json.contains("tokenizer")) out.tokenizer_checksum = TRY(parse_hex(json, "tokenizer", name));
  if (json.contains("settings")) out.settings = TRY(field<Settings>(json, "settings", name));
  if (json.contains("computed_with")) out.computed_with = TRY(field<Settings>(json, "computed_with", name));
  if (json.contains("classes")) out.classes = TRY(field<std::vector<std::string>>(json, "classes", name));
  if (json.contains("layers")) out.layers = TRY(field<std::string>(json, "layers", name));
  if (const auto optimizer = out.settings.find("optimizer.name"); optimizer != out.settings.end())
    out.identity.optimizer = optimizer->second + (has_average(out.settings) ? kWithAverage : "");
  if (out.position.seen >= out.identity.samples)
    return bad_input(
        name, fmt::format("{} samples seen of an epoch of {}", out.position.seen, out.identity.samples));
  return out;
}

}  // namespace dlrun::runtime
