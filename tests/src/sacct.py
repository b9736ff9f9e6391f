"""Stands for sacct: `sacct.py ROWS.json ARGUMENT…` answers with rows that a test wrote, in the format
that it is asked for. A row is an object of fields, where a number in a time is seconds since 1970, or a
text that is printed as it is. One that is `short` lacks a field, and is not found by its number."""

import datetime
import json
import os
import sys

FIELDS = """JobIDRaw JobID Cluster User UID Group Account Partition QOS State ExitCode DerivedExitCode Submit
Eligible Start End ElapsedRaw Suspended TimelimitRaw AllocCPUS AllocNodes NodeList ReqCPUS ReqNodes ReqMem ReqTRES
AllocTRES NTasks TotalCPU UserCPU SystemCPU MaxRSS TRESUsageInTot TRESUsageInMax TRESUsageOutTot ConsumedEnergyRaw
Priority Reservation Reason Flags Constraints JobName WorkDir Comment AdminComment SubmitLine"""
TIMES = {"Submit", "Eligible", "Start", "End"}

with open(sys.argv[1]) as file:
    rows = json.load(file)
arguments = sys.argv[2:]


def option(name):
    given = [one.split("=", 1)[1] for one in arguments if one.startswith(f"--{name}=")]
    return given[0] if given else None


def number(row):
    return str(row["JobIDRaw"]).split(".")[0]


if "--helpformat" in arguments:
    print(FIELDS)
    sys.exit()
if "--version" in arguments:
    print("slurm-wlm 22.05.8")
    sys.exit()
if option("clusters") == "away":
    sys.exit("sacct: error: slurm_persist_conn_open: Connection refused")
if jobs := option("jobs"):
    whole = [row for row in rows if isinstance(row, dict) and "short" not in row]
    rows = [row for row in whole if number(row) in jobs.split(",")]
if states := option("state"):
    # As sacct: the steps of a job are told with it.
    own = lambda row: isinstance(row, dict) and row.get("State", "").split(" ")[0] in states.split(",")
    told = {number(row) for row in rows if own(row) and "." not in str(row["JobIDRaw"])}
    is_told = lambda row: "COMPLETED" in states if isinstance(row, str) else number(row) in told
    rows = [row for row in rows if is_told(row)]
if begin := option("starttime"):
    # As sacct: steps that ended before are left out, and counted nowhere.
    begin = datetime.datetime.fromisoformat(begin + "+00:00").timestamp()
    over = lambda row: isinstance(row.get("End"), int) and row["End"] < begin
    rows = [row for row in rows if isinstance(row, str) or "." not in str(row["JobIDRaw"]) or not over(row)]
if "--json" in arguments:
    own = [row for row in rows if "." not in str(row["JobIDRaw"])]
    jobs = [{"job_id": int(row["JobIDRaw"]), "name": row.get("JobName", ""), "steps": [],
             "time": {"submission": row["Submit"]}} for row in own]
    print(json.dumps({"jobs": jobs}))
    sys.exit()
seal = os.environ["SLURM_TIME_FORMAT"].removeprefix("%s")
delimiter = option("delimiter")
for row in rows:
    if isinstance(row, str):
        print(row)
        continue
    fields = []
    for name in option("format").split(","):
        value = row.get(name, "")
        fields.append(f"{value}{seal}" if name in TIMES and isinstance(value, int) else str(value))
    if "short" in row:
        del fields[-2]
    print(delimiter.join(fields))
