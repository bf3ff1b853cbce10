// The format `tokens`: a folder of token files, of the training and of the validation part by their names.
// A sample is a window of so many tokens and the one behind it; windows follow each other without a gap.
#include "runtime/base/checksum.hpp"
#include "runtime/base/counted.hpp"
#include "runtime/data/data_format.hpp"
#include "runtime/data/encoded/part_files.hpp"
#include "runtime/data/tokens/token_samples.hpp"
#include "src/base/regular_file.hpp"

namespace dlrun::runtime {
namespace {

namespace fs = std::filesystem;

// Up to so many bytes, every token and checksum is verified before training: at some GB a second. Beyond,
// the tokens of each window are, when it is read.
constexpr std::uint64_t kVerified = std::uint64_t{1} << 30;

// What to do about parts that are shorter than a window.
constexpr const char* kTooFew = "set a shorter train.data.context, or prepare more texts";
constexpr const char* kTooFewValidated =
    "prepare the texts again with a larger --validation, or set a shorter train.data.context";

bool is_token_file(const fs::path& file) {
  return file.extension() == ".tokens";
}

struct Streams {
  TokenStream train;
  std::optional<TokenStream> validation;
};

class TokenSource final : public DataSource {
 public:
  TokenSource(fs::path folder, std::int64_t context, double train_share)
      : folder_(std::move(folder)), context_(context), train_share_(train_share) {}

  std::size_t channels() const override { return 1; }
  SampleKind kind() const override { return SampleKind::tokens; }
  std::string place() const override { return folder_.string(); }
  Result<InputShape> probe() const override { return shape_of(TRY(open())); }
  Result<InputShape> check() const override {
    const Streams streams = TRY(open());
    TRY(verify(streams));
    TRY(tokenizer_of(streams.train));
    return shape_of(streams);
  }
  Result<DataParts> load(std::uint64_t) const override {
    Streams streams = TRY(open());
    DataParts out;
    out.notes = unused_note(TRY(find_part_files(folder_, is_token_file)));
    out.tokenizer = TRY(tokenizer_of(streams.train));
    if (!TRY(verify(streams)))
      out.notes.push_back(
          "more than 1 GiB of tokens: checksums are not verified, and tokens when they are read");
    out.train = token_samples(std::move(streams.train), context_);
    if (streams.validation) out.test = token_samples(std::move(*streams.validation), context_);
    out.test.shape = out.train.shape;
    return out;
  }
  // Validation files do without training files.
  Result<Dataset> load_evaluated() const override {
    const PartFiles files = TRY(find_part_files(folder_, is_token_file));
    if (files.train.empty() && files.test.empty()) return no_files();
    TokenStream stream =
        TRY(files.test.empty() ? open_part(files.train, kTooFew) : open_part(files.test, kTooFewValidated));
    if (stream.bytes() <= kVerified) TRY(stream.verify());
    TRY(tokenizer_of(stream));
    return token_samples(std::move(stream), context_);
  }

 private:
  InputShape shape_of(const Streams& streams) const {
    return token_sequences(context_, static_cast<std::int64_t>(streams.train.vocabulary()));
  }

  tl::unexpected<Error> no_files() const {
    return bad_input(folder_.string(), "has no training files: no name ends in .tokens",
                     "write them with dlrun-train --prepare --tokens");
  }

  Result<TokenStream> open_part(const std::vector<fs::path>& files, const char* too_few) const {
    TokenStream out = TRY(TokenStream::open(files));
    if (out.count() > static_cast<std::uint64_t>(context_)) return out;
    return bad_input(out.name(),
                     fmt::format("{} {} in all, and a window of train.data.context {} needs {}",
                                 files.size() == 1 ? "has" : "and the files after it have",
                                 counted(out.count(), "token"), context_, context_ + 1),
                     too_few);
  }

  Result<Streams> open() const {
    const PartFiles files = TRY(find_part_files(folder_, is_token_file));
    if (files.train.empty() && files.test.empty()) return no_files();
    if (files.train.empty())
      return bad_input(folder_.string(),
                       fmt::format("has no training files: all are for validation by their names, as {}",
                                   files.test.front().filename().string()),
                       "add those of the training part: dlrun-train --prepare --tokens writes both");
    if (files.test.empty() && train_share_ == 1)
      return bad_input(folder_.string(),
                       "has no validation files: no name has the word val, validation or test",
                       "set a validation split with train: 0.95");
    Streams out{.train = TRY(open_part(files.train, kTooFew)), .validation = {}};
    if (files.test.empty()) return out;
    out.validation = TRY(open_part(files.test, kTooFewValidated));
    if (out.validation->vocabulary() != out.train.vocabulary() ||
        out.validation->tokenizer() != out.train.tokenizer())
      return bad_input(out.validation->name(),
                       fmt::format("has another vocabulary (offset 24) or tokenizer (offset 32) than {}",
                                   out.train.name()));
    return out;
  }

  // Whether it was little enough.
  Result<bool> verify(const Streams& streams) const {
    const std::uint64_t bytes =
        streams.train.bytes() + (streams.validation ? streams.validation->bytes() : 0);
    if (bytes > kVerified) return false;
    TRY(streams.train.verify());
    if (streams.validation) TRY(streams.validation->verify());
    return true;
  }

  // The text of tokenizer.json; empty where the tokens name none.
  Result<std::string> tokenizer_of(const TokenStream& stream) const {
    if (stream.tokenizer() == 0) return std::string();
    const fs::path path = folder_ / kTokenizerFile;
    std::string text = TRY(read_regular_file(path));
    if (checksum(std::string_view(text)) == stream.tokenizer()) return text;
    return bad_input(path.string(),
                     fmt::format("is not the tokenizer that {} was written with (offset 32)", stream.name()));
  }

  fs::path folder_;
  std::int64_t context_;
  double train_share_;
};

}  // namespace

DataFormat::Read read_tokens_section;

Result<std::shared_ptr<const DataSource>> read_tokens_section(yaml::Fields& data, double train_share) {
  const std::int64_t context = TRY(data.integer_or("context", 1024, 1, kMaxContext));
  return std::make_shared<TokenSource>(TRY(data.text("dir")), context, train_share);
}

}  // namespace dlrun::runtime
