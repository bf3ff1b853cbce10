// See safetensors.hpp.
#include "runtime/checkpoint/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "src/base/json.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun::runtime {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors images are made by copying");

constexpr std::size_t alignment = 64;
constexpr std::uint64_t longest_header = 16u << 20;

// Elements of a shape; an overflow or a negative size has none.
std::uint64_t elements(const std::vector<std::int64_t>& shape, std::uint64_t most) {
  std::uint64_t product = 1;
  for (const std::int64_t side : shape) {
    if (side < 0 || (side > 0 && product > most / static_cast<std::uint64_t>(side))) return most + 1;
    product *= static_cast<std::uint64_t>(side);
  }
  return product;
}

struct StoredTypeName {
  std::string_view name;
  std::size_t bytes;
  StoredTensor::Type type;
};
constexpr StoredTypeName kTypes[] = {
    {"F32", 4, StoredTensor::Type::f32},   {"F16", 2, StoredTensor::Type::f16},
    {"BF16", 2, StoredTensor::Type::bf16}, {"F64", 8, StoredTensor::Type::other},
    {"I64", 8, StoredTensor::Type::other}, {"I32", 4, StoredTensor::Type::other},
    {"I16", 2, StoredTensor::Type::other}, {"I8", 1, StoredTensor::Type::other},
    {"U8", 1, StoredTensor::Type::other},  {"BOOL", 1, StoredTensor::Type::other}};

Result<StoredTensor> parse_entry(const std::string& key, const Json& value, std::size_t data_start,
                                 std::size_t data_bytes, const std::string& name, StoredTypes types) {
  const std::string where = fmt::format("{}: tensor '{}'", name, key);
  const auto type = TRY(field<std::string>(value, "dtype", where));
  const auto* const known =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& each) { return each.name == type; });
  if (types == StoredTypes::f32 && type != "F32")
    return bad_input(where, fmt::format("has the type '{}'; only F32 is supported", type));
  if (known == std::end(kTypes)) return bad_input(where, fmt::format("has the unknown type '{}'", type));
  StoredTensor out{.name = key, .shape = {}};
  out.type = known->type;
  out.shape = TRY(field<std::vector<std::int64_t>>(value, "shape", where));
  const auto offsets = TRY(field<std::vector<std::uint64_t>>(value, "data_offsets", where));
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data_bytes)
    return bad_input(where, fmt::format("data_offsets are outside of the {} bytes of data", data_bytes));
  out.begin = data_start + offsets[0];
  out.bytes = offsets[1] - offsets[0];
  if (types == StoredTypes::f32 && out.begin % sizeof(float) != 0)
    return bad_input(where, "is not aligned to four bytes");
  if (elements(out.shape, data_bytes / known->bytes) * known->bytes != out.bytes)
    return bad_input(where, fmt::format("its shape does not have the {} bytes of its offsets", out.bytes));
  return out;
}

// "3072x768"
std::string shape_text(const TensorShape& shape) {
  return fmt::format("{}", fmt::join(shape, "x"));
}

Result<TensorShape> parse_shape(const std::string& text, const std::string& where) {
  TensorShape out;
  if (text.empty()) return out;
  for (const std::string& word : split(text, 'x')) {
    const auto extent = parse_integer(word, 0, std::int64_t{1} << 40);
    if (!extent) return bad_input(where, fmt::format("its whole has the shape '{}'", text));
    out.push_back(*extent);
  }
  return out;
}

// Set where the file's metadata says that the entry is a part.
Result<void> read_part(StoredTensor& tensor, const Json& metadata, const std::string& name) {
  if (!metadata.is_object() || !metadata.contains(tensor.name)) return {};
  const std::string where = fmt::format("{}: tensor '{}'", name, tensor.name);
  const std::size_t ranges = tensor.name.find_last_of('[');
  const auto box = ranges == std::string::npos ? std::nullopt : parse_box(tensor.name.substr(ranges));
  if (!box) return bad_input(where, "is a part, and its name does not end in ranges like [0:4,0:8]");
  PartOf part{tensor.name.substr(0, ranges), {}, *box};
  part.whole = TRY(parse_shape(TRY(field<std::string>(metadata, tensor.name, where)), where));
  if (!is_within(part.box, part.whole) || part.box.count != tensor.shape)
    return bad_input(where, fmt::format("is no part of a tensor of the shape {} with the shape {}",
                                        shape_text(part.whole), shape_text(tensor.shape)));
  tensor.part = std::move(part);
  return {};
}

// Tensors must tile the data: no gap, no overlap, nothing behind the last.
Result<void> check_tiling(const std::vector<StoredTensor>& tensors, std::size_t data_start,
                          std::size_t file_bytes, const std::string& name) {
  std::size_t at = data_start;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.begin != at)
      return bad_input(name, fmt::format("tensor '{}' leaves a gap or overlaps at byte {}", tensor.name, at));
    at += tensor.bytes;
  }
  if (at != file_bytes)
    return bad_input(name, fmt::format("{} bytes follow the last tensor", file_bytes - at));
  return {};
}

}  // namespace

StoredTensor stored_box(const std::string& tensor, const TensorShape& whole, const TensorBox& box) {
  if (box == whole_box(whole)) return {.name = tensor, .shape = whole};
  return {.name = tensor + text_of(box), .shape = box.count, .part = PartOf{tensor, whole, box}};
}

SafetensorsLayout plan_safetensors(std::vector<StoredTensor> tensors) {
  std::size_t at = 0;
  Json header = Json::object();
  header["__metadata__"] = {{"format", "pt"}};
  for (StoredTensor& tensor : tensors) {
    tensor.begin = at;
    tensor.bytes = elements(tensor.shape, SIZE_MAX / 8) * sizeof(float);
    at += tensor.bytes;
    if (tensor.part) header["__metadata__"][tensor.name] = shape_text(tensor.part->whole);
    header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {tensor.begin, at}}};
  }
  std::string text = dlrun::to_text(header);
  text.resize((text.size() + 8 + alignment - 1) / alignment * alignment - 8, ' ');
  const std::uint64_t length = text.size();
  SafetensorsLayout out{.head = std::string(8, '\0') + text, .tensors = std::move(tensors)};
  std::memcpy(out.head.data(), &length, sizeof length);
  for (StoredTensor& tensor : out.tensors) tensor.begin += out.head.size();
  out.file_bytes = out.head.size() + at;
  return out;
}

Result<std::vector<StoredTensor>> parse_safetensors(std::span<const std::byte> file, const std::string& name,
                                                    StoredTypes types) {
  if (file.size() < 8)
    return bad_input(name, fmt::format("has {} bytes, too short for a safetensors file", file.size()));
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  if (length > longest_header || length > file.size() - 8)
    return bad_input(name, fmt::format("has a header of {} bytes by its first number, in a file of {}",
                                       length, file.size()));
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + 8, length);
  const Json header = TRY(parse_json(text, name));
  if (!header.is_object()) return bad_input(name, "its header is not a JSON object");
  const std::size_t start = 8 + length;
  std::vector<StoredTensor> out;
  for (const auto& [key, value] : header.items())
    if (key != "__metadata__")
      out.push_back(TRY(parse_entry(key, value, start, file.size() - start, name, types)));
  if (header.contains("__metadata__"))
    for (StoredTensor& tensor : out) TRY(read_part(tensor, header["__metadata__"], name));
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  TRY(check_tiling(out, start, file.size(), name));
  return out;
}

namespace {

float of_half(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16, exponent = bits >> 10 & 31,
                      fraction = bits & 1023;
  if (exponent == 0) {
    const float small = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -small : small;
  }
  const std::uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

}  // namespace

Result<void> read_stored(std::span<const std::byte> file, const StoredTensor& tensor, std::span<float> out) {
  const std::byte* const from = file.data() + tensor.begin;
  if (tensor.type == StoredTensor::Type::f32) {
    std::memcpy(out.data(), from, out.size_bytes());
    return {};
  }
  if (tensor.type == StoredTensor::Type::other)
    return fail(
        Error{.kind = ErrorKind::input,
              .what = fmt::format("tensor '{}' has a type that is not F32, F16 or BF16", tensor.name)});
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, from + 2 * i, sizeof bits);
    out[i] = tensor.type == StoredTensor::Type::f16 ? of_half(bits)
                                                    : std::bit_cast<float>(std::uint32_t{bits} << 16);
  }
  return {};
}

}  // namespace dlrun::runtime
