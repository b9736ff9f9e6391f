#!/usr/bin/python3
"""Real processes in real job cgroups, for the benchmark: idle processes below the scope of the node named by the argument.

Does what each line of its standard input says, and answers READY:

    size JOBS PROCESSES   so many jobs with so many processes each
    turn                  the oldest job ends and another begins; the next oldest has one process replaced

When its input closes it removes all that it made, so that a benchmark which dies leaves nothing. Needs root.
"""
import itertools
import os
import signal
import sys

ROOT = '/sys/fs/cgroup'
V2 = os.path.exists(f'{ROOT}/cgroup.controllers')
node = sys.argv[1]
jobs = {}  # number: processes
numbers = itertools.count(1)
# The processes read from a pipe into which nobody writes: should this script be killed, they end with it.
lifeline, held = os.pipe()


def places(job):
    """The directories that a batch step of Slurm has for its task, outermost first, below each controller."""
    if V2:
        # system.slice is the system's, not ours to make or remove.
        parts = [f'system.slice/{node}_slurmstepd.scope', f'job_{job}', 'step_batch', 'user', 'task_0']
        return {'': [f'{ROOT}/' + '/'.join(parts[:end]) for end in range(1, len(parts) + 1)]}
    parts = [f'slurm_{node}', 'uid_1001', f'job_{job}', 'step_batch', 'task_0']
    # The freezer has no directory for a task.
    ends = {'freezer': 4, 'cpuacct': 5, 'memory': 5}
    return {
        controller: [f'{ROOT}/{controller}/' + '/'.join(parts[:end]) for end in range(1, last + 1)]
        for controller, last in ends.items()
    }


def own_places():
    """Where this process lives below each controller."""
    found = {}
    with open('/proc/self/cgroup') as lines:
        for line in lines:
            _, controllers, path = line.rstrip('\n').split(':', 2)
            for controller in controllers.split(','):
                if os.path.isdir(f'{ROOT}/{controller}{path}'):
                    found[controller] = f'{ROOT}/{controller}{path}'
    return found


def enter(directories):
    for directory in directories:
        with open(f'{directory}/cgroup.procs', 'w') as procs:
            procs.write('0')


def start(job, count):
    """Starts processes inside the job: a child begins where its parent is, so that one move does for all."""
    paths = places(job)
    try:
        enter(path[-1] for path in paths.values())
        for _ in range(count):
            # With the environment that Slurm gives, which the agent looks for.
            environment = {'SLURM_JOB_ID': str(job), 'SLURM_JOB_CPUS_PER_NODE': '1'}
            child = os.posix_spawn('/bin/cat', ['cat'], environment, file_actions=[(os.POSIX_SPAWN_DUP2, lifeline, 0)])
            jobs[job].append(child)
    finally:
        enter(home[controller] for controller in paths)


def stop(processes):
    for process in processes:
        os.kill(process, signal.SIGKILL)
    for process in processes:
        os.waitpid(process, 0)


def begin(processes):
    job = next(numbers)
    for path in places(job).values():
        for directory in path:
            os.makedirs(directory, exist_ok=True)
    jobs[job] = []
    start(job, processes)


def remove(directory):
    try:
        os.rmdir(directory)
    except OSError as error:
        print(f'{directory}: {error}', file=sys.stderr)


def outer(path):
    """Those of a job's directories that other jobs share."""
    return path[: 1 if V2 else 2]


def end(job):
    stop(jobs.pop(job))
    for path in places(job).values():
        for directory in reversed(path[len(outer(path)):]):
            remove(directory)


def size(wanted, processes):
    while len(jobs) > wanted:
        end(next(reversed(jobs)))
    for job, running in jobs.items():
        stop(running[processes:])
        del running[processes:]
        start(job, processes - len(running))
    while len(jobs) < wanted:
        begin(processes)


def turn():
    oldest, next_oldest = itertools.islice(jobs, 2)
    processes = len(jobs[oldest])
    end(oldest)
    begin(processes)
    stop([jobs[next_oldest].pop(0)])
    start(next_oldest, 1)


# Ctrl-C reaches this script too, but its input closes then, and that is the way to end.
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
home = own_places()
try:
    for line in sys.stdin:
        command, *given = line.split()
        {'size': size, 'turn': turn}[command](*map(int, given))
        print('READY', flush=True)
finally:
    for job in list(jobs):
        end(job)
    for path in places(0).values():
        for directory in reversed(outer(path)):
            if os.path.isdir(directory):
                remove(directory)
