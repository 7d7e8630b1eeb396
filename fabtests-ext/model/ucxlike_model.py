#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a job of nodes x processes x devices costs, by discrete events.

The costs come from calibrate.py, which measures them on one machine at 64 and 256 processes. One
node is simulated; the others do the same at the same time, so that a message from another node is
one that the mirrored process of this node sends. Usage: ucxlike_model.py --help
"""
import argparse
import heapq
import json
import sys

CROWD = 64  # connections of a network: with more, a poll costs what it does with these
SCENARIOS = ("start-up", "all-to-all", "incast", "churn", "loss")


class Costs:
    """Per-process and per-connection costs, of a transport on the node and of one between nodes.

    What has two values is a line over the processes of a node: [at none, more for each]; bytes_idle
    is that of the whole node, whose processes share the libraries.
    """

    def __init__(self, values):
        self.values = values

    def line(self, name, processes):
        constant, each = self.values[name]
        return max(constant + each * processes, 0.0)

    def __getattr__(self, name):
        try:
            return self.values[name]
        except KeyError as missing:
            raise AttributeError(name) from missing


class Job:
    def __init__(self, nodes, processes, devices=1):
        if min(nodes, processes, devices) < 1:
            raise ValueError("nodes, processes and devices are at least 1")
        self.nodes, self.processes, self.devices = nodes, processes, devices

    @property
    def total(self):
        return self.nodes * self.processes


class Node:
    """The processors of a node as servers: work waits for one of them."""

    def __init__(self, cores):
        self.free = [0.0] * cores
        heapq.heapify(self.free)

    def work(self, ready, seconds):
        begin = max(ready, heapq.heappop(self.free))
        heapq.heappush(self.free, begin + seconds)
        return begin + seconds


def rounds_of(total):
    return max(total - 1, 0).bit_length()


def start_up(costs, job):
    """Seconds until every process has left the first barrier, which connects its partners."""
    node = Node(costs.cores)
    processes, rounds = job.processes, rounds_of(job.total)
    start = (costs.line("start", processes) + costs.start_device * (job.devices - 1) +
             (costs.start_net if job.nodes > 1 else 0.0))
    events = []  # (time, process): it has all that its round needs
    came = [[-1.0] * rounds for _ in range(processes)]
    sent = [-1.0] * processes
    at_round = [0] * processes
    for p in range(processes):
        sent[p] = node.work(0.0, start)
        heapq.heappush(events, (sent[p], p))
    end = max(sent)
    while events and rounds:
        now, p = heapq.heappop(events)
        r = at_round[p]
        if r == rounds:
            continue
        near = (1 << r) < processes
        cost = costs.line("connect_node" if near else "connect_net", processes)
        sent[p] = node.work(now, cost)
        to = (p + (1 << r)) % processes
        came[to][r] = sent[p] + (0.0 if near else costs.latency_net)
        at_round[p] = r + 1
        end = max(end, came[to][r])
        for q in {p, to}:
            done = at_round[q]
            if 0 < done < rounds and came[q][done - 1] >= 0 and sent[q] >= 0:
                heapq.heappush(events, (max(came[q][done - 1], sent[q]), q))
                sent[q] = -1.0
    return end


def partners(job, scenario):
    """Connections of the process that has most: on the node, and to other nodes."""
    if scenario in ("all-to-all", "incast"):
        return job.processes - 1, job.total - job.processes
    rounds = rounds_of(job.total)
    near = min(rounds_of(job.processes), rounds)
    return 2 * near, 2 * (rounds - near)


def all_to_all(costs, job):
    """Seconds until each process has had a message from each other one."""
    node = Node(costs.cores)
    near, far = partners(job, "all-to-all")
    message = near * costs.message_node + far * costs.message_net
    connect = (near * costs.line("connect_node", 0) + far * costs.line("connect_net", 0)) / 2
    return max(node.work(0.0, connect + message) for _ in range(job.processes)) + costs.latency_net


def incast(costs, job):
    """Seconds until one process has had a message from each other one, over a connection."""
    near, far = partners(job, "incast")
    server = Node(1)
    end = 0.0
    for name, message, clients in (("connect_node", costs.message_node, near),
                                   ("connect_net", costs.message_net, far)):
        # As many as are at once there, up to 1,024 events: a queue of equal work is linear.
        step = max(clients // 1024, 1)
        for first in range(0, clients, step):
            end = server.work(0.0, min(step, clients - first) * (costs.line(name, 0) / 2 + message))
    return end


def churn(costs, job, lifetime=600.0):
    """The share of a server's processor that its clients' comings and goings take."""
    near, far = partners(job, "incast")
    per_second = (near * (costs.line("connect_node", 0) / 2 + costs.close) +
                  far * (costs.line("connect_net", 0) / 2 + costs.close)) / lifetime
    return per_second


def recovery(costs, job):
    """Seconds from the loss of one node until the others have dropped it and reached a spare."""
    if job.nodes == 1:
        return 0.0
    node = Node(costs.cores)
    _, far = partners(job, "all-to-all")
    lost = min(job.processes, far)
    each = lost * (costs.close + costs.line("connect_net", 0) / 2)
    return costs.detect + max(node.work(0.0, each) for _ in range(job.processes))


def resources(costs, job, scenario):
    """Of the process that has most connections, and of a node whose processes are all like it."""
    near, far = partners(job, scenario)
    net = 1 if job.nodes > 1 else 0
    alike = 1 if scenario in ("incast", "churn") else job.processes
    idle = (costs.descriptors_process + costs.descriptors_device * (job.devices - 1) +
            net * costs.descriptors_net_idle)
    descriptors = idle + costs.descriptors_node * near + costs.descriptors_net * far
    connections = near * costs.bytes_node + far * costs.bytes_net
    devices = costs.bytes_device * (job.devices - 1) * job.processes
    devices += net * costs.bytes_net_idle * job.processes
    return {
        "descriptors_process": descriptors,
        "descriptors_node": descriptors * alike + idle * (job.processes - alike),
        "bytes_node": costs.line("bytes_idle", job.processes) + devices + connections * alike +
                      costs.address * job.total,
        "poll": costs.poll + costs.poll_device * (job.devices - 1) + net * costs.poll_net_idle +
                costs.poll_node * near + costs.poll_net * min(far, CROWD),
    }


def predict(costs, job, scenario):
    result = dict(scenario=scenario, nodes=job.nodes, processes=job.processes, devices=job.devices)
    kind = {"start-up": "start-up", "churn": "incast", "loss": "all-to-all"}.get(scenario, scenario)
    result.update(resources(costs, job, kind))
    result["first_barrier"] = start_up(costs, job)
    if scenario == "all-to-all":
        result["exchange"] = all_to_all(costs, job)
    elif scenario == "incast":
        result["exchange"] = incast(costs, job)
    elif scenario == "churn":
        result["server_share"] = churn(costs, job)
    elif scenario == "loss":
        result["recovery"] = recovery(costs, job)
    return result


# What a job cannot have more of, or hardly wants: (figure, its limit in the costs, what it is).
LAWS = (
    ("descriptors_process", "limit_descriptors", "descriptors of a process"),
    ("bytes_node", "limit_bytes", "memory of a node"),
    ("poll", "limit_poll", "a poll that finds nothing"),
    ("first_barrier", "limit_start", "time to the first barrier"),
    ("exchange", "limit_exchange", "time of the exchange"),
    ("server_share", "limit_share", "share of the server's processor"),
    ("recovery", "limit_recovery", "time to recover"),
)


def broken(costs, prediction):
    """The laws that are broken, the worst first, by how many times the limit."""
    found = [(prediction[figure] / getattr(costs, limit), what)
             for figure, limit, what in LAWS
             if figure in prediction and prediction[figure] > getattr(costs, limit)]
    return sorted(found, reverse=True)


def first_to_break(costs, processes, devices, scenario, most=1_000_000):
    """The smallest job of so many processes a node that breaks a law, and which."""
    nodes, before = 1, 0
    while nodes * processes <= most and not broken(costs, predict(
            costs, Job(nodes, processes, devices), scenario)):
        before, nodes = nodes, nodes * 2
    if nodes * processes > most:
        nodes = max(most // processes, 1)
        if not broken(costs, predict(costs, Job(nodes, processes, devices), scenario)):
            return None
    while nodes - before > 1:
        middle = (nodes + before) // 2
        if broken(costs, predict(costs, Job(middle, processes, devices), scenario)):
            nodes = middle
        else:
            before = middle
    return nodes * processes, broken(costs, predict(
        costs, Job(nodes, processes, devices), scenario))[0][1]


def human(figure, value):
    if figure.startswith("bytes"):
        return f"{value / 2 ** 20:.0f} MiB"
    if figure == "poll":
        return f"{value * 1e9:.0f} ns"
    if figure in ("first_barrier", "exchange", "recovery"):
        return f"{value:.2f} s" if value >= 0.01 else f"{value * 1e3:.2f} ms"
    if figure == "server_share":
        return f"{value * 100:.1f} %"
    return f"{value:.0f}"


def report(costs, job, scenario, out):
    prediction = predict(costs, job, scenario)
    out.write(f"{scenario}: {job.nodes} nodes x {job.processes} processes x {job.devices} devices\n")
    for figure, _, what in LAWS[:1] + (("descriptors_node", "", "descriptors of a node"),) + LAWS[1:]:
        if figure in prediction:
            out.write(f"    {what:32} {human(figure, prediction[figure]):>14}\n")
    first = first_to_break(costs, job.processes, job.devices, scenario)
    if first:
        out.write(f"    breaks first: {first[1]}, at {first[0]:,} processes\n")
    else:
        out.write("    nothing breaks up to 1,000,000 processes\n")


def main(argv=None, out=sys.stdout):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--costs", required=True, help="the JSON that calibrate.py writes")
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--processes", type=int, default=64, help="of each node")
    parser.add_argument("--devices", type=int, default=1, help="of each node")
    parser.add_argument("--cores", type=int, help="of each node, instead of the measured machine's")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("scenario", nargs="*", help=", ".join(SCENARIOS))
    args = parser.parse_args(argv)
    unknown = set(args.scenario) - set(SCENARIOS)
    if unknown:
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}")
    with open(args.costs, encoding="utf-8") as file:
        values = json.load(file)
    costs = Costs({**values, "cores": args.cores or values["cores"]})
    job = Job(args.nodes, args.processes, args.devices)
    for scenario in args.scenario or SCENARIOS:
        if args.json:
            json.dump(predict(costs, job, scenario), out)
            out.write("\n")
        else:
            report(costs, job, scenario, out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
