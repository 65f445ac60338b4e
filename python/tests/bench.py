#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what no test should depend on: the overhead of a call, and what a second thread gains.

usage: bench.py [MODEL.onnx]     (a Python that has octet and numpy; examples/demo/detector.onnx)
"""
import pathlib
import resource
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
    """Runs per second; and of each run the CPU time in ms and how often its thread had to wait."""
    spent = []

    def work():
        start, waits = time.thread_time(), resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
        for _ in range(runs):
            session(x)
        spent.append((time.thread_time() - start,
                      resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - waits))

    threads = [threading.Thread(target=work) for _ in range(n_threads)]
    start = time.perf_counter()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    n = n_threads * runs
    return (n / (time.perf_counter() - start), sum(s for s, _ in spent) / n * 1e3,
            sum(w for _, w in spent) / n)


def scaling(model, runs=40, tries=5):
    """One session (a thread for each run), used by one thread and by two. Where the machine has
    other work, the gain in time says little: then threads that wait for nothing, and take no more
    CPU time than one alone, are what shows that they do not hinder each other."""
    net = octet.load(model)
    session = octet.Session(net, threads=1)
    x = octet.empty(session.inputs[0].shape)
    x[:] = numpy.random.default_rng(0).random(x.shape, dtype="float32")
    throughput(session, x, 2, 2)
    for _ in range(tries):
        (one, cpu_one, _), (two, cpu_two, waits) = (throughput(session, x, n, runs) for n in (1, 2))
        print(f"one thread {one:.1f} runs/s, two {two:.1f} runs/s: {two / one:.2f} times; "
              f"CPU time of a run {cpu_one:.1f} and {cpu_two:.1f} ms, {waits:.2f} waits")


if __name__ == "__main__":
    overhead()
    demo = pathlib.Path(__file__).resolve().parents[2] / "examples/demo/detector.onnx"
    scaling(sys.argv[1] if len(sys.argv) > 1 else demo)
