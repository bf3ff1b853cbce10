// The format `tfrecord`: files of records, each a tf.Example with an encoded image and a label, or raw pixels
// under the same key. Both CRCs of a record are verified: the length's at the start, the data's whenever a
// sample is read. Names are those of most ImageNet files, unless the job says others.
#include "runtime/base/crc32c.hpp"
#include "runtime/base/protobuf.hpp"
#include "runtime/data/encoded/container.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::size_t kHead = 12, kTail = 4;  // length and its CRC; the data's CRC

std::uint64_t little(std::string_view bytes) {
  std::uint64_t out = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) out = out << 8 | static_cast<unsigned char>(bytes[i]);
  return out;
}

tl::unexpected<Error> no_example(std::string what) {
  return fail(Error{.kind = ErrorKind::input, .what = "the record is no tf.Example: " + std::move(what)});
}

// The tf.Feature of a name: Example {1: Features {1: map entries {1: name, 2: feature}}}.
Result<std::optional<std::string_view>> find_feature(std::string_view example, std::string_view name) {
  ProtoReader outer(example);
  while (const auto features = outer.next()) {
    if (features->number != 1 || features->kind != ProtoField::Kind::bytes) continue;
    ProtoReader entries(features->bytes);
    while (const auto entry = entries.next()) {
      if (entry->kind != ProtoField::Kind::bytes) continue;
      ProtoReader pair(entry->bytes);
      std::string_view key, value;
      while (const auto part = pair.next()) (part->number == 1 ? key : value) = part->bytes;
      if (!pair.is_sound()) return no_example("a feature is cut short");
      if (key == name) return std::optional(value);
    }
    if (!entries.is_sound()) return no_example("its features are cut short");
  }
  if (!outer.is_sound()) return no_example("a field is cut short");
  return std::optional<std::string_view>();
}

// The first value of a Feature's list: 1 bytes, 3 int64 (packed or not).
Result<ProtoField> first_value(std::string_view feature, std::uint32_t list, std::string_view name) {
  ProtoReader kinds(feature);
  while (const auto kind = kinds.next()) {
    if (kind->number != list || kind->kind != ProtoField::Kind::bytes) continue;
    ProtoReader values(kind->bytes);
    auto value = values.next();
    if (value && list == 3 && value->kind == ProtoField::Kind::bytes) {
      const auto packed = ProtoReader(value->bytes).varint();
      if (!packed) break;
      value = ProtoField{.number = 1, .kind = ProtoField::Kind::varint, .value = *packed, .bytes = {}};
    }
    if (value) return *value;
  }
  return fail(Error{.kind = ErrorKind::input,
                    .what = fmt::format("feature '{}' has no {}", name, list == 1 ? "bytes" : "int64")});
}

Result<ProtoField> value_of(std::string_view example, const std::string& name, std::uint32_t list) {
  const auto feature = TRY(find_feature(example, name));
  if (feature) return first_value(*feature, list, name);
  return fail(Error{.kind = ErrorKind::input,
                    .what = fmt::format("the tf.Example has no feature '{}'", name),
                    .hint = "data.image-key and data.label-key name the features"});
}

Result<std::uint16_t> label_in(std::string_view example, const ContainerSpec& spec) {
  const ProtoField label = TRY(value_of(example, spec.label_key, 3));
  return class_of(static_cast<std::int64_t>(label.value), spec);
}

Result<void> find_records(const MappedFile& file, const ContainerSpec& spec, FoundSamples& out) {
  const std::string_view all(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  if (all.empty()) return damaged_at(file, 0, "the file is empty: it was cut short, or never written");
  for (std::uint64_t at = 0; at < all.size();) {
    const std::string_view rest = all.substr(at);
    if (rest.size() < kHead)
      return damaged_at(file, at, "the file ends within the header of a record: it was cut short");
    if (masked_crc32c(rest.substr(0, 8)) != little(rest.substr(8, 4)))
      return damaged_at(file, at, "the CRC of a record's length is wrong");
    const std::uint64_t length = little(rest.substr(0, 8));
    if (rest.size() < kHead + kTail || length > rest.size() - kHead - kTail)
      return damaged_at(file, at,
                        fmt::format("the file ends within a record of {} bytes: it was cut short", length));
    const auto label = label_in(rest.substr(kHead, length), spec);
    if (label && length + kTail < Extent::kWholeFile) {
      out.samples.push_back({at + kHead, static_cast<std::uint32_t>(length + kTail), *label});
    } else {
      Error error =
          label ? Error{.kind = ErrorKind::input, .what = "a record of 4 GiB or more"} : label.error();
      error.where = place_in_file(file.name(), at);
      if (spec.damaged == Damaged::refused) return fail(std::move(error));
      out.dropped.push_back(error.text());
    }
    at += kHead + length + kTail;
  }
  return {};
}

EncodedSamples::Unwrap unwrap_with(const ContainerSpec& spec) {
  return [name = spec.image_key](EncodedSamples::Record record) -> Result<EncodedImage> {
    const std::string_view all(reinterpret_cast<const char*>(record.data()), record.size());
    const std::string_view example = all.substr(0, all.size() - kTail);
    if (masked_crc32c(example) != little(all.substr(example.size())))
      return fail(Error{.kind = ErrorKind::input, .what = "the CRC of the record's data is wrong"});
    const std::string_view image = TRY(value_of(example, name, 1)).bytes;
    return EncodedImage{.bytes = {reinterpret_cast<const std::uint8_t*>(image.data()), image.size()},
                        .raw = {}};
  };
}

// "train-00001-of-01024" has no ending, others have one of these.
bool is_record_file(const std::filesystem::path& file) {
  const std::string ending = file.extension().string();
  return ending.empty() || ending == ".tfrecord" || ending == ".tfrecords";
}

constexpr Container kRecords = {
    .accepts = is_record_file, .find = find_records, .unwrap = unwrap_with, .files = "TFRecord files"};

}  // namespace

DataFormat::Read read_tfrecord_section;

Result<std::shared_ptr<const DataSource>> read_tfrecord_section(yaml::Fields& data, double train_share) {
  ContainerSpec spec = TRY(read_container_section(data, train_share));
  spec.image_key = TRY(data.text_or("image-key", "image/encoded"));
  spec.label_key = TRY(data.text_or("label-key", "image/class/label"));
  return make_container_source(std::move(spec), kRecords);
}

}  // namespace dlrun::runtime
