# SPDX-License-Identifier: BSD-3-Clause
"""The model against jobs whose answer is known, and its calibration against made-up runs."""
import io
import json
import os
import tempfile
import unittest

import calibrate
import ucxlike_model as model

PLAIN = {
    "cores": 2, "start": [0.010, 0.0], "connect_node": [0.001, 0.0], "connect_net": [0.004, 0.0],
    "message_node": 1e-6, "message_net": 1e-5, "close": 0.0005, "latency_net": 0.0, "detect": 20.0,
    "poll": 40e-9, "poll_node": 0.0, "poll_net": 1e-9, "poll_device": 0.0,
    "descriptors_process": 10, "descriptors_node": 0, "descriptors_net": 2, "descriptors_device": 4,
    "bytes_idle": [0.0, 1e6], "bytes_node": 1000, "bytes_net": 20000, "bytes_device": 8e6,
    "start_net": 0.0, "descriptors_net_idle": 0, "bytes_net_idle": 0.0, "poll_net_idle": 0.0,
    "start_device": 0.002, "address": 300,
    "limit_descriptors": 1000, "limit_bytes": 1e12, "limit_poll": 1.0, "limit_start": 1e6,
    "limit_exchange": 1e9, "limit_share": 1e9, "limit_recovery": 1e9,
}


def costs(**changes):
    return model.Costs({**PLAIN, **changes})


class StartUp(unittest.TestCase):
    def test_one_process_only_starts(self):
        self.assertAlmostEqual(0.010, model.start_up(costs(), model.Job(1, 1)))

    def test_more_devices_start_later(self):
        self.assertAlmostEqual(0.016, model.start_up(costs(), model.Job(1, 1, 4)))

    def test_processes_alone_on_their_nodes_connect_in_turn(self):
        for nodes, rounds in ((2, 1), (3, 2), (8, 3), (1024, 10)):
            self.assertAlmostEqual(0.010 + rounds * 0.0045, model.start_up(
                costs(latency_net=0.0005), model.Job(nodes, 1)), msg=nodes)

    def test_processors_share_the_work(self):
        work = 64 * (0.010 + 6 * 0.001)
        for cores in (1, 2, 4):
            took = model.start_up(costs(cores=cores), model.Job(1, 64))
            self.assertGreaterEqual(took, work / cores - 1e-9)
            self.assertLess(took, work / cores + 0.010 + 6 * 0.001)

    def test_what_grows_with_the_node_is_quadratic(self):
        grows = costs(start=[0.0, 1e-4], connect_node=[0.0, 0.0])
        small, large = (model.start_up(grows, model.Job(1, p)) for p in (100, 1000))
        self.assertAlmostEqual(100.0, large / small)

    def test_every_message_is_needed(self):
        # 4 processes with a processor each: two rounds, and the start.
        self.assertAlmostEqual(0.012, model.start_up(costs(cores=4), model.Job(1, 4)))


class Figures(unittest.TestCase):
    def test_partners(self):
        self.assertEqual((12, 0), model.partners(model.Job(1, 64), "start-up"))
        self.assertEqual((12, 8), model.partners(model.Job(16, 64), "start-up"))
        self.assertEqual((63, 960), model.partners(model.Job(16, 64), "all-to-all"))

    def test_resources_of_an_exchange(self):
        r = model.resources(costs(), model.Job(4, 8, 2), "all-to-all")
        self.assertEqual(10 + 4 + 2 * 24, r["descriptors_process"])
        self.assertEqual(8 * r["descriptors_process"], r["descriptors_node"])
        self.assertEqual(8 * (1e6 + 8e6 + 7 * 1000 + 24 * 20000) + 32 * 300, r["bytes_node"])
        self.assertAlmostEqual(40e-9 + 24e-9, r["poll"])

    def test_a_poll_looks_at_no_more_connections_than_a_crowd(self):
        for nodes in (100, 1000):
            r = model.resources(costs(), model.Job(nodes, 8), "all-to-all")
            self.assertAlmostEqual(40e-9 + model.CROWD * 1e-9, r["poll"])

    def test_other_nodes_cost_before_they_are_reached(self):
        net = costs(start_net=0.1, descriptors_net_idle=7, bytes_net_idle=1e5, poll_net_idle=1e-7)
        for nodes in (1, 2):
            plain = model.predict(costs(), model.Job(nodes, 1), "start-up")
            with_net = model.predict(net, model.Job(nodes, 1), "start-up")
            for figure, more in (("first_barrier", 0.1), ("descriptors_node", 7),
                                 ("bytes_node", 1e5), ("poll", 1e-7)):
                self.assertAlmostEqual(more if nodes == 2 else 0.0,
                                       with_net[figure] - plain[figure], msg=figure)

    def test_one_server_has_the_connections_of_an_incast(self):
        r = model.resources(costs(), model.Job(4, 8), "incast")
        self.assertEqual(10 + 2 * 24 + 7 * 10, r["descriptors_node"])
        self.assertAlmostEqual(7 * (0.0005 + 1e-6) + 24 * (0.002 + 1e-5),
                               model.incast(costs(), model.Job(4, 8)))

    def test_recovery_and_churn(self):
        self.assertEqual(0.0, model.recovery(costs(), model.Job(1, 8)))
        self.assertAlmostEqual(20 + 8 / 2 * 8 * (0.0005 + 0.002),
                               model.recovery(costs(), model.Job(3, 8)))
        self.assertAlmostEqual((7 * 0.001 + 8 * 0.0025) / 10,
                               model.churn(costs(), model.Job(2, 8), lifetime=10.0))

    def test_the_first_law_that_breaks(self):
        # 10 + 2 * far descriptors are more than 1,000 from 496 far processes on.
        self.assertEqual((63 * 8 + 0, "descriptors of a process"),
                         model.first_to_break(costs(), 8, 1, "all-to-all"))
        self.assertEqual("memory of a node",
                         model.first_to_break(costs(limit_bytes=9e6), 8, 1, "all-to-all")[1])
        self.assertIsNone(model.first_to_break(costs(), 8, 1, "start-up"))

    def test_a_million_processes(self):
        for scenario in model.SCENARIOS:
            p = model.predict(costs(), model.Job(10000, 100), scenario)
            self.assertGreater(p["first_barrier"], 0.010 * 50)
            self.assertIn("bytes_node", p)

    def test_nothing_is_no_job(self):
        self.assertRaises(ValueError, model.Job, 0, 1)


class Command(unittest.TestCase):
    def run_with(self, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "costs.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(PLAIN, file)
            out = io.StringIO()
            self.assertEqual(0, model.main(["--costs", path, *arguments], out))
            return out.getvalue()

    def test_reports_every_scenario(self):
        text = self.run_with("--nodes", "64", "--processes", "16")
        for word in model.SCENARIOS + ("breaks first: descriptors of a process, at 512 processes",):
            self.assertIn(word, text)

    def test_takes_other_processors(self):
        found = [json.loads(self.run_with("--json", "--nodes", "1", "--cores", str(n), "start-up"))
                 for n in (1, 64)]
        self.assertGreater(found[0]["first_barrier"], 60 * found[1]["first_barrier"])

    def test_prints_json(self):
        found = json.loads(self.run_with("--json", "incast"))
        self.assertEqual(("incast", 16, 64), (found["scenario"], found["nodes"], found["processes"]))


class Calibration(unittest.TestCase):
    @staticmethod
    def run_of(processes, partners, peers, start=0.0, connect=0.001):
        return {"processes": processes, "partners": partners, "start": start,
                "connect": partners * connect, "barrier": 1e-6, "close": partners * 0.0005,
                "poll": 40e-9 + peers * 1e-9, "descriptors": 10 + 2 * peers,
                "bytes": 5e6 / processes + 1e6 + 1000 * peers, "address": 150}

    def test_finds_the_costs_of_made_up_runs(self):
        found = calibrate.costs_of(
            self.run_of(64, 6, 12, 0.01 + 64e-5), self.run_of(256, 8, 16, 0.01 + 256e-5),
            self.run_of(64, 63, 63), self.run_of(2, 1, 1), self.run_of(16, 4, 8, connect=0.004),
            self.run_of(16, 15, 15), self.run_of(2, 1, 1))
        for name, want in {"start": [0.01, 1e-5], "connect_node": [0.001, 0.0],
                           "connect_net": [0.004, 0.0], "bytes_idle": [5e6, 1e6]}.items():
            for a, b in zip(want, found[name]):
                self.assertAlmostEqual(a, b, msg=name)
        for name, want in {"descriptors_process": 10, "descriptors_node": 2, "bytes_node": 1000,
                           "close": 0.0005, "address": 300}.items():
            self.assertAlmostEqual(want, found[name], msg=name)
        self.assertAlmostEqual(40, found["poll"] * 1e9)
        self.assertAlmostEqual(1, found["poll_net"] * 1e9)

    def test_compares_within_a_quarter(self):
        run = self.run_of(1024, 10, 20, start=0.010)
        run["bytes"], run["poll"] = 1e6 + 20 * 1000 + 1024 * 300 / 1024, 40e-9
        run["descriptors"] = 10
        self.assertTrue(calibrate.compare(costs(), run, io.StringIO()))
        run["start"] *= 2
        self.assertFalse(calibrate.compare(costs(), run, io.StringIO()))


if __name__ == "__main__":
    unittest.main()
