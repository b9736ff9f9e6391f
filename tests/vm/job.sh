#!/bin/bash
# Usage: sbatch job.sh DIR. A batch step and, beside it, a step of srun; both do what load.py says.
echo $$ >"$1/truth/shell.pid"
echo "${SLURM_JOB_SLUID-}" >"$1/truth/$SLURM_JOB_ID.sluid"
srun --ntasks=1 --overlap "$1/load.py" step 3 64 "$1" &
"$1/load.py" batch 2 0 "$1" &
times >"$1/truth/shell.times"
wait
