#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what no test should depend on: the overhead of a call, and what a second thread gains.

usage: bench.py [MODEL.onnx]     (a Python that has octet and numpy; examples/demo/detector.onnx)
"""
import pathlib
import sys
import threading
import time

import numpy
import octet
import tiny


def overhead(batches=100, calls=200):
    """Microseconds of a run of a network that computes nothing: the median and the best of batches,
    short ones, so that other work on the machine falls between them."""
    s = octet.Session(octet.load(tiny.identity()), threads=1)
    x, y = octet.empty((2, 3)), octet.empty((2, 3))
    work = {"s(x)": lambda: s(x), "s.run({name: x})": lambda: s.run({"x": x}),
            "s.run(x, copy=False)": lambda: s.run(x, copy=False),
            "s.run(x, outputs={name: y})": lambda: s.run(x, outputs={"y": y})}
    for name, call in work.items():
        times = []
        for _ in range(batches):
            start = time.perf_counter()
            for _ in range(calls):
                call()
            times.append((time.perf_counter() - start) / calls * 1e6)
        times.sort()
        print(f"{name:28} median {times[len(times) // 2]:6.2f} us, best {times[0]:6.2f} us")


def throughput(session, x, n_threads, runs):
    def work():
        for _ in range(runs):
            session(x)

    threads = [threading.Thread(target=work) for _ in range(n_threads)]
    start = time.perf_counter()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return n_threads * runs / (time.perf_counter() - start)


def scaling(model, runs=40, tries=5):
    """Runs per second of one session (a thread for each run) by one thread and by two."""
    net = octet.load(model)
    session = octet.Session(net, threads=1)
    x = octet.empty(session.inputs[0].shape)
    x[:] = numpy.random.default_rng(0).random(x.shape, dtype="float32")
    throughput(session, x, 2, 2)
    for _ in range(tries):
        one, two = (throughput(session, x, n, runs) for n in (1, 2))
        print(f"one thread {one:.1f} runs/s, two {two:.1f} runs/s: {two / one:.2f} times")


if __name__ == "__main__":
    overhead()
    demo = pathlib.Path(__file__).resolve().parents[2] / "examples/demo/detector.onnx"
    scaling(sys.argv[1] if len(sys.argv) > 1 else demo)
