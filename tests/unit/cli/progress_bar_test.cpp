#include "src/cli/progress_bar.hpp"

#include <doctest/doctest.h>

#include "src/cli/run_printer.hpp"

using namespace dlrun;

TEST_CASE("a full report makes a full line") {
  const Json report{
      {"step", 545},       {"steps", 938},           {"epoch", 2},        {"epochs", 4}, {"loss", 0.3124},
      {"accuracy", 0.884}, {"images_per_s", 3120.4}, {"seconds_left", 42}};
  CHECK(cli::progress_line(report, Seconds(10), 200) ==
        "epoch 2/4  [###########.........]  58 %  step 545/938  loss 0.312  accuracy 88.4 %  3120 images/s  "
        "42.0s left");
}

TEST_CASE("a GAN's line has both losses") {
  CHECK(cli::progress_line({{"step", 5}, {"loss_d", 1.25}, {"loss_g", 0.7}}, Seconds(1), 80) ==
        "step 5  loss_d 1.250  loss_g 0.700  1.0s");
}

TEST_CASE("parts that are missing or do not fit are left out") {
  CHECK(cli::progress_line({{"step", 5}}, Seconds(75), 80) == "step 5  1m15s");
  CHECK(cli::progress_line({{"step", 5}, {"steps", 10}, {"loss", 1.0}}, Seconds(1), 45) ==
        "[##########..........]  50 %  step 5/10");
  CHECK(cli::progress_line({{"step", "x"}, {"steps", 0}}, Seconds(1), 80) == "1.0s");
}

TEST_CASE("a result reads as words") {
  CHECK(cli::result_text({{"test_accuracy", 0.9193}, {"steps", 938}, {"note", "ok"}}) ==
        "test accuracy 91.93 %, steps 938, note ok");
  CHECK(cli::result_text({{"steps", 3}, {"bound", {{"wire_ms", 1.5}}}}) == "steps 3");
  CHECK(cli::result_text(nullptr).empty());
}
