#!/bin/bash
#SBATCH --job-name=flowers.7
#SBATCH -D /home/ann
#SBATCH -o /home/ann/runs/submit-flowers-1/%j.out
#SBATCH --open-mode=append
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --gres=gpu:4
#SBATCH --time=8:00:30
#SBATCH --partition=gpu
#SBATCH --account=abc
#SBATCH --mem=1G

# Written by dlrun submit. It only goes to the folder of the submission and becomes dlrun, which finds the nodes,
# starts and watches the ranks, and whose exit code is the job's.
cd -- /home/ann || exit 74
export SLURM_ARRAY_TASK_ID=7
exec /opt/dlrun/bin/dlrun run --spec=/home/ann/runs/submit-flowers-1/spec.json
