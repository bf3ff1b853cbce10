// See tensor_reader.hpp.
#include "runtime/checkpoint/tensor_reader.hpp"

#include <fmt/format.h>

#include "runtime/base/checksum.hpp"
#include "src/base/json.hpp"

namespace dlrun::runtime {

Result<TensorReader> TensorReader::open(const std::filesystem::path& folder, const Manifest& manifest) {
  TensorReader out;
  for (const ManifestFile& file : manifest.files) TRY(out.add_file(folder / file.name, file));
  TRY(out.check_complete());
  return out;
}

Result<void> TensorReader::add_file(const std::filesystem::path& path, const ManifestFile& promised) {
  MappedFile file = TRY(MappedFile::open(path));
  if (file.bytes().size() != promised.bytes)
    return bad_input(promised.name, fmt::format("has {} bytes, but {} in the manifest", file.bytes().size(),
                                                promised.bytes));
  const std::vector<StoredTensor> stored = TRY(parse_safetensors(file.bytes(), promised.name));
  files_.push_back(std::move(file));
  promised_.push_back(promised);
  for (const StoredTensor& tensor : stored) TRY(add(files_.size() - 1, tensor));
  return {};
}

Result<void> TensorReader::add(std::size_t file, const StoredTensor& stored) {
  const PartOf part = stored.part.value_or(PartOf{stored.name, stored.shape, whole_box(stored.shape)});
  Tensor& tensor = tensors_.try_emplace(part.tensor, Tensor{part.whole, {}}).first->second;
  if (tensor.whole != part.whole)
    return bad_input(name_of(file), fmt::format("tensor '{}' has another shape as a whole than in {}",
                                                part.tensor, name_of(tensor.pieces.front().file)));
  for (const Piece& other : tensor.pieces)
    if (common_part(other.box, part.box))
      return bad_input(name_of(file), fmt::format("tensor '{}' has numbers that {} has, too", stored.name,
                                                  name_of(other.file)));
  tensor.pieces.push_back({file, stored.begin, part.box});
  return {};
}

// Where no two overlap, as many numbers as the whole has are the whole.
Result<void> TensorReader::check_complete() const {
  for (const auto& [name, tensor] : tensors_) {
    std::size_t have = 0;
    for (const Piece& piece : tensor.pieces) have += piece.box.elements();
    if (have != elements_of(tensor.whole))
      return bad_input(name_of(tensor.pieces.front().file),
                       fmt::format("of tensor '{}', the files of this checkpoint have {} of {} numbers", name,
                                   have, elements_of(tensor.whole)));
  }
  return {};
}

Result<void> TensorReader::verify() const {
  for (std::size_t file = 0; file < files_.size(); ++file)
    if (const std::uint64_t have = checksum(files_[file].bytes()); have != promised_[file].checksum)
      return bad_input(name_of(file), fmt::format("checksum {}, but {} in the manifest", hex(have),
                                                  hex(promised_[file].checksum)));
  return {};
}

Result<void> TensorReader::read(const std::string& tensor, const TensorShape& whole, const TensorBox& box,
                                std::span<float> out) const {
  const auto found = tensors_.find(tensor);
  if (found == tensors_.end() || found->second.whole != whole)
    return fail(ErrorKind::input, "tensor '{}' is {}", tensor,
                found == tensors_.end() ? "missing" : "of another shape");
  if (!is_within(box, whole) || box.elements() != out.size())
    return fail(ErrorKind::internal, "tensor '{}' has no part {}", tensor, text_of(box));
  for (const Piece& piece : found->second.pieces)
    if (const auto part = common_part(piece.box, box)) {
      const std::byte* const numbers = files_[piece.file].bytes().data() + piece.begin;
      copy_part(*part, piece.box, reinterpret_cast<const float*>(numbers), box, out.data());
    }
  return {};
}

}  // namespace dlrun::runtime
