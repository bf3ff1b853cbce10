// See batch_filler.hpp.
#include "runtime/data/batch_filler.hpp"

#include <algorithm>
#include <climits>
#include <utility>

#include "runtime/base/host_threads.hpp"
#include "runtime/data/images/jpeg_header.hpp"

namespace dlrun::runtime {
namespace {

constexpr unsigned kReaders = 4;  // workers that read for a device: it decodes faster than two of them read

void scale_row(const std::uint8_t* in, std::size_t count, float scale, float shift, float* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(in[i]) * scale + shift;
}

std::optional<SampleKey> drawn_of(const RowKey& key) {
  return key.of ? std::optional(SampleKey{*key.of, key.sample}) : std::nullopt;
}

}  // namespace

InputScaling input_scaling_of(const Conversion& conversion, std::size_t channels) {
  InputScaling out;
  for (std::size_t c = 0; c < channels; ++c) {
    const double mean = conversion.mean.empty() ? 0 : conversion.mean[c];
    const double std_dev = conversion.std_dev.empty() ? 1 : conversion.std_dev[c];
    out.scale.push_back(static_cast<float>(1 / (255 * std_dev)));
    out.shift.push_back(static_cast<float>(-mean / std_dev));
  }
  return out;
}

BatchFiller::BatchFiller(const Dataset& data, const Conversion& conversion, const Augmentation& augmentation,
                         const DecodeOptions& decoding)
    : data_(data),
      augmentation_(augmentation),
      number_scaling_{conversion.scale, conversion.transform, conversion.mean, conversion.std_dev},
      evaluation_(decoding.evaluation),
      decoder_(data.encoded ? decoding.decoder : nullptr) {
  if (!data.numbers) meaning_ = input_scaling_of(conversion, static_cast<std::size_t>(data.shape.channels));
  answers_alone_ =
      decoding.rows == DecodeOptions::Rows::answers && !data.tokens && data.damaged == Damaged::refused;
  if ((!data.encoded && !data.numbers) || answers_alone_) return;
  const std::size_t row_bytes = data.pixels_per_sample() * (data.numbers ? sizeof(float) : 1);
  const DecodeAhead::Size size{
      .rows = decoding.memory / row_bytes,
      .row_bytes = row_bytes,
      .workers = decoding.workers.value_or(std::min(usable_processors(), decoder_ ? kReaders : UINT_MAX)),
      .together = decoder_ ? decoder_->usual() : 1};
  row_.resize(size.row_bytes);
  if (decoder_) {
    ahead_ = std::make_unique<DecodeAhead>(
        size, [this](std::span<DecodeAhead::Job> jobs) { decode_by_device(jobs); });
    return;
  }
  ahead_ = std::make_unique<DecodeAhead>(
      size, [this](const RowKey& key, std::vector<std::uint8_t>& scratch, std::span<std::uint8_t> row) {
        return decode(key, scratch, row);
      });
}

void BatchFiller::convert(std::uint64_t sample, float* out) const {
  const auto plane = static_cast<std::size_t>(data_.shape.height * data_.shape.width);
  const std::uint8_t* in = data_.pixels(sample).data();
  for (std::size_t c = 0; c < meaning_.scale.size(); ++c)
    scale_row(in + c * plane, plane, meaning_.scale[c], meaning_.shift[c], out + c * plane);
}

void BatchFiller::convert_augmented(std::uint64_t sample, AugmentationKey key, float* out) const {
  std::vector<std::uint8_t> bytes(data_.pixels_per_sample());
  copy_augmented(sample, key, bytes.data());
  const std::size_t plane = bytes.size() / meaning_.scale.size();
  for (std::size_t c = 0; c < meaning_.scale.size(); ++c)
    scale_row(bytes.data() + c * plane, plane, meaning_.scale[c], meaning_.shift[c], out + c * plane);
}

// A row at a time: what comes from outside is 0.
void BatchFiller::copy_augmented(std::uint64_t sample, AugmentationKey key, std::uint8_t* out) const {
  const std::int64_t height = data_.shape.height, width = data_.shape.width;
  const Variant of = variant_of(augmentation_, {key, sample});
  const std::int64_t begin = std::max<std::int64_t>(0, of.right);  // columns of the image that are seen
  const std::int64_t seen = std::max<std::int64_t>(0, std::min(width, width + of.right) - begin);
  const std::int64_t at = begin - of.right;  // where they are put, from the left or mirrored from the right
  const std::uint8_t* in = data_.pixels(sample).data();
  for (std::int64_t c = 0; c < data_.shape.channels; ++c, in += height * width)
    for (std::int64_t y = 0; y < height; ++y, out += width) {
      std::fill_n(out, width, std::uint8_t{0});
      const std::int64_t from_y = y + of.down;
      if (from_y < 0 || from_y >= height) continue;
      const std::uint8_t* const row = in + from_y * width + begin;
      if (of.flip)
        std::reverse_copy(row, row + seen, out + width - at - seen);
      else
        std::copy_n(row, seen, out + at);
    }
}

void BatchFiller::fill_row(std::uint64_t sample, const std::optional<AugmentationKey>& key, const Rows& rows,
                           std::size_t row) const {
  const std::size_t start = row * data_.pixels_per_sample();
  const bool augmented = key && augmentation_.any();
  if (!rows.bytes.empty()) {
    std::uint8_t* const out = rows.bytes.data() + start;
    if (augmented) return copy_augmented(sample, *key, out);
    std::copy_n(data_.pixels(sample).data(), data_.pixels_per_sample(), out);
    return;
  }
  float* const out = rows.numbers.data() + start;
  augmented ? convert_augmented(sample, *key, out) : convert(sample, out);
}

std::uint64_t BatchFiller::fill(std::uint64_t count,
                                const std::function<std::uint64_t(std::uint64_t)>& sample,
                                std::optional<AugmentationKey> key, const Rows& rows) const {
  if (answers_alone_) return fill_answers(count, sample, key, rows);
  if (data_.encoded || data_.numbers) return fill_encoded(count, sample, key, rows);
  if (data_.tokens) return fill_tokens(count, sample, rows);
  for (std::size_t i = 0; i < rows.labels.size(); ++i) {
    const std::uint64_t which = count > 0 ? sample(i < count ? i : i % count) : i % data_.count;
    if (i < count && !data_.check_sample(which)) damaged_ = static_cast<std::int64_t>(which);
    fill_row(which, key, rows, i);
    rows.labels[i] = i < count ? static_cast<std::int32_t>(data_.labels[which]) : -1;
    if (i < count) mix_row(which, key, rows, i);
  }
  return count;
}

// Into other_; false where the image is damaged.
bool BatchFiller::fill_other(std::uint64_t sample, const std::optional<AugmentationKey>& key) const {
  other_.resize(data_.pixels_per_sample());
  const Rows to{other_, {}, {}};
  if (data_.encoded || data_.numbers) return fill_decoded({sample, key}, to, 0);
  if (!data_.check_sample(sample)) damaged_ = static_cast<std::int64_t>(sample);
  fill_row(sample, key, to, 0);
  return true;
}

// An image whose other one is damaged stays as it is.
void BatchFiller::mix_row(std::uint64_t sample, const std::optional<AugmentationKey>& key, const Rows& rows,
                          std::size_t row) const {
  if (!mixup_ || !key) return;
  const Mixture mixture = mixture_of(*mixup_, {*key, sample});
  const bool sound = fill_other(mixture.other, key);
  const float own = sound ? mixture.weight : 1;
  float* const out = rows.numbers.data() + row * other_.size();
  for (std::size_t i = 0; i < other_.size(); ++i) out[i] = own * out[i] + (1 - own) * other_[i];
  rows.own_weights[row] = own;
  rows.other_labels[row] = static_cast<std::int32_t>(data_.labels[sound ? mixture.other : sample]);
}

Result<void> BatchFiller::decode(const RowKey& key, std::vector<std::uint8_t>& scratch,
                                 std::span<std::uint8_t> row) const {
  if (data_.numbers)
    return data_.numbers->read(key.sample, number_scaling_,
                               {reinterpret_cast<float*>(row.data()), row.size() / sizeof(float)});
  const EncodedImage image = TRY(data_.encoded->read(key.sample, scratch));
  return decode_image(key, image, row);
}

Result<void> BatchFiller::decode_image(const RowKey& key, const EncodedImage& image,
                                       std::span<std::uint8_t> row) const {
  return transform(image, data_.shape, augmentation_, evaluation_, drawn_of(key),
                   data_.encoded->place(key.sample), row);
}

// What the device does not take, or gives back, is decoded here: that depends on the image alone.
void BatchFiller::decode_by_device(std::span<DecodeAhead::Job> jobs) const {
  std::vector<std::vector<std::uint8_t>> files(jobs.size());
  std::vector<EncodedImage> images(jobs.size());
  std::vector<BatchDecoder::Image> taken;
  std::vector<std::size_t> whose, here;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    auto image = data_.encoded->read(jobs[i].key.sample, files[i]);
    if (!image) {
      jobs[i].result = fail(std::move(image).error());
      continue;
    }
    images[i] = *image;
    const auto header = image->raw ? std::nullopt : plain_jpeg_header(image->bytes);
    const auto cut = header ? cut_of({0, 0, header->width, header->height}, data_.shape, augmentation_,
                                     evaluation_, drawn_of(jobs[i].key))
                            : std::nullopt;
    if (!cut) {
      here.push_back(i);
      continue;
    }
    taken.push_back({image->bytes, header->width, header->height, *cut, jobs[i].row});
    whose.push_back(i);
  }
  const auto decoded = decoder_->decode(taken);
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (!decoded)
      jobs[whose[i]].result = fail(decoded.error());
    else if (!taken[i].is_done)
      here.push_back(whose[i]);
  }
  for (const std::size_t i : here) jobs[i].result = decode_image(jobs[i].key, images[i], jobs[i].row);
}

// A device that fails is no damage of an image.
void BatchFiller::note_damage(Error error) const {
  const std::lock_guard lock(mutex_);
  if (data_.damaged == Damaged::dropped && error.kind != ErrorKind::unavailable) {
    error.hint.clear();  // it is to drop the sample
    damage_.dropped.push_back(error.text());
  } else if (!damage_.refused) {
    damage_.refused = std::move(error);
  }
}

// Where there are targets, the label only says that the row counts. Stages before the loss have none.
void BatchFiller::put_answer(std::uint64_t sample, const Rows& rows, std::size_t row) const {
  rows.labels[row] = data_.labels.empty() ? 0 : static_cast<std::int32_t>(data_.labels[sample]);
  const auto width = static_cast<std::size_t>(data_.shape.targets);
  if (width == 0 || rows.targets.empty()) return;
  const std::span from = std::span(data_.targets).subspan(sample * width, width);
  std::copy(from.begin(), from.end(), rows.targets.begin() + static_cast<std::ptrdiff_t>(row * width));
}

// What is decoded for a row: its bytes, or those of its numbers; else bytes that become numbers.
std::span<std::uint8_t> BatchFiller::room_of(const Rows& rows, std::size_t row) const {
  const std::size_t pixels = data_.pixels_per_sample();
  if (data_.numbers)
    return {reinterpret_cast<std::uint8_t*>(rows.numbers.data() + row * pixels), pixels * sizeof(float)};
  return rows.bytes.empty() ? std::span(row_) : rows.bytes.subspan(row * pixels, pixels);
}

// False where the image is damaged: its row is black.
bool BatchFiller::fill_decoded(const RowKey& key, const Rows& rows, std::size_t row) const {
  const std::span<std::uint8_t> to = room_of(rows, row);
  auto taken = ahead_->take(key, to);
  const bool sound = taken.has_value();
  if (!sound) {
    std::fill(to.begin(), to.end(), std::uint8_t{0});
    note_damage(std::move(taken).error());
  }
  if (!rows.bytes.empty() || data_.numbers) return sound;
  const std::size_t pixels = data_.pixels_per_sample(), plane = pixels / meaning_.scale.size();
  float* const out = rows.numbers.data() + row * pixels;
  for (std::size_t c = 0; c < meaning_.scale.size(); ++c)
    scale_row(to.data() + c * plane, plane, meaning_.scale[c], meaning_.shift[c], out + c * plane);
  return sound;
}

// What the first stage reads is not damaged, or the run ends there.
std::uint64_t BatchFiller::fill_answers(std::uint64_t count,
                                        const std::function<std::uint64_t(std::uint64_t)>& sample,
                                        const std::optional<AugmentationKey>& key, const Rows& rows) const {
  for (std::size_t i = 0; i < rows.labels.size(); ++i) {
    rows.labels[i] = -1;
    if (i >= count) continue;
    const std::uint64_t which = sample(i);
    put_answer(which, rows, i);
    if (!mixup_ || !key) continue;
    const Mixture mixture = mixture_of(*mixup_, {*key, which});
    rows.own_weights[i] = mixture.weight;
    rows.other_labels[i] = static_cast<std::int32_t>(data_.labels[mixture.other]);
  }
  return count;
}

// Rows that do not count repeat one that is there already: nothing is decoded for them.
std::uint64_t BatchFiller::fill_encoded(std::uint64_t count,
                                        const std::function<std::uint64_t(std::uint64_t)>& sample,
                                        const std::optional<AugmentationKey>& key, const Rows& rows) const {
  const std::size_t pixels = data_.pixels_per_sample();
  const std::size_t distinct = count == 0 ? 1 : count;
  std::uint64_t counted = 0;
  for (std::size_t i = 0; i < rows.labels.size(); ++i) {
    rows.labels[i] = -1;
    if (i < distinct) {
      const std::uint64_t which = count == 0 ? 0 : sample(i);
      const bool sound = fill_decoded({which, key}, rows, i);
      if (!sound || i >= count) continue;
      put_answer(which, rows, i);
      mix_row(which, key, rows, i);
      ++counted;
    } else if (rows.bytes.empty()) {
      std::copy_n(rows.numbers.data() + i % distinct * pixels, pixels, rows.numbers.data() + i * pixels);
    } else {
      std::copy_n(rows.bytes.data() + i % distinct * pixels, pixels, rows.bytes.data() + i * pixels);
    }
  }
  return counted;
}

std::uint64_t BatchFiller::fill_tokens(std::uint64_t count,
                                       const std::function<std::uint64_t(std::uint64_t)>& sample,
                                       const Rows& rows) const {
  const auto length = static_cast<std::size_t>(data_.shape.height);
  for (std::size_t i = 0; i < rows.labels.size() / length; ++i) {
    const std::uint64_t which = count > 0 ? sample(i < count ? i : i % count) : i % data_.count;
    const auto tokens = rows.tokens.subspan(i * length, length);
    const auto labels = rows.labels.subspan(i * length, length);
    auto read = data_.tokens->read(which * length, tokens);
    if (read) read = data_.tokens->read((which + 1) * length, labels.last(1));
    std::copy(tokens.begin() + 1, tokens.end(), labels.begin());
    if (!read || i >= count) std::fill(labels.begin(), labels.end(), -1);
    if (read) continue;
    std::fill(tokens.begin(), tokens.end(), 0);
    note_damage(std::move(read).error());
  }
  return count;
}

std::vector<std::string> BatchFiller::take_dropped() const {
  const std::lock_guard lock(mutex_);
  return std::exchange(damage_.dropped, {});
}

Result<void> BatchFiller::state() const {
  {
    const std::lock_guard lock(mutex_);
    if (damage_.refused) return fail(*damage_.refused);
  }
  const std::int64_t damaged = damaged_;
  return damaged < 0 ? Result<void>{} : data_.check_sample(static_cast<std::uint64_t>(damaged));
}

}  // namespace dlrun::runtime
