// The DataSource of formats whose samples are arrays of numbers: the keys that they share, and the checks of
// what a format finds for a part. A format says alone where its arrays are.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "runtime/data/data_format.hpp"
#include "runtime/data/numbers/number_array.hpp"
#include "runtime/data/numbers/sample_axes.hpp"

namespace dlrun::runtime {

enum class Part { train, test };

/// Where arrays are: the names of one part.
struct ArrayNames {
  std::string samples, answers;  // empty: there are none
};

/// What the arrays of answers are.
enum class Answers { labels, targets };

struct NumberKeys {
  std::filesystem::path dir, file, test_file;
  ArrayNames train, test;
  Answers answers = Answers::labels;
  std::optional<SampleAxes> axes;
  std::optional<std::int64_t> classes;
  Damaged damaged = Damaged::refused;
  std::uint64_t memory = std::uint64_t{4} << 30;  // of what must be unpacked as a whole
  double train_share = 1;

  const std::filesystem::path& place() const { return dir.empty() ? file : dir; }
  const ArrayNames& names(Part part) const { return part == Part::train ? train : test; }
};

/// What a format finds for a part; no samples: the job has none.
struct NumberPart {
  NumberArrays samples, answers;
  std::vector<std::string> notes = {};
};

using OpenPart = Result<NumberPart>(const NumberKeys& keys, Part part);

/// `file` or `dir`, and all that is not the format's own.
Result<NumberKeys> read_number_keys(yaml::Fields& data, double train_share);

std::shared_ptr<const DataSource> make_number_source(NumberKeys keys, OpenPart* open);

}  // namespace dlrun::runtime
