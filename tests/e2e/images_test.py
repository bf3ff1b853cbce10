#!/usr/bin/env python3
"""A folder of photographs trains a model of the user's own; packed, the same training gives the same bits."""
import json
import os
import random
import struct
import subprocess
import zlib

import support

JOB = """\
framework: builtin
train:
  model:
    layers:
      - {{convolution: 16, kernel: 3, padding: 1, bias: false, name: first}}
      - {{batch-norm: , name: stem}}
      - relu
      - {{convolution: 16, kernel: [1, 5], padding: [0, 2], name: wide}}
      - {{concat: [stem, wide]}}
      - {{max-pool: 2}}
      - global-average-pool
      - {{fully-connected: classes}}
  data: {{{data}, size: 16, augment: [flip]}}
  batch: 16
  epochs: 6
  optimizer: {{lr: 0.1, momentum: 0.9}}
checkpoint: {{dir: {checkpoint}}}
"""


def png(path, width, height, pixels, bits=8, colour=2):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    row = len(pixels) // height
    rows = b"".join(b"\0" + pixels[y * row:(y + 1) * row] for y in range(height))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)) +
                   chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def make_photos(folder):
    """Reddish asters, bluish tulips, of different sizes."""
    noise = random.Random(3)
    for part, count in (("train", 64), ("test", 16)):
        for i in range(count):
            kind = "aster" if i % 2 else "tulip"
            os.makedirs(f"{folder}/{part}/{kind}", exist_ok=True)
            width, height = noise.randrange(14, 40), noise.randrange(14, 40)
            pixels = bytearray(noise.randbytes(width * height * 3))
            for at in range(0, len(pixels), 3):
                pixels[at + (0 if i % 2 else 2)] |= 0x80
            png(f"{folder}/{part}/{kind}/{i:03}.png", width, height, bytes(pixels))


class Images(support.Case):
    def setUp(self):
        super().setUp()
        make_photos(os.path.join(self.folder, "photos"))

    def train(self, data, name):
        template = JOB.replace(", augment: [flip]", "") if "augment" in data else JOB
        job = self.write(name + ".yaml", template.format(data=data, checkpoint="ckpt-" + name))
        code, _, err = self.dlrun("--run-dir", "run-" + name, job)
        self.assertEqual(code, 0, err)
        lines = [json.loads(line) for line in self.read(f"run-{name}/metrics.jsonl").splitlines()]
        return [{key: line[key] for key in ("epoch", "loss", "accuracy") if key in line} for line in lines]

    def prepare(self, *arguments):
        done = subprocess.run([os.path.join(os.environ["DLRUN_BIN"], "dlrun-train"), "--prepare", *arguments],
                              cwd=self.folder, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def test_folders_and_lists_and_packed_shards_train_alike(self):
        straight = self.train("format: images, dir: photos", "folders")
        self.assertGreater(max(line.get("accuracy", 0) for line in straight), 0.95, straight)
        code, out, err = self.prepare("photos", "--into", "packed", "--size", "16")
        self.assertEqual((code, out, err), (0, "packed 64 training and 16 test images of 16 x 16 into packed\n", ""))
        self.assertEqual(self.train("format: images, dir: packed", "packed"), straight)
        for part in ("train", "test"):
            files = sorted(f"{part}/{kind}/{name} {number}" for number, kind in enumerate(("aster", "tulip"))
                           for name in os.listdir(os.path.join(self.folder, "photos", part, kind)))
            self.write(part + ".txt", "\n".join(files))
        self.assertEqual(self.train("format: list, dir: photos, list: train.txt, test-list: test.txt, classes: 2", "lists"),
                         straight)

    def test_png_images_of_16_bits_are_told_apart_by_their_low_bits(self):
        noise = random.Random(6)
        for number in range(32):
            kind, part = number % 2, "train" if number < 24 else "test"
            os.makedirs(os.path.join(self.folder, "deep", part, f"kind{kind}"), exist_ok=True)
            # 30000 and 30150 are both 117 in 8 bits.
            grey = struct.pack(">16H", *(30000 + 150 * kind + noise.randrange(20) for _ in range(16)))
            png(os.path.join(self.folder, "deep", part, f"kind{kind}", f"{number:02}.png"), 4, 4, grey, bits=16, colour=0)
        job = self.write("deep.yaml", "framework: builtin\ncheckpoint: {dir: ckpt}\ntrain:\n"
                         "  model: {layers: [flatten, {fully-connected: classes}]}\n  batch: 8\n  epochs: 15\n"
                         "  optimizer: {name: adam, lr: 0.05}\n"
                         "  data: {format: images, dir: deep, bit-depth: 16, mean: 0.459, std: 0.001}\n")
        code, out, err = self.dlrun("--run-dir", "run", job)
        self.assertEqual(code, 0, out + err)
        self.assertEqual(self.record()["result"]["test_accuracy"], 1)
        for command, found in ((("--evaluate", "deep"), lambda told: told["top1"] == 1),
                               (("--predict", "deep/test/kind1/31.png"), lambda told: told["predictions"][0]["class"] == "kind1")):
            done = subprocess.run([os.path.join(os.environ["DLRUN_BIN"], "dlrun-train"), *command, "--checkpoint", "ckpt"],
                                  cwd=self.folder, capture_output=True, text=True, check=True)
            self.assertTrue(found(json.loads(done.stdout)), done.stdout)

    def test_a_damaged_image_is_named_before_any_rank_and_can_be_dropped(self):
        self.write("photos/train/aster/zz.png", "")
        job = self.write("job.yaml", JOB.format(data="format: images, dir: photos", checkpoint="ckpt"))
        code, _, err = self.dlrun("--run-dir", "run", job)
        self.assertEqual(code, 65, err)
        self.assertIn("1 of 65 images cannot be decoded", err)
        self.assertIn("zz.png: the file is empty", err)
        self.train("format: images, dir: photos, damaged: drop", "dropped")
        code, _, err = self.prepare("photos", "--into", "packed", "--size", "16")
        self.assertEqual(code, 65, err)
        code, out, _ = self.prepare("photos", "--into", "packed", "--size", "16", "--damaged", "drop")
        self.assertEqual((code, out.split("; ")[1]), (0, "1 damaged images were dropped\n"))

    def packed_job(self, epochs):
        self.assertEqual(self.prepare("photos", "--into", "packed", "--size", "16")[0], 0)
        job = JOB.format(data="format: images, dir: packed", checkpoint="ckpt").replace("epochs: 6", f"epochs: {epochs}")
        return self.write("job.yaml", job + "resources: {tasks-per-node: 2}\n")

    def test_a_shard_that_changed_is_named_and_not_trained_on(self):
        job = self.packed_job(6)
        with open(os.path.join(self.folder, "packed", "train-00000.bin"), "r+b") as shard:
            shard.write(random.Random(5).randbytes(3000))
        code, out, err = self.dlrun("--run-dir", "run", job)
        self.assertEqual(code, 65, err)
        self.assertRegex(out + err, r"packed/train-00000.bin: image \d was changed after it was packed: its checksum differs")
        self.assertIn("found 2 classes, 64 training and 16 test images in ", out)

    def test_a_shard_that_is_cut_during_a_training_is_named(self):
        head = self.start("--run-dir", "run", self.packed_job(100000))
        metrics = lambda: self.exists("run/metrics.jsonl") and self.read("run/metrics.jsonl")
        support.wait_until(lambda: metrics() or head.poll() is not None, "it trains")
        os.truncate(os.path.join(self.folder, "packed", "train-00000.bin"), 0)
        out, err = head.communicate()
        self.assertEqual(head.returncode, 65, err)
        self.assertIn("packed/train-00000.bin: cannot be read any more: it became shorter", out + err)

    def test_a_class_folder_without_training_images_is_refused_before_any_rank(self):
        os.makedirs(os.path.join(self.folder, "photos", "train", "bird"))
        os.makedirs(os.path.join(self.folder, "photos", "train", "__MACOSX"))
        job = self.write("job.yaml", JOB.format(data="format: images, dir: photos", checkpoint="ckpt"))
        code, _, err = self.dlrun("--run-dir", "run", job)
        self.assertEqual(code, 65, err)
        self.assertIn("photos/train: 1 of 3 class folders has no training image: bird\n  hint: add images, or remove folders that are not classes", err)

    def test_images_that_stay_compressed_train_alike_from_every_container_and_with_any_number_of_workers(self):
        cut = "augment: {random-resized-crop: true, flip: true, color-jitter: {brightness: 0.2}}, workers: "
        straight = self.train("format: images, dir: photos, " + cut + "1", "cut")
        self.assertGreater(max(line.get("accuracy", 0) for line in straight), 0.9, straight)
        for kind in ("shards", "webdataset", "lmdb"):
            code, out, err = self.prepare("photos", "--into", kind, "--as", kind, "--shard-size", "20KiB")
            self.assertEqual((code, err), (0, ""), out)
            self.assertRegex(out, f"packed 64 training and 16 test images into {kind}: [0-9]+ files of format {kind}")
        self.assertEqual(self.train("format: images, dir: shards, " + cut + "3, memory: 1MiB", "shards"), straight)
        tar = self.train("format: webdataset, dir: webdataset, classes: 2, " + cut + "2", "tar")
        self.assertEqual(self.prepare("webdataset", "--into", "records", "--as", "tfrecord", "--from", "webdataset", "--classes", "2")[0], 0)
        self.assertEqual(self.prepare("lmdb", "--into", "again", "--as", "shards", "--from", "lmdb", "--classes", "2")[0], 0)
        self.assertEqual(len(self.train("format: tfrecord, dir: records, classes: 2, " + cut + "2", "records")), len(tar))

    def test_a_damaged_image_of_a_tar_file_is_named_with_its_place_or_dropped_and_told(self):
        self.assertEqual(self.prepare("photos", "--into", "tar", "--as", "webdataset")[0], 0)
        with open(os.path.join(self.folder, "tar", "train-000000.tar"), "r+b") as tar:
            tar.seek(512 + 60)
            tar.write(b"?" * 40)
        data = "format: webdataset, dir: tar, classes: 2"
        job = self.write("job.yaml", JOB.format(data=data, checkpoint="ckpt"))
        code, out, err = self.dlrun("--run-dir", "run", job)
        self.assertEqual(code, 65, err)
        self.assertRegex(out + err, r"tar/train-000000.tar: offset 512: PNG: ")
        job = self.write("job.yaml", JOB.format(data=data + ", damaged: drop", checkpoint="ckpt"))
        code, out, err = self.dlrun("--run-dir", "run2", job)
        self.assertEqual(code, 0, err)
        self.assertRegex(out + err, r"damaged image left out: .*tar/train-000000.tar: offset 512: PNG: ")

    def test_mistakes_of_prepare(self):
        for words, said in ((["photos"], "--into DIR, the new folder, is missing"), (["photos", "--size", "2", "--intoo", "x"], "did you mean '--into'?"),
                            (["photos", "--into", "x", "--size", "0"], "--size: '0' is not a number of pixels"),
                            (["photos", "--into", "x", "--list", "l"], "--list and --classes need each other"),
                            (["photos", "--into", "x", "--as", "tars"], "--as: unknown value 'tars'"),
                            (["photos", "--into", "x", "--as", "shards", "--size", "9"], "--size needs --as pixels"),
                            (["photos", "--into", "x", "--as", "shards", "--from", "idx"], "--from: idx has no encoded images"),
                            (["photos", "--into", "x", "--as", "shards", "--from", "lmdb"], "error: '--classes' is missing"),
                            (["photos", "--into", "x", "--as", "shards", "--from", "lmbd"], "error: --from: 'lmbd' is not known"),
                            (["photos", "--into", "x", "--as", "shards", "--image-key", "k"],
                             "error: --image-key does not go with data of format images"),
                            (["photos", "--into", "x", "--from", "lmdb"], "--from needs --as shards")):
            code, _, err = self.prepare(*words)
            self.assertEqual(code, 64, err)
            self.assertIn(said, err)
        self.assertEqual(self.prepare("nowhere", "--into", "x")[0], 65)


if __name__ == "__main__":
    support.main()
