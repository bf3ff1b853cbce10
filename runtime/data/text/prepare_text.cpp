// See prepare_text.hpp.
#include "runtime/data/text/prepare_text.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

#include "runtime/base/checksum.hpp"
#include "runtime/base/mapped_file.hpp"
#include "runtime/data/gzip.hpp"
#include "runtime/data/text/text_cuts.hpp"
#include "runtime/data/tokens/token_samples.hpp"
#include "src/base/file.hpp"
#include "src/base/json.hpp"
#include "src/base/regular_file.hpp"
#include "src/base/strings.hpp"

namespace dlrun::runtime {
namespace {

namespace fs = std::filesystem;
constexpr const char* kJobFile = "job.json";
constexpr int kCuts = 2;  // the version of may_cut(): files of another one do not go together

class TextPreparation {
 public:
  TextPreparation(const TextJob& job, std::vector<TextFile> texts)
      : job_(job),
        folder_(job.into.string() + ".partial"),
        texts_(std::move(texts)),
        shards_(plan_text_shards(texts_, job.validation, job.shard_bytes)),
        tokenizer_text_(job.tokenizer->to_text()),
        tokenizer_checksum_(checksum(tokenizer_text_)),
        tokens_(shards_.size()) {
    for (const TextShard& shard : shards_) all_ += shard.bytes;
  }

  Result<Tokenized> run() {
    TRY(begin());
    if (job_.tokenizer->has_merges()) notes_ = TRY(cut_texts(texts_, shards_));  // bytes have no words
    TRY(write_all());
    Tokenized out{.texts = texts_.size(), .files = shards_.size(), .kept = kept_, .notes = notes_};
    for (std::size_t i = 0; i < shards_.size(); ++i)
      (shards_[i].name.starts_with("train") ? out.train : out.validation) += tokens_[i];
    TRY(check_parts(out));
    TRY(end());
    return out;
  }

 private:
  // Goes on with what is there where it is of the same texts and the same job.
  Result<void> begin() {
    Json texts = Json::array();
    for (const TextFile& text : texts_) texts.push_back({text.name, text.bytes, text.changed});
    const std::string identity =
        to_pretty_text(Json{{"cuts", kCuts},
                            {"shard_bytes", job_.shard_bytes},
                            {"validation", job_.validation},
                            {"tokenizer", hex(tokenizer_checksum_)},
                            {"texts", hex(checksum(std::string_view(dlrun::to_text(texts))))}});
    const auto there = read_regular_file(folder_ / kJobFile);
    if (there && *there == identity) return {};
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
    TRY(make_directories(folder_, Access::shared));
    return replace_file(folder_ / kJobFile, identity, Durability::synced);
  }

  Result<void> write_all() {
    std::atomic<std::size_t> next{0};
    std::atomic<bool> failed{false};
    std::vector<std::optional<Error>> errors(shards_.size());
    const auto work = [&] {
      WordEncoder encoder(*job_.tokenizer);
      for (std::size_t i = next++; i < shards_.size() && !failed; i = next++)
        if (auto written = write_or_keep(i, encoder); !written) {
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

  // The tokens of a file that is there and complete.
  std::optional<std::uint64_t> tokens_there(const fs::path& path) const {
    std::error_code problem;
    if (!fs::exists(path, problem)) return std::nullopt;
    const auto mapped = MappedFile::open(path);
    if (!mapped) return std::nullopt;
    const auto bytes = mapped->bytes();
    const auto header = parse_token_header(bytes.first(std::min(bytes.size(), kTokenHeaderBytes)),
                                           bytes.size(), mapped->name());
    if (!header || checksum(bytes.subspan(kTokenHeaderBytes)) != header->checksum) return std::nullopt;
    return header->count;
  }

  Result<void> write_or_keep(std::size_t number, WordEncoder& encoder) {
    const TextShard& shard = shards_[number];
    if (const auto there = tokens_there(folder_ / shard.name)) {
      tokens_[number] = *there;
      ++kept_;
    } else {
      Tokenizer::Tokens tokens;
      for (const TextRange& range : shard.ranges) TRY(add_range(range, encoder, tokens));
      tokens_[number] = tokens.size();
      TRY(replace_file(folder_ / shard.name,
                       token_file(tokens, job_.tokenizer->vocabulary(), tokenizer_checksum_),
                       Durability::synced));
    }
    const std::uint64_t done = done_ += shard.bytes;
    if (job_.progress) job_.progress(done, all_);
    return {};
  }

  Result<void> add_range(const TextRange& range, WordEncoder& encoder, Tokenizer::Tokens& out) const {
    const TextFile& file = texts_[range.file];
    const MappedFile mapped = TRY(MappedFile::open(file.path));
    if (mapped.bytes().size() != file.bytes) return bad_input(mapped.name(), "was changed while it was read");
    if (looks_like_gzip(mapped.bytes()))
      return bad_input(mapped.name(), "is compressed", "decompress it first: gunzip");
    const std::string_view text(reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size());
    encoder.add(text.substr(range.begin, range.end - range.begin), out);
    if (range.begin < range.end && range.end == file.bytes && job_.tokenizer->end_of_text())
      out.push_back(*job_.tokenizer->end_of_text());
    return {};
  }

  Result<void> check_parts(const Tokenized& done) const {
    for (const auto& [part, tokens] : {std::pair("training", done.train), {"validation", done.validation}})
      if (tokens == 0 && (part[0] == 't' || job_.validation > 0))
        return bad_input(job_.from.string(),
                         fmt::format("leaves no token for the {} part{}", part, why_empty()),
                         "set another --validation, or name a text validation.txt");
    return {};
  }

  std::string why_empty() const { return notes_.empty() ? "" : "; " + join(notes_, "; "); }

  Result<void> end() {
    TRY(replace_file(folder_ / kTokenizerFile, tokenizer_text_, Durability::synced));
    std::error_code problem;
    fs::remove(folder_ / kJobFile, problem);
    if (!problem) fs::rename(folder_, job_.into, problem);
    if (!problem) return {};
    return fail(ErrorKind::io, "cannot create {}: {}", job_.into.string(), problem.message());
  }

  const TextJob& job_;
  fs::path folder_;
  std::vector<TextFile> texts_;
  std::vector<TextShard> shards_;
  std::string tokenizer_text_;
  std::uint64_t tokenizer_checksum_;
  std::vector<std::uint64_t> tokens_;  // of each file
  std::vector<std::string> notes_;
  std::uint64_t all_ = 0;
  std::atomic<std::uint64_t> done_{0}, kept_{0};
};

}  // namespace

Result<Tokenized> tokenize_texts(const TextJob& job) {
  std::error_code problem;
  if (fs::exists(job.into, problem))
    return fail(Error{.kind = ErrorKind::io,
                      .what = fmt::format("{} already exists", job.into.string()),
                      .hint = "give a new folder with --into"});
  return TextPreparation(job, TRY(find_texts(job.from))).run();
}

}  // namespace dlrun::runtime
