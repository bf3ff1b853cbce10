// Token files: windows of a stream that goes over the borders of files, rows as an engine gets them, and
// every fault named with its file and offset.
#include <doctest/doctest.h>

#include "runtime/base/checksum.hpp"
#include "runtime/data/batch_filler.hpp"
#include "runtime/data/synthetic.hpp"
#include "tests/unit/data/tokens_support.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::test;

namespace {

// Three rows of four positions.
struct FilledRows {
  std::vector<std::int32_t> tokens = std::vector<std::int32_t>(12), labels = std::vector<std::int32_t>(12);
  BatchFiller::Rows rows() { return {.numbers = {}, .bytes = {}, .labels = labels, .tokens = tokens}; }
};

DataParts load(const Folder& folder, const std::string& more, double train_share = 1) {
  const auto source = token_source(folder, more);
  REQUIRE_MESSAGE(source.has_value(), source.error().text());
  auto parts = load_data(**source, 1, train_share);
  REQUIRE_MESSAGE(parts.has_value(), parts.error().text());
  return std::move(*parts);
}

// What --check says of the training file's content.
Error refusal(const std::string& content, const std::string& more = "context: 4, train: 0.5") {
  const Folder folder;
  folder.write("train.tokens", content);
  const auto source = token_source(folder, more);
  REQUIRE(source);
  const auto checked = (*source)->check();
  REQUIRE_FALSE(checked.has_value());
  CHECK(checked.error().kind == ErrorKind::input);
  CHECK(contains(checked.error().where, "train.tokens"));
  return checked.error();
}

}  // namespace

TEST_CASE("windows of tokens follow each other without a gap, over the borders of files") {
  const Folder folder;
  folder.write("train-0.tokens", counting_tokens(0, 6, 100));
  folder.write("train-1.tokens", counting_tokens(6, 1, 100));
  folder.write("train-2.tokens", counting_tokens(7, 9, 100));
  folder.write("val.tokens", counting_tokens(50, 5, 100));
  const DataParts data = load(folder, "context: 4");
  CHECK(data.train.count == 3);  // of 16 tokens: the last window would need a 17th
  CHECK(data.test.count == 1);
  CHECK(data.train.shape.kind == SampleKind::tokens);
  CHECK(data.train.shape.height == 4);
  CHECK(data.train.shape.classes == 100);
  REQUIRE(data.notes.size() == 1);
  CHECK(contains(data.notes[0], "3 training and 1 validation sequences of 4 tokens"));
  const BatchFiller filler(data.train, {}, {});
  FilledRows out;
  CHECK(filler.fill(
            3, [](std::uint64_t i) { return 2 - i; }, std::nullopt, out.rows()) == 3);
  CHECK(out.tokens == std::vector<std::int32_t>{8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3});
  CHECK(out.labels == std::vector<std::int32_t>{9, 10, 11, 12, 5, 6, 7, 8, 1, 2, 3, 4});
  CHECK(filler.state());
}

TEST_CASE("rows behind the last repeat samples, and count at no position") {
  const Folder folder;
  folder.write("train.tokens", counting_tokens(0, 21, 100));
  const DataParts data = load(folder, "context: 4, train: 0.5");
  const BatchFiller filler(data.train, {}, {});
  FilledRows out;
  CHECK(filler.fill(
            1, [](std::uint64_t) { return 4; }, std::nullopt, out.rows()) == 1);
  CHECK(out.tokens == std::vector<std::int32_t>{16, 17, 18, 19, 16, 17, 18, 19, 16, 17, 18, 19});
  CHECK(out.labels == std::vector<std::int32_t>{17, 18, 19, 20, -1, -1, -1, -1, -1, -1, -1, -1});
  CHECK(filler.fill(
            0, [](std::uint64_t) { return 0; }, std::nullopt, out.rows()) == 0);
  CHECK(out.labels == std::vector<std::int32_t>(12, -1));
}

TEST_CASE("a vocabulary of more than 65536 tokens has numbers of 32 bits") {
  const Folder folder;
  const std::string content = counting_tokens(69995, 10, 70000);
  CHECK(content.size() == kTokenHeaderBytes + 40);
  folder.write("train.tokens", content);
  const DataParts data = load(folder, "context: 9, train: 0.5");
  std::vector<std::int32_t> tokens(9), labels(9);
  BatchFiller(data.train, {}, {})
      .fill(1, [](std::uint64_t) { return 0; }, std::nullopt, {{}, {}, labels, tokens});
  CHECK(tokens == std::vector<std::int32_t>{69995, 69996, 69997, 69998, 69999, 0, 1, 2, 3});
}

TEST_CASE("damaged token files are named with the offset of what is wrong") {
  const std::string sound = counting_tokens(0, 8, 100);
  CHECK(contains(refusal("PNG" + sound).what, "the bytes at offset 0 are not 'dlruntok'"));
  CHECK(contains(refusal(sound.substr(0, 30)).what, "ends at offset 30, within the header of 64 bytes"));
  CHECK(contains(refusal(sound.substr(0, 75)).what,
                 "8 tokens of 2 bytes (offset 16), and the file ends at "
                 "offset 75, after 5 tokens"));
  CHECK(contains(refusal(sound + "zz").what, "beyond 8 tokens"));
  std::string version = sound, beyond = sound, changed = sound, width = sound;
  version[8] = 2;
  CHECK(contains(refusal(version).what, "version 2 (offset 8)"));
  width[12] = 3;
  CHECK(contains(refusal(width).what, "3 bytes per token (offset 12)"));
  beyond[64 + 2 * 5] = 100;
  CHECK(contains(refusal(beyond).what, "token 100 at offset 74 is out of range: the vocabulary has 100"));
  changed[64 + 2 * 5] = 9;
  CHECK(contains(refusal(changed).what, "its checksum differs"));
  CHECK(contains(refusal(sound, "context: 8, train: 0.5").what,
                 "has 8 tokens in all, and a window of train.data.context 8 needs 9"));
}

TEST_CASE("files of another vocabulary or tokenizer are refused, and so are parts that are missing") {
  const Folder folder;
  const auto check = [&](const std::string& more) { return (*token_source(folder, more))->check(); };
  CHECK(contains(check("context: 4").error().what, "has no training files"));
  folder.write("train-0.tokens", counting_tokens(0, 8, 100));
  CHECK(contains(check("context: 4").error().what, "has no validation files"));
  CHECK(check("context: 4, train: 0.5"));
  folder.write("train-1.tokens", counting_tokens(0, 8, 101));
  CHECK(contains(check("context: 4, train: 0.5").error().what, "vocabulary of 101 tokens (offset 24), and"));
  folder.write("train-1.tokens", counting_tokens(0, 8, 100, 7));
  CHECK(contains(check("context: 4, train: 0.5").error().what, "another tokenizer (offset 32)"));
  std::filesystem::remove(folder.path / "train-1.tokens");
  folder.write("validation.tokens", counting_tokens(0, 8, 99));
  CHECK(contains(check("context: 4").error().what, "another vocabulary (offset 24)"));
}

TEST_CASE("what was found is said as it is used: one token, the validation split, files of neither part") {
  const Folder folder;
  folder.write("train-0.tokens", counting_tokens(0, 21, 100));
  CHECK(
      contains(load(folder, "context: 1, train: 0.9", 0.9).notes.at(0),
               "found 18 training, 2 validation (of the training files, by train: 0.9) and 0 test sequences "
               "of 1 token in"));
  folder.write("val.tokens", counting_tokens(0, 4, 100));
  CHECK(contains(load(folder, "context: 1, train: 0.9", 0.9).notes.at(0), "and 3 test sequences"));
  CHECK(contains(load(folder, "context: 1").notes.at(0), "found 20 training and 3 validation sequences"));
  folder.write("foo.tokens", counting_tokens(0, 4, 100));
  const DataParts data = load(folder, "context: 1");
  CHECK(data.train.count == 20);
  REQUIRE(data.notes.size() == 2);
  CHECK(contains(data.notes[1], "not used, because no word of the name is train"));
  CHECK(contains(data.notes[1], "foo.tokens"));
}

TEST_CASE("validation files alone are evaluated, and no training") {
  const Folder folder;
  const auto source = token_source(folder, "context: 4").value();
  CHECK(contains(source->load_evaluated().error().what, "no name ends in .tokens"));
  folder.write("validation-0.tokens", counting_tokens(0, 9, 100));
  CHECK(contains(source->check().error().what,
                 "all are for validation by their names, as validation-0.tokens"));
  const auto alone = source->load_evaluated();
  REQUIRE_MESSAGE(alone.has_value(), alone.error().text());
  CHECK(alone->count == 2);
  CHECK(alone->shape.classes == 100);
  folder.write("train-0.tokens", "damaged");
  CHECK(source->load_evaluated()->count == 2);
  folder.write("train-0.tokens", counting_tokens(0, 21, 100));
  std::filesystem::remove(folder.path / "validation-0.tokens");
  CHECK(source->load_evaluated()->count == 5);
}

TEST_CASE("a part that is shorter than a window has the hint that helps") {
  const Folder folder;
  folder.write("train.tokens", counting_tokens(0, 21, 100));
  folder.write("validation.tokens", counting_tokens(0, 4, 100));
  const auto refused = [&] { return token_source(folder, "context: 4").value()->check().error(); };
  CHECK(contains(refused().where, "validation.tokens"));
  CHECK(contains(refused().hint, "again with a larger --validation, or set a shorter train.data.context"));
  folder.write("train.tokens", counting_tokens(0, 1, 100));
  CHECK(contains(refused().what, "has 1 token in all"));
  CHECK(contains(refused().hint, "prepare more texts"));
}

TEST_CASE("the tokenizer lies beside the tokens, and must be the one that wrote them") {
  const Folder folder;
  const std::string text = "{\"schema\": \"dlrun.tokenizer/1\"}";
  folder.write("train.tokens", counting_tokens(0, 8, 100, checksum(text)));
  const auto source = token_source(folder, "context: 4, train: 0.5").value();
  CHECK(source->check().error().kind == ErrorKind::input);  // it is not there
  folder.write("tokenizer.json", text + " ");
  CHECK(contains(source->check().error().what, "is not the tokenizer that"));
  folder.write("tokenizer.json", text);
  REQUIRE(source->check());
  CHECK(source->load(1)->tokenizer == text);
}

TEST_CASE(
    "a token that is damaged behind the check ends the training by name, and never reaches the engine") {
  const Folder folder;
  folder.write("train.tokens", counting_tokens(0, 9, 100));
  const DataParts data = load(folder, "context: 4, train: 0.5");
  std::string content = counting_tokens(0, 9, 100);
  content[64 + 2 * 6 + 1] = 1;                                                 // token 6 is 262
  std::FILE* file = std::fopen((folder.path / "train.tokens").c_str(), "r+");  // in place: it is mapped
  REQUIRE(file != nullptr);
  std::fwrite(content.data(), 1, content.size(), file);
  std::fclose(file);
  const BatchFiller filler(data.train, {}, {});
  FilledRows out;
  filler.fill(
      2, [](std::uint64_t i) { return i; }, std::nullopt, out.rows());
  REQUIRE_FALSE(filler.state().has_value());
  CHECK(contains(filler.state().error().what, "token 262 at offset 76 is out of range"));
  for (const std::int32_t token : out.tokens) CHECK(token < 100);
}

TEST_CASE("the fingerprint tells other tokens and another context") {
  const Folder a, b;
  a.write("train.tokens", counting_tokens(0, 40, 100));
  b.write("train.tokens", counting_tokens(1, 40, 100));
  const auto of = [](const Folder& folder, const std::string& more) {
    return load(folder, more + ", train: 0.5").train.fingerprint();
  };
  CHECK(of(a, "context: 4") == of(a, "context: 4"));
  CHECK(of(a, "context: 4") != of(b, "context: 4"));
  CHECK(of(a, "context: 4") != of(a, "context: 5"));
}

TEST_CASE("synthetic tokens are a function of the seed, and half of them follow from the one before") {
  const InputShape shape = token_sequences(8, 50);
  const DataParts data = make_synthetic(shape, 100, 1).value(), again = make_synthetic(shape, 100, 1).value();
  CHECK(data.train.fingerprint() == again.train.fingerprint());
  CHECK(data.train.fingerprint() != make_synthetic(shape, 100, 2)->train.fingerprint());
  CHECK(data.train.count == 100);
  CHECK(data.test.count == 12);
  std::vector<std::int32_t> tokens(801);
  REQUIRE(data.train.tokens->read(0, tokens));
  std::vector<std::vector<int>> followed(50, std::vector<int>(50));
  for (std::size_t i = 1; i < tokens.size(); ++i)
    if (i % 8 != 0) ++followed[static_cast<std::size_t>(tokens[i - 1])][static_cast<std::size_t>(tokens[i])];
  int usual = 0;
  for (const std::vector<int>& row : followed) usual += *std::max_element(row.begin(), row.end());
  CHECK(usual > 700 * 0.4);
  CHECK(usual < 700 * 0.75);
}
