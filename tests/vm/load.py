#!/usr/bin/python3
"""A program whose use of the machine is known by construction.

Usage: load.py NAME CPU_SECONDS MEMORY_MIB DIR

Burns that much CPU, holds that much anonymous memory, keeps four threads and three files open, writes what it knows of
itself to DIR/truth/NAME.json, then waits without using any CPU until it is ended.
"""
import json
import os
import signal
import sys
import threading
import time

THREADS = 4


def main():
    name, seconds, mebibytes, folder = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    paths = [f"{folder}/input", f"{folder}/output.{name}", f"{folder}/scratch/field"]
    files = [open(path, mode) for path, mode in zip(paths, ["rb", "wb", "r+b"])]
    files[0].read()
    written = files[1].write(b"x" * 65536)
    files[1].flush()
    # Multiplying writes every byte, so that each page is really there.
    block = bytearray(b"x") * (mebibytes << 20)
    for _ in range(THREADS - 1):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    while time.process_time() < seconds:
        sum(range(10000))
    truth = {
        "pid": os.getpid(),
        "uid": os.getuid(),
        "job": int(os.environ["SLURM_JOB_ID"]),
        "threads": THREADS,
        "anon_bytes": len(block),
        "written_bytes": written,
        "files": paths,
        "cpu_seconds": time.process_time(),
    }
    target = f"{folder}/truth/{name}.json"
    with open(target + ".part", "w") as out:
        json.dump(truth, out)
    os.rename(target + ".part", target)
    signal.pause()


main()
