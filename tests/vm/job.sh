#!/bin/bash
# Usage: sbatch job.sh DIR. A batch step and, beside it, a step of srun; both do what load.py says.
echo $$ >"$1/truth/shell.pid"
srun --ntasks=1 --overlap "$1/load.py" step 3 64 "$1" &
"$1/load.py" batch 2 0 "$1" &
times >"$1/truth/shell.times"
wait
