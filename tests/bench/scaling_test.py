#!/usr/bin/python3
"""What gpu_scaling and table decide: the order of the points and what a budget drops, the arithmetic of the figures, commands."""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import figures  # noqa: E402 pylint: disable=wrong-import-position
import figures_markdown  # noqa: E402 pylint: disable=wrong-import-position
import scaling_report  # noqa: E402 pylint: disable=wrong-import-position
import scaling_processes  # noqa: E402 pylint: disable=wrong-import-position
import scaling_runs  # noqa: E402 pylint: disable=wrong-import-position
from scaling_plan import PARTS, SECONDS, Budget, Point, forecast, plan  # noqa: E402 pylint: disable=wrong-import-position
from scaling_table import CAPTURED, ISSUED, table  # noqa: E402 pylint: disable=wrong-import-position


class Clock:
    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds


class Planning(unittest.TestCase):
    def test_ours_and_its_peer_come_one_after_the_other_and_the_target_comes_first(self):
        points = plan(PARTS, [8, 1, 2, 4])
        self.assertEqual(points[:4], [Point("train", "dlrun", 1), Point("train", "eager", 1), Point("train", "dlrun", 8),
                                      Point("train", "eager", 8)])
        self.assertEqual({point.gpus for point in points}, {1, 2, 4, 8})

    def test_what_two_parts_need_is_measured_once(self):
        points = plan(PARTS, [1, 2, 4])
        self.assertEqual(len(points), len(set(points)))
        ours = [point for point in points if (point.kind, point.side, point.model) == ("train", "dlrun", "resnet50")]
        strong = {(point.gpus, point.batch) for point in ours if point.batch * point.gpus == 256}
        self.assertEqual(strong, {(1, 256), (2, 128), (4, 64)})

    def test_a_part_alone_has_what_it_needs(self):
        self.assertEqual(plan(["first"], [1, 4])[:2], [Point("first", "dlrun", 4), Point("train", "eager", 4)])
        self.assertEqual(plan(["memory"], [1, 4]), [Point("train", "dlrun", 4), Point("train", "eager", 4)])
        self.assertEqual({point.kind for point in plan(["sums"], [1, 2])}, {"sum"})

    def test_one_gpu_has_no_sums_and_no_rank_to_lose(self):
        self.assertEqual({point.kind for point in plan(PARTS, [1])}, {"train", "first"})

    def test_further_rounds_come_after_the_whole_of_the_first(self):
        numbers = [point.number for point in plan(PARTS, [1, 2], rounds=2)]
        self.assertEqual(numbers, sorted(numbers))
        self.assertEqual(numbers.count(1), numbers.count(2))

    def test_sides_can_be_chosen(self):
        self.assertEqual({point.side for point in plan(PARTS, [1, 2], sides=["dlrun"])}, {"dlrun"})

    def test_every_point_has_an_expected_time(self):
        self.assertLessEqual({point.key for point in plan(PARTS, [1, 2, 4, 8])}, set(SECONDS))


class Budgets(unittest.TestCase):
    def test_without_a_budget_nothing_is_dropped(self):
        self.assertEqual(forecast(plan(PARTS, [1, 2, 4]), float("inf"))[0], [])

    def test_more_seconds_drop_less_and_never_the_most_important(self):
        points, before = plan(PARTS, [1, 2, 4]), None
        for seconds in (100, 200, 400, 800):
            dropped, expected = forecast(points, seconds)
            self.assertLessEqual(expected, seconds)
            self.assertNotIn(points[0], dropped)
            first = min(points.index(point) for point in dropped) if dropped else len(points)
            self.assertTrue(before is None or first >= before)
            before = first

    def test_a_shorter_point_still_fits_where_a_longer_one_is_dropped(self):
        budget = Budget(20, Clock())
        self.assertFalse(budget.fits(Point("train", "compile", 1)))
        self.assertTrue(budget.fits(Point("first", "dlrun", 1)))

    def test_the_next_one_is_expected_to_take_as_long_as_the_last(self):
        clock = Clock()
        budget, point = Budget(1000, clock), Point("train", "dlrun", 1)
        for seconds in (30.0, 4.0):
            budget.took(point, seconds)
            self.assertAlmostEqual(budget.estimate(point), seconds)
        clock.seconds = 997
        self.assertFalse(budget.fits(point))
        self.assertEqual(budget.estimate(Point("train", "eager", 1)), SECONDS["train", "eager"][0])

    def test_a_run_that_hangs_does_not_take_all(self):
        self.assertEqual(Budget(1000, Clock()).limit(Point("train", "dlrun", 1)), 4 * SECONDS["train", "dlrun"][0] + 30)
        self.assertEqual(Budget(20, Clock()).limit(Point("train", "compile", 1)), 50)


def rates(side, batch=256, model="resnet50", **by_gpus):
    """{Point: measured} of images/s: rates("dlrun", one=100, four=380)."""
    numbers = {"one": 1, "two": 2, "four": 4}
    return {Point("train", side, numbers[gpus], model, batch): {"images_per_s": rate, "images_per_s_same_batch": rate, "load1": 1.5}
            for gpus, rate in by_gpus.items()}


class Tables(unittest.TestCase):
    def row(self, measured, name):
        found = [figure for figure in table(measured) if figure.name == name]
        self.assertEqual(len(found), 1, [figure.name for figure in table(measured)])
        return found[0]

    def test_linear_is_as_many_times_one_gpu(self):
        measured = {**rates("dlrun", one=100, four=390), **rates("eager", one=50, four=150)}
        kept = self.row(measured, "ResNet-50, 256 per GPU, 4 GPUs of 4 x 1, eager")
        self.assertEqual((kept.ours, kept.peer, kept.target, kept.met), (97.5, 75, "ours >= 97", True))
        rate = self.row(measured, "ResNet-50, 256 per GPU, 4 GPUs, eager")
        self.assertEqual((rate.ours, rate.peer, rate.ratio, rate.unit), (390, 150, 2.6, "images/s"))
        self.assertEqual(rate.loads, [1.5])

    def test_a_miss_is_a_miss(self):
        self.assertFalse(self.row(rates("dlrun", 64, one=100, four=375), "ResNet-50, 64 per GPU, 4 GPUs of 4 x 1, eager").met)

    def test_linear_starts_at_the_fewest_gpus_that_were_measured(self):
        self.assertEqual(self.row(rates("dlrun", two=200, four=390), "ResNet-50, 256 per GPU, 4 GPUs of 2 x 2, eager").ours, 97.5)

    def test_strong_keeps_the_global_batch(self):
        measured = {**rates("dlrun", one=100), **rates("dlrun", 64, four=300), **rates("dlrun", 128, two=180)}
        self.assertEqual(self.row(measured, "ResNet-50, 256 in all, 4 GPUs of 4 x 1, eager").ours, 75)
        self.assertEqual(self.row(measured, "ResNet-50, 256 in all, 2 GPUs of 2 x 1, eager").ours, 90)

    def test_without_its_peer_a_row_has_no_ratio_and_no_target_of_one(self):
        row = self.row(rates("dlrun", one=100), "ResNet-50, 256 per GPU, 1 GPU, eager")
        self.assertEqual((row.peer, row.ratio, row.target, row.met), (None, None, "-", None))
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            figures.print_table([row])
        self.assertNotIn("MISSED", printed.getvalue())
        self.assertIsNone(row.as_json()["met"])

    def test_a_peer_without_ours_gives_no_row(self):
        self.assertEqual(table(rates("eager", one=100)), [])

    def test_compile_has_rows_only_where_it_was_measured(self):
        measured = {**rates("dlrun", one=100, four=390), **rates("compile", four=300)}
        names = [figure.name for figure in table(measured) if figure.name.endswith("compile")]
        self.assertEqual(names, ["ResNet-50, 256 per GPU, 4 GPUs, compile"])

    def test_rounds_are_paired_and_the_median_counts(self):
        measured = {}
        for number, (ours, peer) in enumerate([(100, 50), (120, 40), (90, 60)], 1):
            measured[Point("train", "dlrun", 1, number=number)] = {"images_per_s": ours}
            if number < 3:
                measured[Point("train", "eager", 1, number=number)] = {"images_per_s": peer}
        row = self.row(measured, "ResNet-50, 256 per GPU, 1 GPU, eager")
        self.assertEqual((row.pairs, row.ratio), ([(100, 50), (120, 40)], 2.5))

    def test_a_sum_is_compared_with_the_fastest_of_nccls_own(self):
        ours = {"sums": [{"bytes": 65536, CAPTURED: 9, ISSUED: 3}, {"bytes": 1 << 30, CAPTURED: 320, ISSUED: 320}]}
        raw = {"sums": [{"bytes": 65536, ISSUED: 4}, {"bytes": 1 << 30, ISSUED: 325}]}
        graph = {"sums": [{"bytes": 65536, CAPTURED: 10, ISSUED: 2}]}
        measured = {Point("sum", side, 4, "", 0): seen for side, seen in (("dlrun", ours), ("nccl", raw), ("nccl-graph", graph))}
        small = self.row(measured, "sum of 64 KiB, 4 GPUs, NCCL's best")
        self.assertEqual((small.ours, small.peer, small.met), (9, 10, False))
        large = self.row(measured, "sum of 1024 MiB, 4 GPUs, NCCL's best")
        self.assertEqual((large.ours, large.peer, large.met), (320, 325, True))
        self.assertEqual(self.row(measured, "sum of 64 KiB, 4 GPUs, both issued").ratio, 0.75)

    def test_first_step_and_kill(self):
        measured = {Point("first", "dlrun", 4): {"first_step_s": 3.5}, Point("train", "eager", 4): {"first_step_s": 14.0},
                    Point("kill", "dlrun", 4, batch=64): {"returned_s": 1.0, "gone_s": 1.5, "left": 0, "named": True},
                    Point("kill", "torchrun", 4, batch=64): {"returned_s": 5.0, "gone_s": 5.0, "left": 0, "named": False}}
        self.assertEqual(self.row(measured, "command to first step, 4 GPUs").pairs, [(3.5, 14.0)])
        self.assertTrue(self.row(measured, "kill -9 of 1 of 4 ranks to no process of the job, torchrun").met)
        self.assertTrue(self.row(measured, "kill -9 of 1 of 4 ranks: it is named").met)
        self.assertTrue(self.row(measured, "kill -9 of 1 of 4 ranks: processes left").met)
        measured[Point("kill", "dlrun", 4, batch=64)].update(named=False, left=1)
        self.assertFalse(self.row(measured, "kill -9 of 1 of 4 ranks: it is named").met)
        self.assertFalse(self.row(measured, "kill -9 of 1 of 4 ranks: processes left").met)

    def test_memory_is_compared_per_gpu(self):
        measured = {Point("train", "dlrun", 4): {"gpu_mib": 12000}, Point("train", "eager", 4): {"gpu_mib": 15000}}
        self.assertEqual(self.row(measured, "memory of a GPU, ResNet-50, 256 per GPU, 4 GPUs, eager").ratio, 0.8)


class FakeRuns:
    """Takes some seconds of a clock per point; fails for some sides and models."""

    def __init__(self, clock, seconds, failing=()):
        self.clock, self.seconds, self.failing, self.tried = clock, seconds, failing, []

    def measure(self, point, _):
        self.tried.append(point)
        self.clock.seconds += self.seconds
        if point.side in self.failing or point.model in self.failing:
            raise scaling_processes.Failed("no such luck")
        return {"images_per_s": 100 * point.gpus}


class Measuring(unittest.TestCase):
    def run_points(self, budget, seconds=10, failing=(), parts=("weak",)):
        clock = Clock()
        runs = FakeRuns(clock, seconds, failing)
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
            path = pathlib.Path(folder) / "figures.json"
            report = scaling_report.Report({"card": "none"}, path)
            scaling_report.measure(plan(parts, [1, 2, 4]), runs, Budget(budget, clock), report)
            return runs, report, json.loads(path.read_text())

    def test_what_does_not_fit_is_dropped_and_named(self):
        runs, report, written = self.run_points(100)
        self.assertLessEqual(runs.clock.seconds, 100)
        self.assertEqual(len(report.measured) + len(report.dropped), len(plan(["weak"], [1, 2, 4])))
        self.assertIn("s are left", written["dropped"][0]["why"])
        self.assertEqual(len(written["measured"]), len(report.measured))

    def test_a_peer_that_fails_is_given_up_and_ours_goes_on(self):
        runs, report, written = self.run_points(10000, failing=("eager",))
        self.assertEqual(sum(point.side == "eager" for point in runs.tried), 4)  # two of each model
        self.assertEqual([entry["why"] for entry in written["failed"]], ["no such luck"] * 4)
        self.assertTrue(all(point.side != "eager" for point in report.measured))
        self.assertIn("ResNet-50, 256 per GPU, 4 GPUs of 4 x 1, eager", [figure["name"] for figure in written["figures"]])

    def test_without_ours_nothing_else_takes_time(self):
        runs, report, _ = self.run_points(10000, failing=("dlrun",))
        self.assertEqual(len(runs.tried), 3)  # ours, the peer, and ours again
        self.assertTrue(report.dropped)

    def test_one_model_that_fails_does_not_stop_the_others(self):
        runs, _, written = self.run_points(10000, failing=("inception-v3",))
        self.assertEqual(sum(point.model == "inception-v3" and point.side == "dlrun" for point in runs.tried), 2)
        self.assertIn("ResNet-50, 32 per GPU, 4 GPUs, eager", [figure["name"] for figure in written["figures"]])


class Commands(unittest.TestCase):
    def setUp(self):
        self.runs = scaling_runs.Runs("/build/bin", "python3", "cuda", pathlib.Path("/scratch"))

    def test_every_point_has_commands_and_dlrun_its_job(self):
        for point in plan(PARTS, [1, 2, 4, 8]):
            self.assertTrue(self.runs.commands(point))
            if point.side == "dlrun" and point.kind != "sum":
                self.assertIn(f"gpus-per-node: {point.gpus}", self.runs.job(point))

    def test_peers_are_a_rank_per_gpu(self):
        commands = self.runs.commands(Point("train", "eager", 4))
        self.assertEqual([settings["RANK"] for _, settings in commands], ["0", "1", "2", "3"])
        self.assertEqual(len({settings["MASTER_PORT"] for _, settings in commands}), 1)

    def test_an_epoch_is_whole_steps_of_all_ranks(self):
        self.assertIn("samples: 4096", self.runs.job(Point("train", "dlrun", 4)))


class Markdown(unittest.TestCase):
    FIGURE = {"name": "sum of 1 MiB", "unit": "GB/s", "peer": 100.0, "ours": 97.0, "ratio": 0.97, "target": "ratio >= 0.98",
              "met": False}

    def lines(self, *figure, only="", mark_missed=False, **facts):
        return figures_markdown.markdown({"figures": list(figure), **facts}, only, mark_missed)

    def test_a_row_per_figure_below_where_and_when(self):
        lines = self.lines(self.FIGURE, card="H", cards=4, driver="580", torch="2.11", date="2026-11-29 20:00 UTC")
        self.assertEqual(lines[0], "On 4 x H, driver 580, PyTorch 2.11, 2026-11-29 20:00 UTC:")
        self.assertEqual(lines[-1], "| sum of 1 MiB | 100 GB/s | 97 GB/s | 0.97 |")

    def test_misses_and_what_was_dropped_can_be_shown(self):
        lines = self.lines(self.FIGURE, dropped=[{"point": "sum nccl", "why": "late"}], mark_missed=True)
        self.assertIn("97 GB/s (missed: ratio >= 0.98)", lines[1])
        self.assertEqual(lines[-1], "Not measured: sum nccl.")

    def test_rows_are_chosen_by_name_and_may_lack_a_peer(self):
        alone = {**self.FIGURE, "name": "alone", "peer": None, "ratio": None, "ours": 12345.6, "unit": "images/s"}
        self.assertEqual(self.lines(self.FIGURE, alone, only="^alone$")[1:], ["| alone | - | 12,346 images/s | - |"])


if __name__ == "__main__":
    unittest.main()
