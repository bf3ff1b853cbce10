// TensorReader: any part of any tensor of a checkpoint, from whichever of its files have it: what ranks wrote
// together, other ranks, of another number, read. Only the bytes of the wanted part are touched. A set of
// files whose parts overlap, or do not make whole tensors, is refused when it is opened; whether a file's
// content is as it was written, verify() tells.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/mapped_file.hpp"
#include "runtime/checkpoint/manifest.hpp"
#include "runtime/checkpoint/safetensors.hpp"

namespace dlrun::runtime {

class TensorReader {
 public:
  /// The files that the manifest lists, in the checkpoint's folder. An Error names the file.
  static Result<TensorReader> open(const std::filesystem::path& folder, const Manifest& manifest);

  /// Compares the checksum of each file with the manifest's: reads all of them.
  Result<void> verify() const;
  bool has(const std::string& tensor) const { return tensors_.contains(tensor); }
  std::size_t tensors() const { return tensors_.size(); }
  /// The numbers of a box. An Error where the tensor is absent, or the whole has another shape.
  Result<void> read(const std::string& tensor, const TensorShape& whole, const TensorBox& box,
                    std::span<float> out) const;

 private:
  struct Piece {
    std::size_t file;
    std::size_t begin;  // byte in the file
    TensorBox box;
  };
  struct Tensor {
    TensorShape whole;
    std::vector<Piece> pieces;
  };
  Result<void> add_file(const std::filesystem::path& path, const ManifestFile& promised);
  Result<void> add(std::size_t file, const StoredTensor& stored);
  Result<void> check_complete() const;
  std::string name_of(std::size_t file) const { return promised_[file].name; }

  std::vector<MappedFile> files_;
  std::vector<ManifestFile> promised_;
  std::map<std::string, Tensor> tensors_;
};

}  // namespace dlrun::runtime
