// The format `numpy`: .npy files of many samples each, named by the job; the arrays of a .npz file; or a
// folder of .npy files, each one sample, of the training and of the test part by their names.
#include <algorithm>

#include "runtime/data/encoded/part_files.hpp"
#include "runtime/data/numbers/npy_array.hpp"
#include "runtime/data/numbers/number_source.hpp"

namespace dlrun::runtime {
namespace {

namespace fs = std::filesystem;

bool is_npy(const fs::path& file) {
  return file.extension() == ".npy";
}

Result<std::shared_ptr<const NumberArray>> open_whole(const fs::path& file) {
  return open_npy(std::make_shared<const FileSet>(TRY(FileSet::open({file}))), 0, Rows::along_first_axis);
}

Result<NumberPart> open_packed(const NumberKeys& keys, Part part) {
  // Another file has arrays of the same names, unless they are given.
  const bool other_file = part == Part::test && !keys.test_file.empty();
  ArrayNames names = keys.names(part);
  if (other_file && names.samples.empty()) names = keys.train;
  const fs::path& file = other_file ? keys.test_file : keys.file;
  NumberPart out;
  if (names.samples.empty()) return out;
  out.samples.push_back(TRY(open_npz(file, names.samples, keys.memory)));
  if (!names.answers.empty()) out.answers.push_back(TRY(open_npz(file, names.answers, keys.memory)));
  return out;
}

Result<NumberPart> open_folder(const NumberKeys& keys, Part part) {
  const PartFiles found = TRY(find_part_files(keys.dir, is_npy));
  std::vector<fs::path> files = part == Part::train ? found.train : found.test;
  std::erase_if(files, [&](const fs::path& file) {
    return (!keys.train.answers.empty() && file == keys.dir / keys.train.answers) ||
           (!keys.test.answers.empty() && file == keys.dir / keys.test.answers);
  });
  NumberPart out;
  out.notes = unused_note(found);
  if (files.empty() && part == Part::train)
    return bad_input(keys.dir.string(), "has no training samples: no name ends in .npy");
  const auto set = std::make_shared<const FileSet>(TRY(FileSet::open(std::move(files))));
  for (std::size_t file = 0; file < set->size(); ++file)
    out.samples.push_back(TRY(open_npy(set, file, Rows::whole_file)));
  const std::string& answers = keys.names(part).answers;
  if (!answers.empty() && !out.samples.empty()) out.answers.push_back(TRY(open_whole(keys.dir / answers)));
  return out;
}

Result<NumberPart> open_numpy(const NumberKeys& keys, Part part) {
  if (!keys.file.empty()) return open_packed(keys, part);
  if (keys.train.samples.empty()) return open_folder(keys, part);
  const ArrayNames& names = keys.names(part);
  NumberPart out;
  if (names.samples.empty()) return out;
  out.samples.push_back(TRY(open_whole(keys.dir / names.samples)));
  if (!names.answers.empty()) out.answers.push_back(TRY(open_whole(keys.dir / names.answers)));
  return out;
}

}  // namespace

DataFormat::Read read_numpy_section;

Result<std::shared_ptr<const DataSource>> read_numpy_section(yaml::Fields& data, double train_share) {
  NumberKeys keys = TRY(read_number_keys(data, train_share));
  if (!keys.file.empty() && keys.train.samples.empty())
    return yaml::error_at(*data.find("file"),
                          "train.data.samples, the name of an array in the file, is missing");
  return make_number_source(std::move(keys), open_numpy);
}

}  // namespace dlrun::runtime
