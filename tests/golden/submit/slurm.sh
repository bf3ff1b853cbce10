#!/bin/bash
#SBATCH --job-name=flowers
#SBATCH -D "/home/ann/my jobs"
#SBATCH -o "/home/ann/my jobs/runs/submit-flowers-1/%j.out"
#SBATCH --open-mode=append
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --gres=gpu:4
#SBATCH --time=8:00:30
#SBATCH --partition=gpu
#SBATCH --account=abc
#SBATCH --reservation=week

# Written by dlrun submit. It only goes to the folder of the submission and becomes dlrun, which finds the nodes,
# starts and watches the ranks, and whose exit code is the job's.
cd -- '/home/ann/my jobs' || exit 74
exec /opt/dlrun/bin/dlrun run '--spec=/home/ann/my jobs/runs/submit-flowers-1/spec.json' '--framework-dir=$x' $'--run-dir=it\'s\n#$ -l all'
