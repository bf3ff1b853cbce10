// ImageSet: which files there are and what they show, before any of them is opened. Folders are
// DIR/train/CLASS/FILE with DIR/test or DIR/val beside it, or DIR/CLASS/FILE where there is only one part;
// classes are numbered by name; hidden folders and __MACOSX are none. Lists have a line "path number" each.
// The order is that of names, the same on every machine.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/data/dataset.hpp"

namespace dlrun::runtime {

/// Which images, and the size that each is brought to. A list makes it a list of files, else it is a folder
/// per class.
struct ImageSpec {
  std::filesystem::path directory = {};  // of a list: what its paths are relative to; empty: its own folder
  std::filesystem::path list = {}, test_list = {};
  std::int64_t classes = 10;  // of a list
  std::int64_t channels = 3;  // 1: grey
  std::int64_t height = 224, width = 224;
  Damaged damaged = Damaged::refused;  // images that cannot be decoded
  double train_share = 1;              // below 1 there may be no test images
  // Of a folder or list that is not packed: images that take more than this stay compressed, as all do whose
  // training needs them as they are.
  std::uint64_t memory = std::uint64_t{16} << 30;
  enum class Keep { decoded, compressed };
  Keep keep = Keep::decoded;

  bool is_list() const { return !list.empty(); }
  const std::filesystem::path& place() const { return is_list() ? list : directory; }
};

struct ImageFile {
  std::filesystem::path path;
  std::uint16_t label = 0;
};

struct ImageSet {
  std::vector<std::string> classes;  // names, or numbers where a list gives those
  std::vector<ImageFile> train, test;
};

inline constexpr std::size_t kMaxClasses = 65536;

/// A folder of a class without any training image is refused by its name.
Result<ImageSet> find_images(const ImageSpec& spec);

std::vector<std::string> classes_without_images(const ImageSet& set);  // to train on

/// A list file's lines; paths are relative to `folder`. An Error names file, line and what is wrong.
Result<std::vector<ImageFile>> read_image_list(std::string_view text, const std::filesystem::path& folder,
                                               std::int64_t classes, const std::string& name);

}  // namespace dlrun::runtime
