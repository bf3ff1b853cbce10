#!/usr/bin/python3
"""torch_loader.py FOLDER WORKERS SECONDS: images per second that PyTorch's DataLoader gives with so many workers: JPEGs of a folder per
class, random-resized crop to 224x224, flip, tensors, in batches of 128. For benchmarks of input: rate() runs it beside them."""
import subprocess
import sys
import time

import figures


def rate(folder, workers, seconds):
    """None without torchvision."""
    if subprocess.run([sys.executable, "-c", "import torchvision"], capture_output=True, check=False).returncode != 0:
        return None
    done = subprocess.run([sys.executable, __file__, folder, str(workers), str(seconds)], check=True, capture_output=True, text=True,
                          env=figures.environment())
    return float(done.stdout)


def main(folder, workers, seconds):
    import torch
    import torchvision
    from torchvision import transforms
    data = torchvision.datasets.ImageFolder(folder, transforms.Compose([
        transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor()]))
    loader = torch.utils.data.DataLoader(data, batch_size=128, shuffle=True, num_workers=workers, persistent_workers=True,
                                         prefetch_factor=4)
    for _ in loader:  # workers start in the first round
        pass
    done, begin = 0, time.time()
    while time.time() - begin < seconds:
        for images, _ in loader:
            done += len(images)
    print(done / (time.time() - begin))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
