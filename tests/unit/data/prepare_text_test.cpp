// Texts into token files: the same tokens however the texts are cut into files and whoever writes them, parts
// by name or by share, and a run that goes on where one ended.
#include "runtime/data/text/prepare_text.hpp"

#include <doctest/doctest.h>
#include <sys/fsuid.h>

#include "runtime/data/partial_folder.hpp"
#include "runtime/data/text/byte_alphabet.hpp"
#include "runtime/data/text/text_cuts.hpp"
#include "runtime/train/prepare_command.hpp"
#include "tests/unit/data/tokens_support.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::test;

namespace {

constexpr std::int32_t kEnd = 256;

std::string lines_of_text(int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += fmt::format("line {} of the text, and the rest of it\n", i);
  return out;
}

TextJob job_of(const Folder& texts, const std::filesystem::path& into, const Tokenizer& tokenizer) {
  return {.from = texts.path, .into = into, .tokenizer = std::make_shared<const Tokenizer>(tokenizer)};
}

struct Prepared {
  std::vector<std::int32_t> train, validation;
};

std::vector<std::int32_t> all_of(const Dataset& data) {
  std::vector<std::int32_t> out(data.tokens ? data.tokens->count() : 0);
  if (!out.empty()) REQUIRE(data.tokens->read(0, out));
  return out;
}

Prepared read_back(const std::filesystem::path& folder) {
  const std::string text =
      fmt::format("{{format: tokens, dir: {}, context: 2, train: 0.5}}", folder.string());
  const yaml::Node node = yaml::parse(text, "job.yaml").value();
  yaml::Fields fields = yaml::Fields::of(node, "train.data").value();
  const auto parts = read_data_source(fields)->source->load(1);
  REQUIRE_MESSAGE(parts.has_value(), parts.error().text());
  return {all_of(parts->train), all_of(parts->test)};
}

std::vector<std::int32_t> bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

// Bytes, and the merges "th" and "the".
Tokenizer small_merges() {
  std::string words;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string letter = alphabet_of_bytes(std::string(1, static_cast<char>(byte)));
    words += fmt::format("\"{}{}\": {}, ", letter == "\"" || letter == "\\" ? "\\" : "", letter, byte);
  }
  return Tokenizer::parse(fmt::format("{{\"schema\": \"dlrun.tokenizer/1\", \"vocabulary\": {{{}\"th\": 256, "
                                      "\"the\": 257}}, \"merges\": [\"t h\", \"th e\"]}}",
                                      words),
                          "tokenizer.json")
      .value();
}

}  // namespace

TEST_CASE("texts become tokens in the order of their names, with an end behind each") {
  const Folder texts, out;
  std::filesystem::create_directories(texts.path / "a");
  texts.write("b.txt", "second");
  texts.write("a/x.txt", "first");
  texts.write("a/empty.txt", "");
  texts.write("a/notes.md", "not a text");
  texts.write("validation.txt", "third");
  const auto done = tokenize_texts(job_of(texts, out.path / "new", Tokenizer::of_bytes()));
  REQUIRE_MESSAGE(done.has_value(), done.error().text());
  CHECK(done->texts == 3);
  CHECK(done->train == 13);
  CHECK(done->validation == 6);
  const Prepared there = read_back(out.path / "new");
  std::vector<std::int32_t> expected = bytes_of("first");
  expected.push_back(kEnd);
  for (const std::int32_t byte : bytes_of("second")) expected.push_back(byte);
  expected.push_back(kEnd);
  CHECK(there.train == expected);
  expected = bytes_of("third");
  expected.push_back(kEnd);
  CHECK(there.validation == expected);
  CHECK(tokenize_texts(job_of(texts, out.path / "new", Tokenizer::of_bytes()))
            .error()
            .what.find("already exists") != std::string::npos);
}

TEST_CASE("the last part of all bytes is for validation, where no name says so") {
  const Folder texts, out;
  const std::string text = lines_of_text(50);
  texts.write("book.txt", text);
  TextJob job = job_of(texts, out.path / "new", Tokenizer::of_bytes());
  job.validation = 0.25;
  REQUIRE(tokenize_texts(job));
  const Prepared there = read_back(out.path / "new");
  const std::size_t border = text.size() - (text.size() + 3) / 4;
  CHECK(there.train == bytes_of(text.substr(0, border)));
  std::vector<std::int32_t> rest = bytes_of(text.substr(border));
  rest.push_back(kEnd);
  CHECK(there.validation == rest);
}

TEST_CASE("neither the size of files nor the number of workers changes a token") {
  const Folder texts, out;
  texts.write("book.txt", lines_of_text(400));
  texts.write("other.txt", "the the\nthe end");
  const Tokenizer tokenizer = small_merges();
  TextJob job = job_of(texts, out.path / "one", tokenizer);
  REQUIRE(tokenize_texts(job));
  job.into = out.path / "many";
  job.shard_bytes = 700;
  job.workers = 3;
  const auto many = tokenize_texts(job);
  REQUIRE(many);
  CHECK(many->files > 20);
  const Prepared a = read_back(out.path / "one"), b = read_back(out.path / "many");
  CHECK(a.train == b.train);
  CHECK(a.validation == b.validation);
  std::vector<std::uint32_t> all;
  for (const auto* part : {&a.train, &a.validation}) all.insert(all.end(), part->begin(), part->end());
  CHECK(tokenizer.decode(all) == lines_of_text(400) + "the the\nthe end");
  CHECK(std::count(all.begin(), all.end(), 257U) == 803);  // two in each line, and three
}

TEST_CASE("texts without plain lines have a validation part and files of the asked size") {
  const std::vector<std::string> samples = {"one two\r\n",         "раз два три. ",       "one\n\ntwo\n\n",
                                            "\tindented line  \n", "no line end at all ", "東京都、大阪府。"};
  for (const std::string& sample : samples) {
    const Folder texts, out;
    std::string text;
    while (text.size() < 20000) text += sample;
    texts.write("book.txt", text);
    TextJob job = job_of(texts, out.path / "new", small_merges());
    job.shard_bytes = 2000;
    const auto done = tokenize_texts(job);
    REQUIRE_MESSAGE(done.has_value(), done.error().text());
    CHECK(done->notes.empty());
    CHECK(done->validation * 20 > done->train);
    CHECK(std::filesystem::file_size(out.path / "new" / "train-00001.tokens") > 2000);
    const Prepared there = read_back(out.path / "new");
    std::vector<std::int32_t> all = there.train;
    all.insert(all.end(), there.validation.begin(), there.validation.end());
    const Tokenizer::Tokens whole = small_merges().encode(text);
    CHECK(all == std::vector<std::int32_t>(whole.begin(), whole.end()));
  }
}

TEST_CASE("a text that cannot be cut near the asked place is named, and ends once") {
  const Folder texts, out;
  texts.write("a.txt", std::string(9000, 'x') + " yy zz");
  const TextFile file{.path = texts.path / "a.txt", .name = "a.txt", .bytes = 9006};
  std::vector<TextShard> shards = plan_text_shards({file}, 0.05, 2000);
  const auto notes = cut_texts({file}, shards);
  REQUIRE(notes);
  REQUIRE(notes->size() == 1);
  CHECK(contains(notes->front(),
                 "a.txt: cannot be cut at byte 2000, is cut at 9000: no word ends between them"));
  std::uint64_t last = 0;
  for (const TextShard& shard : shards)
    for (const TextRange& range : shard.ranges) {
      CHECK(range.begin == last);
      last = range.end;
    }
  CHECK(last == 9006);
  texts.write("a.txt", std::string(9000, 'x'));
  TextJob job = job_of(texts, out.path / "new", small_merges());
  CHECK(contains(tokenize_texts(job).error().what, "cut at 9000, its end: no word ends between them"));
}

TEST_CASE("a run that was ended goes on, and one of other texts begins anew") {
  const Folder texts, out;
  texts.write("book.txt", lines_of_text(100));
  TextJob job = job_of(texts, out.path / "new", Tokenizer::of_bytes());
  job.shard_bytes = 500;
  REQUIRE(tokenize_texts(job));
  const Prepared whole = read_back(out.path / "new");
  // As one that was ended leaves it: a file is missing, one is damaged.
  const auto leave_half = [&] {
    std::filesystem::remove_all(out.path / "new");
    TextJob first = job;
    first.progress = [](std::uint64_t done, std::uint64_t) {
      if (done > 1500) throw std::runtime_error("ended");
    };
    CHECK_THROWS(static_cast<void>(tokenize_texts(first)));
    std::string damaged = read_file(out.path / "new.partial" / "train-00001.tokens").value();
    damaged.back() = 'x';
    out.write("new.partial/train-00001.tokens", damaged);
  };
  leave_half();
  const auto done = tokenize_texts(job);
  REQUIRE_MESSAGE(done.has_value(), done.error().text());
  CHECK(done->kept >= 2);
  CHECK(done->kept < done->files - 1);
  CHECK(read_back(out.path / "new").train == whole.train);
  leave_half();
  texts.write("book.txt", lines_of_text(101));
  CHECK(tokenize_texts(job)->kept == 0);
}

TEST_CASE("what a killed process left half written is removed, and two processes do not write one folder") {
  const Folder texts, out;
  texts.write("book.txt", lines_of_text(100));
  const TextJob job = job_of(texts, out.path / "new", Tokenizer::of_bytes());
  {
    const auto other = PartialFolder::hold(out.path / "new");
    REQUIRE(other);
    out.write("new.partial/train-00020.tokens.tmp12592", "half");
    CHECK(contains(tokenize_texts(job).error().what, "another process prepares"));
    CHECK(std::filesystem::exists(out.path / "new.partial" / "train-00020.tokens.tmp12592"));
    out.write("new.partial/notes.tmp", "kept");
    REQUIRE(other->complete());
    CHECK(std::filesystem::exists(out.path / "new" / "notes.tmp"));
    CHECK_FALSE(std::filesystem::exists(out.path / "new" / "train-00020.tokens.tmp12592"));
  }
  CHECK(contains(tokenize_texts(job).error().what, "already exists"));
  std::filesystem::remove_all(out.path / "new");
  CHECK(tokenize_texts(job));
  CHECK_FALSE(std::filesystem::exists(out.path / "new.partial"));
}

TEST_CASE("texts that are missing or of one part alone are named") {
  const Folder texts, out;
  const auto refusal = [&] {
    return tokenize_texts(job_of(texts, out.path / "new", Tokenizer::of_bytes())).error();
  };
  texts.write("val.txt", lines_of_text(10));
  CHECK(contains(refusal().what, "has texts for validation only by their names, as val.txt"));
  CHECK(contains(refusal().hint, "add texts for training"));
  texts.write("book.txt", lines_of_text(10));
  std::filesystem::create_symlink("nowhere.txt", texts.path / "gone.txt");
  CHECK(contains(refusal().where, "gone.txt"));
  CHECK(contains(refusal().what, "is a link to a file that is not there"));
}

TEST_CASE("a folder that cannot be read is named itself, and not the one it is in") {
  const Folder texts;
  texts.write("book.txt", "text");
  std::filesystem::create_directories(texts.path / "a" / "closed");
  std::filesystem::permissions(texts.path, std::filesystem::perms{0755});
  std::filesystem::permissions(texts.path / "a" / "closed", std::filesystem::perms::none);
  const int before = ::setfsuid(65534);  // root can read all folders
  const auto found = find_texts(texts.path);
  ::setfsuid(static_cast<uid_t>(before));
  REQUIRE_FALSE(found.has_value());
  CHECK(contains(found.error().where, "a/closed"));
}

TEST_CASE("texts that are no texts, and parts without a token") {
  const Folder texts, out;
  const auto refusal = [&](double validation = 0.05) {
    TextJob job = job_of(texts, out.path / "new", small_merges());
    job.validation = validation;
    const auto done = tokenize_texts(job);
    REQUIRE_FALSE(done.has_value());
    return done.error().text();
  };
  CHECK(contains(refusal(), "has no texts"));
  texts.write("a.txt", gzip("text"));
  CHECK(contains(refusal(), "is compressed"));
  texts.write("a.txt", "onelinethatcannotbecut");
  CHECK(contains(refusal(), "leaves no token for the validation part"));
  CHECK(tokenize_texts({.from = texts.path / "a.txt",
                        .into = out.path / "new",
                        .tokenizer = std::make_shared<const Tokenizer>(small_merges()),
                        .validation = 0}));
}

TEST_CASE("--prepare --tokens: its flags, and those that are for images") {
  const auto parse = [](std::vector<std::string> more) {
    std::vector<std::string> words{"--prepare", "texts", "--into", "new"};
    words.insert(words.end(), more.begin(), more.end());
    return parse_prepare(words);
  };
  const auto job = parse({"--tokens", "bytes", "--validation", "0.1", "--shard-size", "1MiB"});
  REQUIRE_MESSAGE(job.has_value(), job.error().text());
  const auto& text = std::get<TextJob>(*job);
  CHECK(text.validation == 0.1);
  CHECK(text.shard_bytes == 1 << 20);
  CHECK(text.tokenizer->vocabulary() == 257);
  CHECK(contains(parse({"--tokens", "bytes", "--size", "32"}).error().what, "--size is for images"));
  CHECK(contains(parse({"--tokens", "bytes", "--validation", "1"}).error().what, "out of range [0, 0.9]"));
  CHECK(contains(parse({"--tokens", "byte"}).error().hint, "did you mean 'bytes'"));
  CHECK(contains(parse({"--tokens", "bytes", "--shard-size", "63KiB"}).error().what, "less than 64KiB"));
  CHECK(contains(parse({"--validation", "0.1"}).error().what, "--validation needs --tokens"));
  CHECK(contains(parse({"--tokens", "/nowhere"}).error().where, "/nowhere/vocab.json"));
}
