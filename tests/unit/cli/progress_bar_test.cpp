#include "src/cli/progress_bar.hpp"

#include <doctest/doctest.h>

#include "src/cli/run_printer.hpp"

using namespace dlrun;

TEST_CASE("a full report makes a full line: the epoch's percent beside the epoch, the run's apart") {
  const Json report{
      {"step", 1105},      {"steps", 1407},          {"epoch", 3},          {"epochs", 3}, {"loss", 0.3124},
      {"accuracy", 0.884}, {"images_per_s", 3900.4}, {"seconds_left", 12.3}};
  CHECK(cli::progress_line(report, {Seconds(10)}, "", 200) ==
        "epoch 3/3 36 % · run 79 % · loss 0.312 · accuracy 88.4 % · 3900 images/s · 0:12 left");
  CHECK(cli::progress_line(report, {Seconds(10)}, "testing", 200) ==
        "epoch 3/3 36 % · run 79 % · testing · loss 0.312 · accuracy 88.4 % · 3900 images/s · 0:12 left");
}

TEST_CASE("the rate has the unit that the program reports") {
  CHECK(cli::progress_line({{"step", 5}, {"tokens_per_s", 541100.4}}, {Seconds(1)}, "", 100) ==
        "step 5 · 541100 tokens/s · 0:01");
  CHECK(cli::progress_line({{"step", 5}, {"samples_per_s", 17}}, {Seconds(1)}, "", 100) ==
        "step 5 · 17 samples/s · 0:01");
}

TEST_CASE("parts are dropped from the right; the run's percent and the time left go last") {
  const Json report{{"step", 1105}, {"steps", 1407},        {"epoch", 3},
                    {"epochs", 3},  {"images_per_s", 3900}, {"loss", 0.3124}};
  const cli::ProgressTimes times{.elapsed = Seconds(45), .left = Seconds(3723)};
  CHECK(cli::progress_line(report, times, "", 100) ==
        "epoch 3/3 36 % · run 79 % · loss 0.312 · 3900 images/s · 1:02:03 left");
  CHECK(cli::progress_line(report, times, "", 60) == "epoch 3/3 36 % · run 79 % · loss 0.312 · 1:02:03 left");
  CHECK(cli::progress_line(report, times, "", 45) == "epoch 3/3 36 % · run 79 % · 1:02:03 left");
  CHECK(cli::progress_line(report, times, "", 30) == "run 79 % · 1:02:03 left");
  CHECK(cli::progress_line(report, times, "", 12) == "run 79 %");
}

TEST_CASE("a GAN's line has both losses") {
  CHECK(cli::progress_line({{"step", 5}, {"loss_d", 1.25}, {"loss_g", 0.7}}, {Seconds(1)}, "", 80) ==
        "step 5 · loss_d 1.250 · loss_g 0.700 · 0:01");
}

TEST_CASE("parts that are missing or of another kind are left out") {
  CHECK(cli::progress_line({{"step", 5}}, {Seconds(75)}, "", 80) == "step 5 · 1:15");
  CHECK(cli::progress_line({{"step", "x"}, {"steps", 0}}, {Seconds(1)}, "", 80) == "0:01");
  // Epochs that are counted from 0, or of unequal length: no percent rather than a wrong one.
  CHECK(cli::progress_line({{"step", 90}, {"steps", 100}, {"epoch", 1}, {"epochs", 4}}, {Seconds(1)}, "",
                           80) == "epoch 1/4 · run 90 % · 0:01");
}

TEST_CASE("the time left is that of the steps between two reports") {
  CHECK(cli::time_left({{"step", 100}}, {{"step", 200}, {"steps", 500}}, Seconds(10)) == Seconds(30));
  CHECK(!cli::time_left({{"step", 100}}, {{"step", 100}, {"steps", 500}}, Seconds(10)));
  CHECK(!cli::time_left({{"step", 100}}, {{"step", 200}}, Seconds(10)));
  CHECK(!cli::time_left(nullptr, {{"step", 200}}, Seconds(10)));
}

TEST_CASE("a result reads as words") {
  CHECK(cli::result_text({{"test_accuracy", 0.9193}, {"steps", 938}, {"note", "ok"}}) ==
        "test accuracy 91.93 %, steps 938, note ok");
  CHECK(cli::result_text({{"steps", 3}, {"bound", {{"communication_ms", 1.5}}}}) == "steps 3");
  CHECK(cli::result_text(nullptr).empty());
}
