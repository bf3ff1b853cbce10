// BatchFiller: turns samples into an engine's input rows. Pixels become value / 255, or standardised by the
// channel's mean and std; augmentation (random crop, flip) is a pure function of (seed, epoch, sample),
// so that a resumed run sees the same images. Encoded samples are decoded, and arrays of numbers read, by
// workers ahead of the step.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <vector>

#include "runtime/data/augmentation.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/decode_ahead.hpp"
#include "runtime/data/images/batch_decoder.hpp"
#include "runtime/data/mixup.hpp"

namespace dlrun::runtime {

struct Conversion {
  std::vector<double> mean = {}, std_dev = {};  // per channel, of pixels in 0..1; empty: 0 and 1
  // Of samples that are numbers as they are. One mean or std is all channels' then.
  double scale = 1;
  NumberScaling::Transform transform = NumberScaling::Transform::none;
};

InputScaling input_scaling_of(const Conversion& conversion, std::size_t channels);

/// How samples that are encoded are decoded.
struct DecodeOptions {
  Evaluation evaluation = {};
  std::uint64_t memory = std::uint64_t{512} << 20;  // of rows that are decoded ahead of the step
  std::optional<unsigned> workers = {};             // unset: one per processor that this rank may use
  // Where a device decodes what it takes; workers read the files and decode the rest.
  enum class By { processors, device };
  By by = By::processors;
  std::shared_ptr<BatchDecoder> decoder = {};  // that of a device, once it is there
  // answers: labels, targets and weights of mixtures alone, for a stage of a pipeline that does not read the
  // samples themselves. Where damaged ones are dropped, all is read: only then is it known which.
  enum class Rows { whole, answers };
  Rows rows = Rows::whole;
};

class BatchFiller {
 public:
  BatchFiller(const Dataset& data, const Conversion& conversion, const Augmentation& augmentation,
              const DecodeOptions& decoding = {});

  /// Either numbers or bytes, which mean what input_scaling_of() says; or tokens, with a label each.
  struct Rows {
    std::span<float> numbers;
    std::span<std::uint8_t> bytes;
    std::span<std::int32_t> labels;
    std::span<std::int32_t> tokens = {};
    // Where images are mixed: each row's other label, and the weight of its own.
    std::span<std::int32_t> other_labels = {};
    std::span<float> own_weights = {};
    std::span<float> targets = {};  // where the data has some: as many of each row
  };
  /// From now on rows that are drawn are mixed with others, as numbers.
  void mix_with(Mixup mixup) { mixup_ = std::move(mixup); }
  /// Rows 0 .. count-1 become the samples `sample(0)` .. `sample(count-1)`. The rows behind them repeat
  /// samples, so that batch statistics stay sane, under the label -1: they do not count. Returns how many
  /// count: damaged images that are dropped do not either.
  std::uint64_t fill(std::uint64_t count, const std::function<std::uint64_t(std::uint64_t)>& sample,
                     std::optional<AugmentationKey> key, const Rows& rows) const;
  std::uint64_t fill(std::uint64_t count, const std::function<std::uint64_t(std::uint64_t)>& sample,
                     std::optional<AugmentationKey> key, std::span<float> input,
                     std::span<std::int32_t> labels) const {
    return fill(count, sample, key, Rows{input, {}, labels});
  }
  /// The Error of the first sample so far that was not what was packed, or could not be decoded.
  Result<void> state() const;

  /// How many more samples may be announced; 0 where nothing is decoded.
  std::size_t free_rows() const { return ahead_ ? ahead_->free_rows() / (mixup_ ? 2 : 1) : 0; }
  /// fill() will ask for it, behind those announced before: it is decoded meanwhile.
  void announce(std::uint64_t sample, std::optional<AugmentationKey> key) const {
    ahead_->announce({sample, key});
    if (mixup_ && key) ahead_->announce({mixture_of(*mixup_, {*key, sample}).other, key});
  }
  /// The damaged images that were dropped since the last call, for people.
  std::vector<std::string> take_dropped() const;

 private:
  void convert(std::uint64_t sample, float* out) const;
  void convert_augmented(std::uint64_t sample, AugmentationKey key, float* out) const;
  void copy_augmented(std::uint64_t sample, AugmentationKey key, std::uint8_t* out) const;
  Result<void> decode(const RowKey& key, std::vector<std::uint8_t>& scratch,
                      std::span<std::uint8_t> row) const;
  Result<void> decode_image(const RowKey& key, const EncodedImage& image, std::span<std::uint8_t> row) const;
  void decode_by_device(std::span<DecodeAhead::Job> jobs) const;
  bool fill_decoded(const RowKey& key, const Rows& rows, std::size_t row) const;
  std::uint64_t fill_encoded(std::uint64_t count, const std::function<std::uint64_t(std::uint64_t)>& sample,
                             const std::optional<AugmentationKey>& key, const Rows& rows) const;
  std::uint64_t fill_answers(std::uint64_t count, const std::function<std::uint64_t(std::uint64_t)>& sample,
                             const std::optional<AugmentationKey>& key, const Rows& rows) const;
  std::uint64_t fill_tokens(std::uint64_t count, const std::function<std::uint64_t(std::uint64_t)>& sample,
                            const Rows& rows) const;
  void put_answer(std::uint64_t sample, const Rows& rows, std::size_t row) const;
  std::span<std::uint8_t> room_of(const Rows& rows, std::size_t row) const;
  void note_damage(Error error) const;
  void mix_row(std::uint64_t sample, const std::optional<AugmentationKey>& key, const Rows& rows,
               std::size_t row) const;
  bool fill_other(std::uint64_t sample, const std::optional<AugmentationKey>& key) const;
  void fill_row(std::uint64_t sample, const std::optional<AugmentationKey>& key, const Rows& rows,
                std::size_t row) const;
  const Dataset& data_;
  Augmentation augmentation_;
  InputScaling meaning_;          // of bytes
  NumberScaling number_scaling_;  // of numbers
  mutable std::atomic<std::int64_t> damaged_ =
      -1;  // a sample; by the thread that fills, which may be another
  Evaluation evaluation_;
  bool answers_alone_ = false;
  struct Damage {
    std::optional<Error> refused;
    std::vector<std::string> dropped;
  };
  mutable std::mutex mutex_;  // of what the thread that fills leaves
  mutable Damage damage_;
  mutable std::vector<std::uint8_t> row_;
  std::optional<Mixup> mixup_;
  mutable std::vector<float> other_;  // the image that a row is mixed with
  std::shared_ptr<BatchDecoder> decoder_;
  std::unique_ptr<DecodeAhead> ahead_;  // of encoded samples; last: its threads use all above
};

}  // namespace dlrun::runtime
