// The format `hdf5`: data sets of one file or two, or of all files of a folder, whose names tell the part.
#include <algorithm>
#include <memory>

#include "runtime/data/encoded/part_files.hpp"
#include "runtime/data/numbers/hdf5_array.hpp"
#include "runtime/data/numbers/number_source.hpp"

namespace dlrun::runtime {
namespace {

namespace fs = std::filesystem;

bool is_hdf5(const fs::path& file) {
  const fs::path ending = file.extension();
  return ending == ".h5" || ending == ".hdf5" || ending == ".hdf";
}

using Together = std::shared_ptr<Hdf5OpenFiles>;

Result<void> add_file(const fs::path& file, const ArrayNames& names, const Together& together,
                      NumberPart& out) {
  const auto opened = TRY(Hdf5File::open(file, together));
  out.samples.push_back(TRY(opened->array(names.samples)));
  if (!names.answers.empty()) out.answers.push_back(TRY(opened->array(names.answers)));
  return {};
}

Result<NumberPart> open_folder(const NumberKeys& keys, Part part) {
  const PartFiles found = TRY(find_part_files(keys.dir, is_hdf5));
  NumberPart out;
  out.notes = unused_note(found);
  if (found.train.empty() && part == Part::train)
    return bad_input(keys.dir.string(), "has no training files: no name ends in .h5, .hdf5 or .hdf");
  const auto together = std::make_shared<Hdf5OpenFiles>();
  for (const fs::path& file : part == Part::train ? found.train : found.test)
    TRY(add_file(file, keys.train, together, out));
  return out;
}

Result<NumberPart> open_hdf5(const NumberKeys& keys, Part part) {
  if (!keys.dir.empty()) return open_folder(keys, part);
  NumberPart out;
  const auto together = std::make_shared<Hdf5OpenFiles>();
  if (part == Part::train) {
    TRY(add_file(keys.file, keys.train, together, out));
  } else if (!keys.test_file.empty()) {
    TRY(add_file(keys.test_file, keys.test.samples.empty() ? keys.train : keys.test, together, out));
  } else if (!keys.test.samples.empty()) {
    TRY(add_file(keys.file, keys.test, together, out));
  }
  return out;
}

}  // namespace

DataFormat::Read read_hdf5_section;

Result<std::shared_ptr<const DataSource>> read_hdf5_section(yaml::Fields& data, double train_share) {
  TRY(data.text("samples"));
  return make_number_source(TRY(read_number_keys(data, train_share)), open_hdf5);
}

}  // namespace dlrun::runtime
