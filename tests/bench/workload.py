#!/usr/bin/python3
"""Real processes in real job cgroups, for the benchmark: JOBS x PROCESSES sleepers below the scope of node NODE.

Prints READY, lives until its standard input closes, then removes all that it made. Needs root.
"""
import os
import signal
import sys

jobs, processes, node = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
ROOT = '/sys/fs/cgroup'
V2 = os.path.exists(f'{ROOT}/cgroup.controllers')
made, children = [], []


def make(path):
    if not os.path.isdir(path):
        os.mkdir(path)
        made.append(path)


def places(job):
    """The directories that a batch step of Slurm has for its task, outermost first."""
    if V2:
        parts = ['system.slice', f'{node}_slurmstepd.scope', f'job_{job}', 'step_batch', 'user', 'task_0']
        return [[f'{ROOT}/' + '/'.join(parts[:end]) for end in range(1, len(parts) + 1)]]
    parts = [f'slurm_{node}', 'uid_1001', f'job_{job}', 'step_batch', 'task_0']
    return [
        [f'{ROOT}/{controller}/' + '/'.join(parts[:end]) for end in range(1, len(parts) + 1 - (controller == 'freezer'))]
        for controller in ('freezer', 'cpuacct', 'memory')
    ]


try:
    for job in range(1, jobs + 1):
        leaves = []
        for path in places(job):
            for directory in path:
                make(directory)
            leaves.append(path[-1])
        for _ in range(processes):
            child = os.fork()
            if child == 0:
                os.close(0)
                # With the environment that Slurm gives, which the agent looks for.
                os.execve('/bin/sleep', ['sleep', 'infinity'], {'SLURM_JOB_ID': str(job), 'SLURM_JOB_CPUS_PER_NODE': '1'})
            children.append(child)
            for leaf in leaves:
                with open(f'{leaf}/cgroup.procs', 'w') as procs:
                    procs.write(str(child))
    print('READY', flush=True)
    sys.stdin.read()
finally:
    for child in children:
        os.kill(child, signal.SIGKILL)
    for child in children:
        os.waitpid(child, 0)
    for path in reversed(made):
        try:
            os.rmdir(path)
        except OSError as error:
            print(f'{path}: {error}', file=sys.stderr)
