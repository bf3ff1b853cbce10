// From folders of images to samples, straight and by way of packed shards: the same bytes.
#include "runtime/data/images/packed.hpp"

#include <fstream>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "image_support.hpp"
#include "runtime/data/batch_filler.hpp"
#include "runtime/data/images/image_data.hpp"
#include "runtime/data/partial_folder.hpp"
#include "src/base/json.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::test;

namespace {

// Seven training and two test images in two classes, of odd sizes and both formats.
struct Photos : Folder {
  Photos() {
    for (int i = 0; i < 7; ++i) put(fmt::format("train/{}/{}.jpg", i % 2 == 0 ? "aster" : "tulip", i), i);
    put("test/aster/8.jpg", 8);
    std::filesystem::create_directories(path / "test/tulip");
    write("test/tulip/9.png", png_of<std::uint8_t>(3, 2, PNG_FORMAT_GRAY, {1, 2, 3, 4, 5, 6}));
  }
  void put(const std::string& name, int i) const {
    std::filesystem::create_directories((path / name).parent_path());
    write(name, jpeg_of(20 + i, 30 - i, [i](int x, int y) {
            return std::vector<std::uint8_t>{static_cast<std::uint8_t>(x * 7 + i),
                                             static_cast<std::uint8_t>(y * 5),
                                             static_cast<std::uint8_t>(30 * i)};
          }));
  }
  ImageSpec spec(Damaged damaged = Damaged::refused) const {
    return {.directory = path, .height = 8, .width = 6, .damaged = damaged};
  }
};

bool same(const Dataset& left, const Dataset& right) {
  if (left.count != right.count || left.labels != right.labels) return false;
  for (std::uint64_t i = 0; i < left.count; ++i)
    if (!std::equal(left.pixels(i).begin(), left.pixels(i).end(), right.pixels(i).begin())) return false;
  return left.fingerprint() == right.fingerprint();
}

}  // namespace

TEST_CASE("images become equal samples, in planes, whatever the number of threads") {
  const Photos photos;
  const DataParts parts = load_images(photos.spec()).value();
  CHECK(parts.train.count == 7);
  CHECK(parts.test.count == 2);
  CHECK(parts.train.shape.classes == 2);
  CHECK(parts.train.labels == std::vector<std::uint16_t>{0, 0, 0, 0, 1, 1, 1});
  CHECK(parts.train.pixels(0).size() == 3 * 8 * 6);
  const ImageSet set = find_images(photos.spec()).value();
  CHECK(same(parts.train, decode_all(set.train, parts.train.shape, Damaged::refused, 1).value()));
}

TEST_CASE("packed they are the same samples, over several shards") {
  const Photos photos;
  const DataParts direct = load_images(photos.spec()).value();
  const Folder out;
  const auto packed =
      pack_images({.data = photos.spec(), .into = out.path / "packed", .shard_bytes = 3 * 8 * 6 * 3}).value();
  CHECK(packed.train == 7);
  CHECK(packed.test == 2);
  ImageSpec spec{.directory = out.path / "packed"};
  const DataParts mapped = load_images(spec).value();
  CHECK(mapped.train.shards.size() == 3);
  CHECK(same(mapped.train, direct.train));
  CHECK(same(mapped.test, direct.test));
  CHECK(probe_images(spec)->height == 8);
  CHECK(
      pack_images({.data = photos.spec(), .into = out.path / "packed"}).error().what.find("already exists") !=
      std::string::npos);
}

TEST_CASE("what a preparation that was killed left is not in the next one, nor beside it") {
  const Photos photos;
  const Folder out;
  out.write("packed.partial/train-00007.pixels.tmp4711", "half");
  out.write("packed.partial/train-00007.pixels", "whole");
  REQUIRE(pack_images({.data = photos.spec(), .into = out.path / "packed"}).has_value());
  CHECK_FALSE(std::filesystem::exists(out.path / "packed" / "train-00007.pixels"));
  CHECK(std::distance(std::filesystem::directory_iterator(out.path), {}) == 1);
}

TEST_CASE("two processes do not prepare one folder at once") {
  const Photos photos;
  const Folder out;
  const PartialFolder held = PartialFolder::hold(out.path / "packed").value();
  const auto packed = pack_images({.data = photos.spec(), .into = out.path / "packed"});
  REQUIRE_FALSE(packed.has_value());
  CHECK(packed.error().what.starts_with("another process prepares "));
  CHECK(std::filesystem::exists(held.path()));
}

TEST_CASE("what a killed process left half written is not published, in no folder below") {
  const Folder out;
  const PartialFolder held = PartialFolder::hold(out.path / "packed").value();
  for (const char* name :
       {"train.tmp4711", "part/data.mdb.tmp12", "part/data.mdb", "part/notes.tmp", "old.tmp5/part"}) {
    std::filesystem::create_directories((held.path() / name).parent_path());
    std::ofstream(held.path() / name) << "x";
  }
  REQUIRE(held.complete().has_value());
  const std::filesystem::path packed = out.path / "packed";
  CHECK_FALSE(std::filesystem::exists(packed / "train.tmp4711"));
  CHECK_FALSE(std::filesystem::exists(packed / "part/data.mdb.tmp12"));
  CHECK_FALSE(std::filesystem::exists(packed / "old.tmp5"));
  CHECK(std::filesystem::exists(packed / "part/data.mdb"));
  CHECK(std::filesystem::exists(packed / "part/notes.tmp"));
}

TEST_CASE("damaged images are all named, or left out by everybody") {
  const Photos photos;
  photos.write("train/aster/0.jpg", "");
  photos.write("train/tulip/5.jpg", "no image");
  const std::string refusal = load_images(photos.spec()).error().text();
  CHECK(refusal.find("2 of 7 images cannot be decoded") != std::string::npos);
  CHECK(refusal.find("aster/0.jpg: the file is empty") != std::string::npos);
  CHECK(refusal.find("tulip/5.jpg: neither JPEG nor PNG") != std::string::npos);
  const DataParts parts = load_images(photos.spec(Damaged::dropped)).value();
  CHECK(parts.train.labels == std::vector<std::uint16_t>{0, 0, 0, 1, 1});
  const Folder out;
  CHECK_FALSE(pack_images({.data = photos.spec(), .into = out.path / "packed"}).has_value());
  CHECK(std::filesystem::is_empty(out.path));
  CHECK(pack_images({.data = photos.spec(Damaged::dropped), .into = out.path / "packed"})->dropped == 2);
  CHECK(same(load_images({.directory = out.path / "packed"})->train, parts.train));
}

TEST_CASE("a packed folder that was changed is refused") {
  const Photos photos;
  const Folder out;
  REQUIRE(pack_images({.data = photos.spec(), .into = out.path / "p"}).has_value());
  const ImageSpec spec{.directory = out.path / "p"};
  const std::string shard = read_file(out.path / "p/train-00000.bin").value();
  out.write("p/train-00000.bin", shard.substr(1));
  CHECK(load_images(spec).error().what.find("has 1007 bytes, not 1008") != std::string::npos);
  out.write("p/train-00000.bin", shard);
  const std::string labels = read_file(out.path / "p/train.labels").value();
  out.write("p/train.labels", std::string(labels.size(), '\1'));
  CHECK(load_images(spec).error().what.find("checksum") != std::string::npos);
  out.write("p/train.labels", labels);
  out.write("p/images.json", "{}");
  CHECK(load_images(spec).error().text().find("field 'schema' is missing") != std::string::npos);
}

TEST_CASE("what was found is said once: classes, images, what is left out, classes that nothing trains") {
  const Photos photos;
  CHECK(load_data(*make_image_source(photos.spec()), 1)->notes ==
        std::vector<std::string>{"found 2 classes, 7 training and 2 test images in " + photos.path.string()});
  photos.write("train/aster/0.jpg", "no image");
  photos.write("list.txt", "train/aster/0.jpg 0\ntrain/aster/2.jpg 0\ntrain/tulip/1.jpg 2\n");
  ImageSpec spec = photos.spec(Damaged::dropped);
  spec.list = photos.path / "list.txt";
  spec.classes = 4;
  spec.train_share = 0.5;
  CHECK(load_data(*make_image_source(spec), 1)->notes ==
        std::vector<std::string>{"found 4 classes, 2 training and 0 test images in " + spec.list.string(),
                                 "1 damaged images are dropped",
                                 "2 of 4 classes have no training image: number 1, 3"});
}

TEST_CASE("pixels of a shard that changed are noticed where they are read, with the shard's name") {
  const Photos photos;
  const Folder out;
  REQUIRE(pack_images({.data = photos.spec(), .into = out.path / "p"}).has_value());
  const ImageSpec spec{.directory = out.path / "p"};
  std::string shard = *read_file(out.path / "p/train-00000.bin");
  shard[3 * 144 + 20] ^= 1;  // of image 3
  out.write("p/train-00000.bin", shard);
  const DataParts parts = load_data(*make_image_source(spec), 1).value();
  const BatchFiller filler(parts.train, {}, {});
  std::vector<float> input(144);
  std::vector<std::int32_t> label(1);
  const auto fill = [&](std::uint64_t sample) {
    filler.fill(
        1, [=](std::uint64_t) { return sample; }, std::nullopt, input, label);
  };
  for (const std::uint64_t sound : {0, 1, 2, 4, 5, 6}) fill(sound);
  CHECK(filler.state());
  fill(3);
  fill(4);
  REQUIRE(!filler.state());
  CHECK(filler.state().error().text() ==
        (out.path / "p/train-00000.bin").string() +
            ": image 3 was changed after it was packed: its checksum differs\n  "
            "hint: pack the images again: dlrun-train "
            "--prepare");
  CHECK(filler.state().error().kind == ErrorKind::input);
}

TEST_CASE("checksums that do not fit are refused; folders without any are read, and that is said") {
  const Photos photos;
  const Folder out;
  REQUIRE(pack_images({.data = photos.spec(), .into = out.path / "p"}).has_value());
  const ImageSpec spec{.directory = out.path / "p"};
  const std::string sums = *read_file(out.path / "p/train.checksums");
  CHECK(sums.size() == 7 * 8);
  out.write("p/train.checksums", sums.substr(8));
  CHECK(load_images(spec).error().what == "has 48 bytes, not 56");
  out.write("p/train.checksums", std::string(56, 'x'));
  CHECK(load_images(spec).error().what == "does not match the checksum of the index");
  Json index = *parse_json(*read_file(out.path / "p/images.json"), "index");
  for (const char* part : {"train", "test"}) index[part].erase("pixels_checksum");
  out.write("p/images.json", to_text(index));
  const DataParts old = load_images(spec).value();
  CHECK(old.train.check_sample(0));
  REQUIRE(old.notes.size() == 1);
  CHECK(old.notes[0] ==
        spec.directory.string() +
            " has no checksums of pixels, so that damage is not detected: an older dlrun packed it");
}

TEST_CASE("what is no regular file is named and never waited for") {
  const Photos photos;
  std::filesystem::remove(photos.path / "train/aster/2.jpg");
  REQUIRE(::mkfifo((photos.path / "train/aster/2.jpg").c_str(), 0600) == 0);
  std::filesystem::remove(photos.path / "train/aster/4.jpg");
  std::filesystem::create_symlink("/dev/zero", photos.path / "train/aster/4.jpg");
  const std::string refusal = load_images(photos.spec()).error().text();
  CHECK(refusal.find("aster/2.jpg: is not a regular file") != std::string::npos);
  CHECK(refusal.find("aster/4.jpg: is not a regular file") != std::string::npos);
  REQUIRE(::mkfifo((photos.path / "list.txt").c_str(), 0600) == 0);
  CHECK(find_images({.list = photos.path / "list.txt"}).error().what == "is not a regular file");
  const Folder out;
  REQUIRE(pack_images({.data = photos.spec(Damaged::dropped), .into = out.path / "p"}).has_value());
  const ImageSpec spec{.directory = out.path / "p"};
  for (const char* name : {"p/train-00000.bin", "p/train.labels", "p/train.checksums"}) {
    const std::string content = *read_file(out.path / name);
    std::filesystem::remove(out.path / name);
    REQUIRE(::mkfifo((out.path / name).c_str(), 0600) == 0);
    CHECK(load_images(spec).error().text() == (out.path / name).string() + ": is not a regular file");
    std::filesystem::remove(out.path / name);
    out.write(name, content);
  }
}

TEST_CASE("a shard that is cut while it is mapped ends the process with its name") {
  const Photos photos;
  const Folder out;
  REQUIRE(pack_images({.data = photos.spec(), .into = out.path / "p"}).has_value());
  const std::string shard = (out.path / "p/train-00000.bin").string();
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(pipe[1], STDERR_FILENO);
    const auto parts = load_images({.directory = out.path / "p"});
    std::filesystem::resize_file(shard, 0);
    ::_exit(parts->train.check_sample(0) ? 1 : 2);
  }
  ::close(pipe[1]);
  std::string said(1000, '\0');
  said.resize(static_cast<std::size_t>(::read(pipe[0], said.data(), said.size())));
  ::close(pipe[0]);
  int status = 0;
  CHECK(::waitpid(pid, &status, 0) == pid);
  CHECK(WEXITSTATUS(status) == 65);
  CHECK(said.find("dlrun-train: error: " + shard + ": cannot be read any more: it became shorter") !=
        std::string::npos);
}
