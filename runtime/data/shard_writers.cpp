// The containers that --prepare writes: own shards, WebDataset's tar files, TFRecord files of tf.Example,
// LMDB databases of Caffe's Datum.
#include <array>

#include "runtime/base/protobuf.hpp"
#include "runtime/base/tfrecord.hpp"
#include "runtime/data/encoded/lmdb_writer.hpp"
#include "runtime/data/encoded/tar.hpp"
#include "runtime/data/images/sharded.hpp"
#include "runtime/data/repack.hpp"

namespace dlrun::runtime {
namespace {

std::string_view text_of(const PackedSample& sample) {
  return {reinterpret_cast<const char*>(sample.image.data()), sample.image.size()};
}

bool is_png(const PackedSample& sample) {
  return sample.image.size() > 1 && sample.image[0] == 0x89;
}

// Samples one after another, and an end.
using SampleBytes = std::string (*)(const PackedSample& sample, std::size_t& image_at);
template <SampleBytes kSample>
class Appended final : public ShardContent {
 public:
  explicit Appended(std::string end) : end_(std::move(end)) {}
  std::uint64_t add(const PackedSample& sample) override {
    std::size_t image_at = 0;
    const std::string bytes = kSample(sample, image_at);
    image_at += content_.size();
    content_ += bytes;
    return image_at;
  }
  std::string finish() override { return std::move(content_) + end_; }

 private:
  std::string content_, end_;
};

std::string shards_file(std::string_view part, std::size_t shard, std::size_t) {
  return encoded_shard_path({}, std::string(part), shard).string();
}

std::string shards_sample(const PackedSample& sample, std::size_t& image_at) {
  image_at = 0;
  return std::string(text_of(sample));
}

std::string tar_file(std::string_view part, std::size_t shard, std::size_t) {
  return fmt::format("{}-{:06}.tar", part, shard);
}

std::string tar_sample(const PackedSample& sample, std::size_t& image_at) {
  const std::string key(sample.key);
  image_at = 512;
  return tar_member(key + (is_png(sample) ? ".png" : ".jpg"), text_of(sample)) +
         tar_member(key + ".cls", fmt::format("{}", sample.label));
}

std::string records_file(std::string_view part, std::size_t shard, std::size_t shards) {
  return fmt::format("{}-{:05}-of-{:05}", part, shard, shards);
}

// The features that readers of ImageNet's records ask for.
std::string records_sample(const PackedSample& sample, std::size_t& image_at) {
  ProtoWriter features;
  const auto add = [&](std::string_view key, std::uint32_t kind, const ProtoWriter& list) {
    features.message(1, ProtoWriter().bytes(1, key).message(2, ProtoWriter().message(kind, list)));
  };
  add("image/class/label", 3, ProtoWriter().varint(1, sample.label));
  add("image/format", 1, ProtoWriter().bytes(1, is_png(sample) ? "PNG" : "JPEG"));
  add("image/filename", 1, ProtoWriter().bytes(1, sample.key));
  add("image/encoded", 1, ProtoWriter().bytes(1, text_of(sample)));
  std::string out = frame_record(ProtoWriter().message(1, features).text());
  image_at = out.size() - 4 - sample.image.size();
  return out;
}

std::string lmdb_file(std::string_view part, std::size_t shard, std::size_t shards) {
  return shards == 1 ? fmt::format("{}_lmdb/data.mdb", part)
                     : fmt::format("{}_lmdb_{:05}/data.mdb", part, shard);
}

// caffe.proto's Datum: 4 data, 5 label, 7 encoded.
class DatumTable final : public ShardContent {
 public:
  std::uint64_t add(const PackedSample& sample) override {
    const ProtoWriter datum = ProtoWriter().bytes(4, text_of(sample)).varint(5, sample.label).varint(7, 1);
    table_.add(sample.key, datum.text());
    return 0;
  }
  std::string finish() override { return std::move(table_).finish(); }

 private:
  LmdbWriter table_;
};

template <SampleBytes kSample>
std::unique_ptr<ShardContent> appended() {
  return std::make_unique<Appended<kSample>>("");
}

constexpr std::array kWriters = {
    ShardWriter{"shards", shards_file, appended<shards_sample>, false},
    ShardWriter{
        "webdataset", tar_file,
        []() -> std::unique_ptr<ShardContent> { return std::make_unique<Appended<tar_sample>>(tar_end()); },
        true},
    ShardWriter{"tfrecord", records_file, appended<records_sample>, true},
    ShardWriter{"lmdb", lmdb_file,
                []() -> std::unique_ptr<ShardContent> { return std::make_unique<DatumTable>(); }, true},
};

}  // namespace

std::span<const ShardWriter> shard_writers() {
  return kWriters;
}

}  // namespace dlrun::runtime
