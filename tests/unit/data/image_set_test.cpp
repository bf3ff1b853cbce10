// Which images there are: class folders and list files.
#include "runtime/data/images/image_set.hpp"

#include <doctest/doctest.h>

#include "support.hpp"

using namespace dlrun;
using namespace dlrun::runtime;

namespace {

struct Tree : test::Folder {
  void touch(const std::string& name) const {
    std::filesystem::create_directories((path / name).parent_path());
    write(name, "x");
  }
  Result<ImageSet> find(double share = 1) const {
    return find_images({.directory = path, .train_share = share});
  }
};

std::string listed(const std::vector<ImageFile>& files) {
  std::string out;
  for (const ImageFile& file : files) out += fmt::format("{}:{} ", file.path.filename().string(), file.label);
  return out;
}

}  // namespace

TEST_CASE("classes are numbered by name, files come in order, hidden ones do not") {
  const Tree tree;
  for (const char* name :
       {"train/tulip/2.jpg", "train/tulip/10.jpg", "train/aster/b.png", "train/aster/.thumbs",
        "test/tulip/t.jpg", "train/__MACOSX/1.jpg", "train/.ipynb_checkpoints/1.jpg", "test/__MACOSX/1.jpg"})
    tree.touch(name);
  const ImageSet set = tree.find().value();
  CHECK(set.classes == std::vector<std::string>{"aster", "tulip"});
  CHECK(listed(set.train) == "b.png:0 10.jpg:1 2.jpg:1 ");
  CHECK(listed(set.test) == "t.jpg:1 ");
}

TEST_CASE("class folders without a training image are refused by name, also where they have test images") {
  const Tree tree;
  tree.touch("train/aster/1.jpg");
  tree.touch("train/tulip/1.jpg");
  tree.touch("test/bird/1.jpg");
  std::filesystem::create_directories(tree.path / "train/bird");
  CHECK(tree.find().error().what == "1 of 3 class folders has no training image: bird");
  CHECK(tree.find().error().where == (tree.path / "train").string());
  CHECK(tree.find().error().hint == "add images, or remove folders that are not classes");
  for (int i = 0; i < 12; ++i)
    std::filesystem::create_directories(tree.path / fmt::format("train/c{:02}", i));
  CHECK(tree.find().error().what ==
        "13 of 15 class folders have no training image: bird, c00, c01, c02, c03, c04, c05, c06, c07, c08, "
        "...");
}

TEST_CASE("one part alone is held out from, and a test part is asked for") {
  const Tree tree;
  tree.touch("aster/1.jpg");
  tree.touch("tulip/2.jpg");
  CHECK(listed(tree.find(0.5).value().train) == "1.jpg:0 2.jpg:1 ");
  CHECK(tree.find().error().text().find("there are no test images\n  hint: add a folder test") !=
        std::string::npos);
}

TEST_CASE("folders that make no sense are named") {
  const Tree tree;
  CHECK(tree.find().error().what == "has 0 class folders, which is out of range [2, 65536]");
  tree.touch("train/aster/1.jpg");
  tree.touch("train/tulip/1.jpg");
  tree.touch("val/tulips/1.jpg");
  CHECK(tree.find().error().text().find(
            "class 'tulips' has no training folder\n  hint: did you mean 'tulip'?") != std::string::npos);
  CHECK(find_images({.directory = "/not/there"}).error().what == "is not a folder");
}

TEST_CASE("a list has a path and a class a line; paths may have blanks") {
  const auto read = [](std::string_view text) { return read_image_list(text, "/data", 3, "train.txt"); };
  const auto files = read("flowers/1/44235_1.png 1\n\n  my photos/a b.jpg\t2  \n/abs/c.jpg 0");
  REQUIRE(files.value().size() == 3);
  CHECK(files->at(0).path == "/data/flowers/1/44235_1.png");
  CHECK(files->at(1).path == "/data/my photos/a b.jpg");
  CHECK(files->at(1).label == 2);
  CHECK(files->at(2).path == "/abs/c.jpg");
  for (const char* line : {"a.jpg", "a.jpg 3", "a.jpg -1", "a.jpg x", "7"})
    CHECK(read(std::string("ok.jpg 0\n") + line).error().text().find("train.txt:2: '") == 0);
}
