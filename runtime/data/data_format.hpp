// The table of data formats: a name and what reads the keys that the format has in the section train.data.
// What it gives is a DataSource: the place of the samples, which can be probed (cheap, so that a model can be
// built while the rest is read), checked and loaded. A format is one file, whose rows and readers it holds,
// and a line in data_format.cpp.
#pragma once

#include <memory>
#include <string>

#include "runtime/data/dataset.hpp"
#include "src/base/fields.hpp"

namespace dlrun::runtime {

class DataSource {
 public:
  virtual ~DataSource() = default;
  virtual SampleKind kind() const { return SampleKind::image; }
  /// Whether samples are numbers as they are, and not bytes of pixels.
  virtual bool holds_numbers() const { return false; }
  /// Bits of a channel of an image. Those of 16 are numbers as they are.
  virtual int bit_depth() const { return 8; }
  /// Whether a sample has numbers to be told in place of a class.
  virtual bool has_targets() const { return false; }
  /// What the axes of a sample are, where the job says so.
  virtual std::string axes() const { return {}; }
  /// The number of channels of an image; 0 where the files alone tell.
  virtual std::size_t channels() const = 0;
  /// The shape of the samples. Opens every file and checks headers and lengths.
  virtual Result<InputShape> probe() const = 0;
  /// The shape, after all checks that take milliseconds.
  virtual Result<InputShape> check() const { return probe(); }
  /// Loads both parts and checks every byte; `seed` is train.seed, for synthetic data.
  virtual Result<DataParts> load(std::uint64_t seed) const = 0;
  /// The part that a trained model is evaluated on: the test part, or the training part where there is none.
  virtual Result<Dataset> load_evaluated() const;
  /// Whether the images stay as they are, so that every epoch can cut other parts out of them.
  virtual bool keeps_images() const { return false; }
  /// An Error at the first target that is neither 0 nor 1, which names its file. Reads all targets again.
  virtual Result<void> check_label_targets() const { return {}; }
  /// The folder or file, for people; empty for synthetic data.
  virtual std::string place() const = 0;
};

/// The section train.data: what all formats have, and the source that its format has made.
struct DataSpec {
  std::shared_ptr<const DataSource> source;
  double train_share = 1;  // of the training part; the rest is the validation split
};

struct DataFormat {
  using Read = Result<std::shared_ptr<const DataSource>>(yaml::Fields& data, double train_share);
  std::string_view name;
  Read* read;
};

std::span<const DataFormat> data_formats();

/// Reads `format`, `train` and the keys of the format; the caller reads its own and finishes the section.
Result<DataSpec> read_data_source(yaml::Fields& data);

/// Keys that formats of images have in common: `size` and `damaged`.
struct ImageSize {
  std::int64_t height = 224, width = 224;
};
Result<ImageSize> read_image_size(yaml::Fields& data);
Result<Damaged> read_damaged(yaml::Fields& data);

/// Loads both parts, and notes what was found, how sequences are split, and which classes have no training
/// sample.
Result<DataParts> load_data(const DataSource& source, std::uint64_t seed, double train_share = 1);

}  // namespace dlrun::runtime
