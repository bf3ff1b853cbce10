// See repack.hpp.
#include "runtime/data/repack.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

#include "runtime/base/checksum.hpp"
#include "runtime/data/images/sharded.hpp"
#include "runtime/data/images/transform.hpp"
#include "runtime/data/partial_folder.hpp"
#include "runtime/data/sample_order.hpp"
#include "src/base/file.hpp"
#include "src/base/json.hpp"
#include "src/base/regular_file.hpp"

namespace dlrun::runtime {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kShuffle = 0x7368756666u;
constexpr const char* kJobFile = "job.json";

// Of one part: which samples each shard takes, in which order.
struct PartPlan {
  std::string name;
  const Dataset* data = nullptr;
  std::uint64_t each = 1;  // samples of a shard
  std::size_t shards = 0;
  std::optional<Permutation> order;

  std::uint64_t sample(std::uint64_t position) const { return order ? (*order)(position) : position; }
};

// The bytes of a sample, guessed from some of them where they are files.
std::uint64_t usual_bytes(const Dataset& data) {
  std::uint64_t sum = 0, seen = 0;
  std::vector<std::uint8_t> room;
  for (std::uint64_t i = 0; i < data.count; i += std::max<std::uint64_t>(1, data.count / 64))
    if (const auto record = data.encoded->record(i, room)) sum += record->size(), ++seen;
  return seen == 0 ? 1 : std::max<std::uint64_t>(1, sum / seen);
}

PartPlan plan_part(const RepackJob& job, const std::string& name, const Dataset& data) {
  PartPlan out{.name = name, .data = &data, .order = {}};
  out.each = std::max<std::uint64_t>(1, job.shard_bytes / usual_bytes(data));
  out.shards = (data.count + out.each - 1) / out.each;
  if (job.writer->shuffled && data.count > 1) out.order.emplace(data.count, kShuffle);
  return out;
}

// What a worker leaves beside a shard.
struct ShardNote {
  std::uint64_t bytes = 0;
  std::vector<ShardEntry> entries;
  std::vector<std::string> dropped;
};

Json to_json(const ShardNote& note) {
  Json entries = Json::array();
  for (const ShardEntry& entry : note.entries)
    entries.push_back({entry.offset, entry.length, entry.label, hex(entry.checksum)});
  return {{"bytes", note.bytes}, {"entries", entries}, {"dropped", note.dropped}};
}

std::optional<ShardNote> read_note(const fs::path& path, std::uint32_t shard) {
  const auto text = read_regular_file(path);
  const auto json = text ? parse_json(*text, path.string()) : fail(Error{});
  if (!json || !json->is_object()) return std::nullopt;
  ShardNote out;
  const auto bytes = field<std::uint64_t>(*json, "bytes", path.string());
  const auto dropped = field<std::vector<std::string>>(*json, "dropped", path.string());
  const auto entries = field<Json>(*json, "entries", path.string());
  if (!bytes || !dropped || !entries || !entries->is_array()) return std::nullopt;
  out.bytes = *bytes;
  out.dropped = *dropped;
  for (const Json& entry : *entries) {
    if (!entry.is_array() || entry.size() != 4 || !entry[0].is_number_unsigned() ||
        !entry[1].is_number_unsigned() || !entry[2].is_number_unsigned() || !entry[3].is_string())
      return std::nullopt;
    out.entries.push_back({.shard = shard,
                           .length = entry[1].get<std::uint32_t>(),
                           .offset = entry[0].get<std::uint64_t>(),
                           .checksum = std::strtoull(entry[3].get<std::string>().c_str(), nullptr, 16),
                           .label = entry[2].get<std::uint16_t>()});
  }
  return out;
}

class Repacker {
 public:
  Repacker(const RepackJob& job, const DataParts& parts, PartialFolder partial)
      : job_(job), parts_(parts), partial_(std::move(partial)), folder_(partial_.path()) {
    plans_.push_back(plan_part(job, "train", parts.train));
    plans_.push_back(plan_part(job, "test", parts.test));
    for (const PartPlan& plan : plans_) notes_.emplace_back(plan.shards);
  }

  Result<Repacked> run() {
    TRY(begin());
    TRY(write_all_shards());
    TRY(end());
    Repacked out{.shards = plans_[0].shards + plans_[1].shards, .kept = kept_, .dropped = {}};
    for (std::size_t part = 0; part < notes_.size(); ++part)
      for (const ShardNote& note : notes_[part]) {
        (part == 0 ? out.train : out.test) += note.entries.size();
        out.dropped.insert(out.dropped.end(), note.dropped.begin(), note.dropped.end());
      }
    return out;
  }

 private:
  fs::path notes_folder() const { return folder_ / "progress"; }

  // Goes on with what is there where it is of the same job.
  Result<void> begin() {
    const std::string identity =
        to_pretty_text(Json{{"as", job_.writer->name},
                            {"shard_bytes", job_.shard_bytes},
                            {"data", hex(mix_of(parts_.train.fingerprint(), parts_.test.fingerprint()))}});
    const auto there = read_regular_file(notes_folder() / kJobFile);
    if (there && *there == identity) return {};
    TRY(partial_.clear());
    TRY(make_directories(notes_folder(), Access::shared));
    return replace_file(notes_folder() / kJobFile, identity, Durability::synced);
  }

  static std::uint64_t mix_of(std::uint64_t a, std::uint64_t b) { return a * 0x9e3779b97f4a7c15u ^ b; }

  struct Task {
    std::size_t part, shard;
  };

  Result<void> write_all_shards() {
    std::vector<Task> tasks;
    for (std::size_t part = 0; part < plans_.size(); ++part)
      for (std::size_t shard = 0; shard < plans_[part].shards; ++shard) tasks.push_back({part, shard});
    std::atomic<std::size_t> next{0};
    std::atomic<bool> failed{false};
    std::vector<std::optional<Error>> errors(tasks.size());
    const auto work = [&] {
      for (std::size_t i = next++; i < tasks.size() && !failed; i = next++)
        if (auto written = write_or_keep(tasks[i]); !written) {
          errors[i] = std::move(written).error();
          failed = true;
        }
    };
    std::vector<std::jthread> helpers;
    for (unsigned i = 1; i < job_.workers; ++i) helpers.emplace_back(work);
    work();
    helpers.clear();
    for (std::optional<Error>& error : errors)
      if (error) return fail(std::move(*error));
    return {};
  }

  fs::path file_of(const Task& task) const {
    const PartPlan& plan = plans_[task.part];
    return folder_ / job_.writer->file(plan.name, task.shard, plan.shards);
  }

  Result<void> write_or_keep(const Task& task) {
    const fs::path note_file = notes_folder() / fmt::format("{}-{}.json", plans_[task.part].name, task.shard);
    ShardNote& note = notes_[task.part][task.shard];
    std::error_code problem;
    if (auto there = read_note(note_file, static_cast<std::uint32_t>(task.shard));
        there && fs::file_size(file_of(task), problem) == there->bytes && !problem) {
      note = std::move(*there);
      ++kept_;
      count(plans_[task.part], task.shard);
      return {};
    }
    TRY(write_shard(task, note));
    return replace_file(note_file, dlrun::to_text(to_json(note)), Durability::synced);
  }

  std::uint64_t first_of(const PartPlan& plan, std::size_t shard) const { return shard * plan.each; }
  std::uint64_t last_of(const PartPlan& plan, std::size_t shard) const {
    return std::min(plan.data->count, (shard + 1) * plan.each);
  }
  void count(const PartPlan& plan, std::size_t shard) {
    const std::uint64_t done = done_ += last_of(plan, shard) - first_of(plan, shard);
    if (job_.progress) job_.progress(done, parts_.train.count + parts_.test.count);
  }

  Result<void> write_shard(const Task& task, ShardNote& note) {
    const PartPlan& plan = plans_[task.part];
    const std::unique_ptr<ShardContent> shard = job_.writer->begin();
    std::vector<std::uint8_t> room;
    for (std::uint64_t at = first_of(plan, task.shard); at < last_of(plan, task.shard); ++at) {
      auto added = add_sample(plan, at, static_cast<std::uint32_t>(task.shard), room, *shard, note);
      if (added) continue;
      if (plan.data->damaged == Damaged::refused) return added;
      note.dropped.push_back(added.error().text());
    }
    const std::string content = shard->finish();
    TRY(make_directories(file_of(task).parent_path(), Access::shared));
    note.bytes = content.size();
    TRY(replace_file(file_of(task), content, Durability::synced));
    count(plan, task.shard);
    return {};
  }

  Result<void> add_sample(const PartPlan& plan, std::uint64_t position, std::uint32_t shard,
                          std::vector<std::uint8_t>& room, ShardContent& content, ShardNote& note) const {
    const std::uint64_t sample = plan.sample(position);
    const std::string place = plan.data->encoded->place(sample);
    EncodedImage image = TRY(plan.data->encoded->read(sample, room));
    std::string png;
    if (image.raw) {  // without loss
      const Image pixels = TRY(image_of_planes(image, place));
      png = TRY(encode_png(pixels.pixels, pixels.width, pixels.height, 3));
      image.bytes = {reinterpret_cast<const std::uint8_t*>(png.data()), png.size()};
    } else {
      TRY(decode_image(image.bytes, place));
    }
    const std::string key = fmt::format("{:09}", position);
    const std::uint64_t offset =
        content.add({.key = key, .image = image.bytes, .label = plan.data->labels[sample]});
    note.entries.push_back({.shard = shard,
                            .length = static_cast<std::uint32_t>(image.bytes.size()),
                            .offset = offset,
                            .checksum = checksum(std::as_bytes(image.bytes)),
                            .label = plan.data->labels[sample]});
    return {};
  }

  std::vector<ShardEntry> entries(std::size_t part) const {
    std::vector<ShardEntry> out;
    for (const ShardNote& note : notes_[part])
      out.insert(out.end(), note.entries.begin(), note.entries.end());
    return out;
  }

  Result<void> end() {
    std::vector<std::string> classes = parts_.classes;
    for (std::int64_t i = std::ssize(classes); i < parts_.train.shape.classes; ++i)
      classes.push_back(std::to_string(i));
    if (job_.writer->name == "shards")
      TRY(write_shard_index(folder_, classes, entries(0), entries(1)));
    else
      TRY(replace_file(folder_ / "classes.txt", join(classes, "\n") + "\n", Durability::synced));
    std::error_code problem;
    fs::remove_all(notes_folder(), problem);
    if (problem)
      return fail(ErrorKind::io, "cannot remove {}: {}", notes_folder().string(), problem.message());
    return partial_.complete();
  }

  const RepackJob& job_;
  const DataParts& parts_;
  PartialFolder partial_;
  fs::path folder_;
  std::vector<PartPlan> plans_;
  std::vector<std::vector<ShardNote>> notes_;  // by part
  std::atomic<std::uint64_t> done_{0}, kept_{0};
};

}  // namespace

Result<Repacked> repack(const RepackJob& job) {
  std::error_code problem;
  if (fs::exists(job.into, problem))
    return fail(Error{.kind = ErrorKind::io,
                      .what = fmt::format("{} already exists", job.into.string()),
                      .hint = "give a new folder with --into"});
  const DataParts parts = TRY(job.source->load(0));
  if (!parts.train.encoded)
    return fail(Error{
        .kind = ErrorKind::usage,
        .what = fmt::format("{} has decoded pixels, which are not encoded again", job.source->place())});
  return Repacker(job, parts, TRY(PartialFolder::hold(job.into))).run();
}

}  // namespace dlrun::runtime
