#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures the costs that the model takes, on this machine, with crowd.c at 64 and 256 processes.

Usage: calibrate.py [--build DIRECTORY] [--compare PROCESSES] COSTS.json
Writes COSTS.json. With --compare it reads that file instead, runs so many processes, and exits with
1 if the model is wrong by more than 25 %. Processor time is measured, so that the time of the model
is that of an otherwise idle machine.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

import ucxlike_model as model

TOLERANCE = 0.25


class Crowd:
    def __init__(self, build, folder):
        here = os.path.dirname(os.path.abspath(__file__))
        top = os.path.dirname(os.path.dirname(here))
        library = os.path.join(build, ".libs", "libucxlike.so.0")
        self.program = os.path.join(folder, "crowd")
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-I", os.path.join(top, "include"), "-I",
                        os.path.join(build, "include"), "-o", self.program,
                        os.path.join(here, "crowd.c"), library, "-lpthread"], check=True)
        self.environment = dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(library),
                                UCX_ARM_POLL_TIME="0", IPATH_NO_BACKTRACE="1")

    def run(self, transport, processes, barriers, partners=0, repeat=1):
        """The run in the middle, each figure for a process."""
        env = dict(self.environment, UCX_TLS=transport + ",self")
        if transport == "tcp":
            env["UCX_NET_DEVICES"] = "lo"
        runs = []
        for _ in range(repeat):
            text = subprocess.run([self.program, str(processes), str(barriers), str(partners)],
                                  env=env, check=True, stdout=subprocess.PIPE, timeout=1800,
                                  start_new_session=True).stdout
            runs.append(json.loads(text))
        middle = dict(runs[0])
        for figure in ("start", "connect", "barrier", "close", "descriptors", "bytes"):
            middle[figure] = statistics.median(r[figure] for r in runs) / processes
        middle["poll"] = min(r["poll"] for r in runs)
        return middle


def line(x1, y1, x2, y2):
    each = (y2 - y1) / (x2 - x1)
    return [y1 - each * x1, each]


def per_peer(few, many, figure):
    """Of a connection: `few` has two partners for each round, `many` is connected to all."""
    peers = many["processes"] - 1 - min(2 * few["partners"], few["processes"] - 1)
    return max((many[figure] - few[figure]) / peers, 0.0)


def per_connection(run):
    return run["connect"] / run["partners"]


def costs_of(node64, node256, node_all, pair, net16, net_all, pair_net):
    """From the runs: the node's transport at 64, 256, 64 all-to-all and 2; the net's at 16 and 2."""
    bytes_node = per_peer(node64, node_all, "bytes")
    idle = [r["processes"] * (r["bytes"] - 2 * r["partners"] * bytes_node)
            for r in (node64, node256)]
    peers_net = min(2 * net16["partners"], net16["processes"] - 1)

    def with_net(figure):  # what a process pays for the net before it has a peer there
        own = net16[figure] - peers_net * per_peer(net16, net_all, figure)
        node = node64[figure] - 2 * node64["partners"] * per_peer(node64, node_all, figure)
        return max(own - node, 0.0)

    return {
        "cores": len(os.sched_getaffinity(0)),
        "start": line(64, node64["start"], 256, node256["start"]),
        "connect_node": line(64, per_connection(node64), 256, per_connection(node256)),
        "connect_net": [per_connection(net16), 0.0],
        "start_net": max(net16["start"] - node64["start"], 0.0),
        "descriptors_net_idle": with_net("descriptors"), "bytes_net_idle": with_net("bytes"),
        "poll_net_idle": with_net("poll"),
        "message_node": pair["barrier"], "message_net": pair_net["barrier"],
        "close": node64["close"] / node64["partners"],
        "poll": max(node64["poll"] - 2 * node64["partners"] * per_peer(node64, node_all, "poll"),
                    0.0),
        "poll_node": per_peer(node64, node_all, "poll"),
        "poll_net": per_peer(net16, net_all, "poll"),
        "descriptors_process": node64["descriptors"] -
                               2 * node64["partners"] * per_peer(node64, node_all, "descriptors"),
        "descriptors_node": per_peer(node64, node_all, "descriptors"),
        "descriptors_net": per_peer(net16, net_all, "descriptors"),
        "bytes_idle": line(64, idle[0], 256, idle[1]),
        "bytes_node": bytes_node, "bytes_net": per_peer(net16, net_all, "bytes"),
        "address": node64["address"] + net16["address"],
    }


# What one machine cannot tell, and what a job should not exceed.
ASSUMED = {
    "latency_net": 20e-6, "detect": 25.0,
    "start_device": 5e-3, "bytes_device": 8.6e6, "descriptors_device": 4, "poll_device": 100e-9,
    "limit_poll": 10e-6, "limit_start": 60.0, "limit_exchange": 60.0, "limit_share": 1.0,
    "limit_recovery": 60.0,
}


def machine():
    with open("/proc/meminfo", encoding="ascii") as file:
        kib = int(file.readline().split()[1])
    return {"limit_bytes": kib * 1024,
            "limit_descriptors": resource.getrlimit(resource.RLIMIT_NOFILE)[0]}


def calibrate(crowd):
    runs = [crowd.run("sm", 64, 20, repeat=5), crowd.run("sm", 256, 20, repeat=5),
            crowd.run("sm", 64, 1, partners=63), crowd.run("sm", 2, 2000, repeat=3),
            crowd.run("tcp", 16, 20, repeat=2), crowd.run("tcp", 16, 1, partners=15),
            crowd.run("tcp", 2, 2000, repeat=2)]
    return {**ASSUMED, **machine(), **costs_of(*runs)}


def compare(costs, run, out=sys.stdout):
    """Prints what was predicted beside what was measured; whether all of it is near enough."""
    processes = run["processes"]
    predicted = model.predict(costs, model.Job(1, processes), "start-up")
    measured = {
        "first_barrier": (run["start"] + run["connect"]) * processes / costs.cores,
        "descriptors_node": run["descriptors"] * processes,
        "bytes_node": run["bytes"] * processes,
        "poll": run["poll"],
    }
    good = True
    out.write(f"{processes} processes{'predicted':>22}{'measured':>14}{'ratio':>8}\n")
    for figure, value in measured.items():
        ratio = predicted[figure] / value
        good &= abs(ratio - 1) <= TOLERANCE
        out.write(f"{figure:18}{model.human(figure, predicted[figure]):>18}"
                  f"{model.human(figure, value):>14}{ratio:8.2f}\n")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default=os.environ.get("top_builddir", "."))
    parser.add_argument("--compare", type=int, metavar="PROCESSES")
    parser.add_argument("costs")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        crowd = Crowd(os.path.abspath(args.build), folder)
        if args.compare:
            with open(args.costs, encoding="utf-8") as file:
                costs = model.Costs(json.load(file))
            return 0 if compare(costs, crowd.run("sm", args.compare, 1)) else 1
        costs = calibrate(crowd)
    with open(args.costs, "w", encoding="utf-8") as file:
        json.dump(costs, file, indent=1, sort_keys=True)
        file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
