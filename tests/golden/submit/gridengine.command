qsub -terse '/home/ann/my jobs/runs/submit-flowers-1/job.sh'
