// Containers: files that hold many samples each (tar, TFRecord, LMDB). What they have in common is here: the
// keys of the job file, the parts, reading all files of a part side by side, and what becomes of damage. A
// container is one function, which finds the samples of a file, and one that takes an image out of a record.
#pragma once

#include "runtime/base/mapped_file.hpp"
#include "runtime/data/data_format.hpp"

namespace dlrun::runtime {

struct ContainerSpec {
  std::filesystem::path directory = {};
  std::int64_t classes = 10, channels = 3, height = 224, width = 224;
  std::int64_t first_label = 0;  // the number that the files have for class 0
  Damaged damaged = Damaged::refused;
  double train_share = 1;
  std::string image_key = {}, label_key = {};  // of containers whose records have names
};

/// What is found in one file. Damage ends the reading of a file, or is noted.
struct FoundSamples {
  struct Found {
    std::uint64_t offset;
    std::uint32_t length;
    std::uint16_t label;
  };
  std::vector<Found> samples;
  std::vector<std::string> dropped;  // why, with file and offset
};

struct Container {
  bool (*accepts)(const std::filesystem::path& file);
  Result<void> (*find)(const MappedFile& file, const ContainerSpec& spec, FoundSamples& out);
  EncodedSamples::Unwrap (*unwrap)(const ContainerSpec& spec);  // null: the record is the image
  const char* files;                                            // what it reads, for errors
};

/// Reads the keys that all containers have.
Result<ContainerSpec> read_container_section(yaml::Fields& data, double train_share);
std::shared_ptr<const DataSource> make_container_source(ContainerSpec spec, const Container& container);

/// The files' samples as a Dataset; damage is refused or noted.
Result<Dataset> read_container(const std::vector<std::filesystem::path>& files, const ContainerSpec& spec,
                               const Container& container, std::vector<std::string>& notes);

/// `label` as a class, or an Error that says what it is.
Result<std::uint16_t> class_of(std::int64_t label, const ContainerSpec& spec);

/// An Error at a place of a file.
inline tl::unexpected<Error> damaged_at(const MappedFile& file, std::uint64_t offset, std::string what) {
  return bad_input(place_in_file(file.name(), offset), std::move(what));
}

}  // namespace dlrun::runtime
